/* SPDX-License-Identifier: MIT */
/*
 * The calls of gsi.h, in any order, with right and wrong arguments: each returns a result or a
 * negative errno with a text. What processes write into the memory that they share with their
 * allocator is any value, too.
 *
 * Where the fuzzer may have real-time priorities and a CPU, it is the allocator of a process, which
 * ends its jobs or not.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gsi.h>
#include <punctual.h>

#include "numbers.h"

/* Of the processes, with those that are no longer there. */
#define PROCESSES 3
static pid_t pids[PROCESSES];
static int is_allocator;
/* What the processes do: give up their jobs after so many rounds. */
static volatile uint32_t *rounds;

/* The table and the pipe of the allocator, as a program after exec finds them. */
static uint8_t *table;
static size_t table_size;
static int messages;

static int checked(int result)
{
	if (result < 0) {
		MUST(result > -4096);
		MUST(punctual_last_error()[0] != '\0');
	}
	return result;
}

static pid_t start_process(void)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid > 0)
		return pid;
	for (;;) {
		for (volatile uint32_t round = 0; round < *rounds; round++)
			;
		if (GSI_abort_job() < 0)
			_exit(0);
	}
}

/* Small numbers are the likely ones of groups. */
static int group_number(struct stream *in)
{
	uint8_t choice = stream_byte(in);

	return choice < 250 ? choice % 5 : (int)stream_number(in);
}

static GSI_TIME time_of(struct stream *in)
{
	uint8_t choice = stream_byte(in);

	if (choice < 128)
		return GSI_now() + choice * 16;
	return choice < 192 ? choice - 128 : (GSI_TIME)stream_number(in);
}

static GSI_JOB job_of(struct stream *in)
{
	GSI_JOB job;
	uint8_t choice = stream_byte(in);

	memset(&job, 0, sizeof(job));
	job.pid = choice < 200 ? pids[choice % PROCESSES] : choice < 240 ? 0 : (int)stream_number(in);
	job.starttime = time_of(in);
	/* Each job ends by itself: calls that wait for its event return. */
	job.finishtime = job.starttime < INT64_MAX / 2 ? job.starttime + stream_byte(in) * 16 : 1;
	if (job.finishtime > GSI_now() + 10000)
		job.finishtime = 1;
	job.budget = time_of(in);
	job.priority = (int)stream_number(in);
	job.group = group_number(in);
	job.budget_group = group_number(in);
	if (job.pid == 0) {
		job.server = group_number(in);
		job.budget_server = group_number(in);
	}
	job.private = (intptr_t)stream_number(in);
	return job;
}

static void add_jobs(struct stream *in)
{
	GSI_JOB jobs[3];
	int count = (int)stream_below(in, 4);

	for (int n = 0; n < count; n++)
		jobs[n] = job_of(in);
	MUST(checked(GSI_addjob(count ? jobs : NULL, count)) <= count);
	checked(GSI_addjob(NULL, (int)stream_number(in) | 1));
	checked(GSI_addjob(jobs, -(int)stream_below(in, 100) - 1));
}

static void get_events(struct stream *in)
{
	GSI_Event events[4];
	int count = (int)stream_below(in, 5);
	int got = checked(GSI_getevents(events, count));

	MUST(got <= count);
	for (int n = 0; n < got; n++) {
		MUST(events[n].type == GSI_EV_JOB_EXPIRED);
		MUST(events[n].reason >= GSI_COMPLETED && events[n].reason <= GSI_GONE);
		MUST(events[n].budget >= 0 && events[n].time <= GSI_now());
	}
	checked(GSI_getevents(NULL, count));
}

static void set_order(struct stream *in)
{
	GSI_QOS qos[4];

	for (int n = 0; n < 4; n++)
		qos[n] = (int)stream_below(in, 7) - 1;
	if (stream_byte(in) % 16 == 0)
		qos[0] = (int)stream_number(in);
	checked(GSI_setQOS(qos));
	checked(GSI_setgroupQOS(group_number(in), stream_byte(in) % 8 ? qos : NULL));
}

/* As a process of the same user can. */
static void damage(struct stream *in)
{
	uint8_t message[64];
	size_t length = stream_below(in, sizeof(message) + 1);

	if (!table)
		return;
	/* Not the word that names the allocator, for which the processes look. */
	if (stream_byte(in) % 2)
		table[64 + stream_below(in, (uint32_t)(table_size - 64))] = stream_byte(in);
	for (size_t n = 0; n < length; n++)
		message[n] = stream_byte(in);
	if (length >= 4 && stream_byte(in) % 2)
		memcpy(message, &pids[stream_below(in, PROCESSES)], 4);
	MUST(write(messages, message, length) >= 0 || errno == EAGAIN);
}

static void change_processes(struct stream *in)
{
	uint32_t n = stream_below(in, PROCESSES);

	*rounds = stream_below(in, 1 << 16);
	if (!is_allocator || stream_byte(in) % 8)
		return;
	kill(pids[n], SIGKILL);
	pids[n] = start_process();
}

static void registers(struct stream *in)
{
	checked(GSI_abort_job());
	MUST(GSI_now() > 0);
	GSI_msec_to_ticks((GSI_TIME)stream_number(in));
	MUST((checked(GSI_register()) == 0) <= !is_allocator);
}

/* What the environment names. */
static void open_table(void)
{
	char *names = strdup(getenv("PUNCTUAL_GSI")), *second = strchr(names, ':');
	FILE *file;

	MUST(second);
	*second++ = '\0';
	file = fopen(names, "r+");
	MUST(file && fseek(file, 0, SEEK_END) == 0);
	table_size = (size_t)ftell(file);
	table = mmap(NULL, table_size, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
	MUST(table != MAP_FAILED);
	fclose(file);
	file = fopen(second, "r+");
	MUST(file);
	messages = fileno(file);
	free(names);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	signal(SIGCHLD, SIG_IGN);
	rounds = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(rounds != MAP_FAILED);
	if (GSI_register() < 0) {
		printf("no jobs execute here: %s\n", punctual_last_error());
		return 0;
	}
	is_allocator = 1;
	open_table();
	for (int n = 0; n < PROCESSES; n++)
		pids[n] = start_process();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const calls[])(struct stream *) = { add_jobs, add_jobs,		get_events,
							  get_events, set_order, damage,
							  change_processes, registers };
	struct stream in = { data, size };

	for (int n = 0; in.left > 0 && n < 32; n++)
		calls[stream_below(&in, sizeof(calls) / sizeof(*calls))](&in);
	return 0;
}
