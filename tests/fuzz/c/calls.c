/* SPDX-License-Identifier: MIT */
/*
 * The calls of libpunctual, in any order, with right and wrong arguments: each returns a result or
 * a negative errno with a text, whatever handle it gets.
 *
 * Where the fuzzer may have real-time priorities and a CPU, tasks execute. Values for which a right
 * call would wait long, or for ever, are left out.
 */
#include <errno.h>
#include <unistd.h>

#include "calls/calls.h"

struct punctual *running;
struct punctual_jobs *running_jobs;
struct punctual_job_events *running_events;
struct held held;

int64_t checked(int64_t result)
{
	if (result < 0) {
		MUST(result > -4096);
		MUST(punctual_last_error()[0] != '\0');
	}
	return result;
}

void *handle(struct stream *in, void *slots)
{
	uint8_t choice = stream_byte(in);

	if (choice < 200)
		return ((void **)slots)[choice % SLOTS];
	return choice < 220 ? NULL : (void *)(uintptr_t)stream_number(in);
}

void *room(struct stream *in, void *slots)
{
	void **slot = (void **)slots + stream_below(in, SLOTS);

	return *slot ? NULL : slot;
}

uint64_t soon(struct stream *in)
{
	uint64_t until = stream_number(in);
	uint64_t latest = punctual_clock() + 2 * MS;

	return until < latest ? until : latest;
}

const char *group_name(struct stream *in)
{
	static const char *const names[] = { NULL, "a", "b", "\xff" };

	return names[stream_below(in, 4)];
}

static void *wait_for_jobs(void *argument)
{
	while (punctual_wait_period(NULL) == 0)
		;
	return argument;
}

/* Closes what is held, whatever of it is closed already. */
static void close_all(void)
{
	punctual_detach();
	for (int i = 0; i < SLOTS; i++) {
		punctual_task_stop(held.task[i]);
		punctual_task_join(held.task[i], NULL);
		punctual_fifo_writer_close(held.writer[i]);
		punctual_fifo_reader_close(held.reader[i]);
		punctual_fifo_close(held.fifo[i]);
		/* A task whose handle was closed may hold it still, for some periods. */
		for (int n = 0; n < 200 && punctual_mutex_destroy(held.mutex[i]) == -EBUSY; n++)
			usleep(1000);
		punctual_cond_destroy(held.cond[i]);
		punctual_sem_destroy(held.sem[i]);
		punctual_barrier_destroy(held.barrier[i]);
		punctual_shared_mutex_unlock(held.shared_mutex[i]);
		punctual_shared_mutex_close(held.shared_mutex[i]);
		punctual_shared_cond_close(held.shared_cond[i]);
		punctual_shared_sem_close(held.shared_sem[i]);
		punctual_shared_barrier_close(held.shared_barrier[i]);
		if (held.jobs[i] != running_jobs)
			punctual_jobs_close(held.jobs[i]);
		if (held.events[i] != running_events)
			punctual_job_events_close(held.events[i]);
		if (held.set[i] != running)
			punctual_close(held.set[i]);
	}
	memset(&held, 0, sizeof(held));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct punctual_task_attr of = PUNCTUAL_TASK_ATTR_INIT;
	struct punctual_group group = PUNCTUAL_GROUP_INIT;
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual_task *task;

	(void)argc;
	(void)argv;
	/* scripts/fuzz sets it: named objects of others stay out of it. */
	MUST(getenv("PUNCTUAL_SHM_DIR"));
	/* Tasks of this group are those to which jobs are added. */
	attr.groups = &group;
	attr.group_count = 1;
	group.name = "a";
	group.period = 5 * MS;
	group.budget = 2 * MS;
	group.policy = PUNCTUAL_JOBS;
	if (punctual_open(&attr, &running) < 0) {
		printf("no tasks execute here: %s\n", punctual_last_error());
		return 0;
	}
	of.group = "a";
	of.period = 20 * MS;
	of.budget = MS;
	MUST(punctual_task_create(running, &of, wait_for_jobs, NULL, &task) == 0);
	MUST(punctual_jobs_open(task, &running_jobs) == 0);
	MUST(punctual_job_events_open(running, &running_events) == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const calls[])(struct stream *) = { call_set, call_task, call_current,
							  call_fifo, call_end, call_mutex,
							  call_queue, call_jobs,
							  call_shared_mutex,
							  call_shared_queue };
	struct stream in = { data, size };

	held.set[0] = running;
	held.jobs[0] = running_jobs;
	held.events[0] = running_events;
	for (int n = 0; in.left > 0 && n < 32; n++)
		calls[stream_below(&in, sizeof(calls) / sizeof(*calls))](&in);
	close_all();
	return 0;
}
