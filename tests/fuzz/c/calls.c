/* SPDX-License-Identifier: MIT */
/*
 * The calls of libpunctual, in any order, with right and wrong arguments: each returns a result or
 * a negative errno with a text, whatever handle it gets.
 *
 * Where the fuzzer may have real-time priorities and a CPU, tasks execute. Values for which a right
 * call would wait long, or for ever, are left out.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <punctual.h>

#include "numbers.h"

#define MS 1000000ull
#define SLOTS 4

static struct punctual *running;
/* Of a task of it, and of all: they can be opened once. */
static struct punctual_jobs *running_jobs;
static struct punctual_job_events *running_events;
static unsigned char buffer[1 << 16];

static struct {
	struct punctual *set[SLOTS];
	struct punctual_task *task[SLOTS];
	struct punctual_fifo *fifo[SLOTS];
	struct punctual_fifo_writer *writer[SLOTS];
	struct punctual_fifo_reader *reader[SLOTS];
	struct punctual_mutex *mutex[SLOTS];
	struct punctual_cond *cond[SLOTS];
	struct punctual_sem *sem[SLOTS];
	struct punctual_barrier *barrier[SLOTS];
	struct punctual_jobs *jobs[SLOTS];
	struct punctual_job_events *events[SLOTS];
} held;

/* Of a call: 0 or more, or an errno with its text. */
static int64_t checked(int64_t result)
{
	if (result < 0) {
		MUST(result > -4096);
		MUST(punctual_last_error()[0] != '\0');
	}
	return result;
}

/* A handle: one of `slots`, NULL, or another number. */
static void *handle(struct stream *in, void *slots)
{
	uint8_t choice = stream_byte(in);

	if (choice < 200)
		return ((void **)slots)[choice % SLOTS];
	return choice < 220 ? NULL : (void *)(uintptr_t)stream_number(in);
}

/* Where a call puts a handle: a free slot, or nowhere. */
static void *room(struct stream *in, void *slots)
{
	void **slot = (void **)slots + stream_below(in, SLOTS);

	return *slot ? NULL : slot;
}

static uint64_t soon(struct stream *in)
{
	uint64_t until = stream_number(in);
	uint64_t latest = punctual_clock() + 2 * MS;

	return until < latest ? until : latest;
}

/* Some end with a mutex locked, while the first thread may wait for it, or destroy it. */
static void *work(void *argument)
{
	struct punctual_mutex *mutex = __atomic_load_n(&held.mutex[0], __ATOMIC_RELAXED);

	if ((uintptr_t)argument % 16 > 7)
		checked(punctual_mutex_lock_until(mutex, punctual_clock() + MS));
	for (uintptr_t i = 0; i < (uintptr_t)argument % 4; i++)
		if (punctual_wait_period(NULL) < 0)
			break;
	return argument;
}

static void *wait_for_jobs(void *argument)
{
	while (punctual_wait_period(NULL) == 0)
		;
	return argument;
}

static void overran(void *argument)
{
	(void)argument;
}

static void choose(struct stream *in, struct punctual_task_attr *attr)
{
	static const char *const names[] = { NULL, "a", "b", "", "\xff\x01", "much too long ..."
		"................................................................." };
	int usual = stream_byte(in) % 4;

	attr->name = names[stream_below(in, 6)];
	attr->period = usual ? 5 * MS : stream_number(in);
	attr->budget = usual ? MS / 2 : stream_number(in);
	attr->deadline = usual > 1 ? 0 : stream_number(in);
	attr->offset = stream_number(in) % (2 * MS);
	attr->priority = usual > 2 ? 0 : (int64_t)stream_number(in);
	attr->overrun = stream_byte(in) % 8 ? PUNCTUAL_CARRY : stream_below(in, 6);
	attr->cpu = stream_byte(in) % 8 ? 0 : (uint32_t)stream_number(in);
	attr->stack = stream_byte(in) % 8 ? 0 : stream_number(in) % (1 << 20);
	/* With the handler of this process it is refused; without, it is called. */
	attr->overrun_handler = stream_byte(in) % 8 ? NULL : overran;
	attr->group = stream_byte(in) % 4 ? NULL : "a";
	attr->budget_group = stream_byte(in) % 4 ? NULL : "a";
	if (stream_byte(in) % 16 == 1)
		attr->size = stream_below(in, 4) * 40;
}

/* Of the thread that becomes a task: it would wait for a first job that nothing adds. */
static uint32_t choose_policy(struct stream *in)
{
	uint32_t policy = stream_below(in, 6);

	return policy == PUNCTUAL_JOBS ? UINT32_MAX : policy;
}

/* Of a task whose releases are waited for. */
static void choose_thread(struct stream *in, struct punctual_task_attr *attr)
{
	choose(in, attr);
	if (attr->period > 20 * MS)
		attr->period = 20 * MS;
}

static const char *const group_names[] = { NULL, "a", "b", "\xff" };

static void choose_group(struct stream *in, struct punctual_group *group)
{
	group->size = stream_byte(in) % 16 ? sizeof(*group) : stream_below(in, sizeof(*group));
	group->name = group_names[stream_below(in, 4)];
	group->parent = stream_byte(in) % 4 ? NULL : group_names[stream_below(in, 4)];
	group->budget_group = stream_byte(in) % 4 ? NULL : group_names[stream_below(in, 4)];
	group->period = stream_byte(in) % 4 ? 5 * MS : stream_number(in);
	group->budget = stream_byte(in) % 4 ? MS : stream_number(in);
	group->priority = (int64_t)stream_number(in);
	group->policy = choose_policy(in);
	group->cpu = (uint32_t)stream_number(in);
}

static void observe(const struct punctual_report *report, void *argument)
{
	(void)argument;
	MUST(report->kind <= PUNCTUAL_REPORT_WARNING);
	MUST(report->kind == PUNCTUAL_REPORT_WARNING ? report->text != NULL : report->task != NULL);
	MUST(punctual_wait(running, 0) < 0);
}

static void call_set(struct stream *in)
{
	struct punctual_stats stats = PUNCTUAL_STATS_INIT;
	struct punctual_group groups[2] = { PUNCTUAL_GROUP_INIT, PUNCTUAL_GROUP_INIT };
	struct punctual_budget_group node = PUNCTUAL_BUDGET_GROUP_INIT;
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	uint32_t cpus[] = { (uint32_t)stream_number(in), 0 };

	switch (stream_byte(in) % 4) {
	case 0:
		attr.cpus = cpus;
		attr.cpu_count = stream_below(in, 3);
		attr.policy = choose_policy(in);
		attr.flags = stream_byte(in) % 4 ? 0 : (uint32_t)stream_number(in);
		attr.task_limit = stream_byte(in) % 4 ? 0 : (uint32_t)stream_number(in);
		attr.size = stream_byte(in) % 8 ? sizeof(attr) : stream_below(in, 256);
		attr.observer = stream_byte(in) % 4 ? observe : NULL;
		attr.groups = groups;
		attr.group_count = stream_below(in, 3);
		attr.budget_groups = stream_byte(in) % 8 ? &node : NULL;
		attr.budget_group_count = stream_below(in, 2);
		for (int n = 0; n < 2; n++)
			choose_group(in, &groups[n]);
		node.name = group_names[stream_below(in, 4)];
		node.parent = stream_byte(in) % 4 ? NULL : group_names[stream_below(in, 4)];
		node.period = stream_byte(in) % 4 ? 5 * MS : stream_number(in);
		node.budget = stream_byte(in) % 4 ? MS : stream_number(in);
		node.cpu = (uint32_t)stream_number(in);
		checked(punctual_open(&attr, room(in, held.set)));
		break;
	case 1:
		checked(punctual_wait(handle(in, held.set), soon(in)));
		break;
	case 2:
		stats.size = stream_byte(in) % 8 ? sizeof(stats) : stream_below(in, sizeof(stats));
		checked(punctual_stats(handle(in, held.set), &stats));
		break;
	case 3: {
		void *set = handle(in, held.set);

		if (set != running)
			checked(punctual_close(set));
		break;
	}
	}
}

static void call_task(struct stream *in)
{
	struct punctual_task_attr attr = PUNCTUAL_TASK_ATTR_INIT;
	struct punctual_task_stats stats = PUNCTUAL_TASK_STATS_INIT;
	struct punctual_task_change change = PUNCTUAL_TASK_CHANGE_INIT;
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	char *const commands[][3] = { { "true", NULL }, { "sleep", "9", NULL }, { "/none", NULL },
				      { NULL } };
	struct punctual_task *task;

	switch (stream_byte(in) % 12) {
	case 0:
		choose_thread(in, &attr);
		attr.group = attr.group ? "b" : NULL;
		checked(punctual_attach(handle(in, held.set), &attr, room(in, held.task)));
		break;
	case 1:
		choose_thread(in, &attr);
		checked(punctual_task_create(handle(in, held.set), &attr, work,
					     (void *)(uintptr_t)stream_byte(in),
					     room(in, held.task)));
		break;
	case 2:
		choose(in, &attr);
		checked(punctual_task_command(handle(in, held.set), &attr,
					      commands[stream_below(in, 4)], room(in, held.task)));
		break;
	case 3: {
		/* None of another program's: it would be parked. */
		static const pid_t pids[] = { 0, -1, INT_MIN, INT_MAX };

		choose(in, &attr);
		checked(punctual_task_pid(handle(in, held.set), &attr, pids[stream_below(in, 4)],
					  room(in, held.task)));
		break;
	}
	case 4:
		task = handle(in, held.task);
		checked(punctual_task_stop(task));
		break;
	case 5:
		task = handle(in, held.task);
		punctual_task_stop(task);
		end.size = stream_byte(in) % 8 ? sizeof(end) : stream_below(in, sizeof(end));
		checked(punctual_task_join(task, stream_byte(in) % 4 ? &end : NULL));
		break;
	case 6:
		task = handle(in, held.task);
		/* One that waits for a job does not end by itself. */
		punctual_task_stop(task);
		checked(punctual_task_close(task));
		break;
	case 7:
		task = handle(in, held.task);
		checked(punctual_task_set_budget(task, stream_number(in)));
		break;
	case 8:
		stats.size = stream_byte(in) % 8 ? sizeof(stats) : stream_below(in, sizeof(stats));
		checked(punctual_task_stats(handle(in, held.task), &stats));
		break;
	case 9:
		change.size = stream_byte(in) % 8 ? sizeof(change) : stream_below(in, 64);
		change.period = stream_byte(in) % 2 ? 0 : stream_number(in);
		/* So long as its end may be waited for. */
		if (change.period > 20 * MS && change.period < 1ull << 62)
			change.period = 20 * MS;
		change.budget = stream_byte(in) % 2 ? 0 : stream_number(in);
		change.deadline = stream_byte(in) % 2 ? 0 : stream_number(in);
		change.priority = (int64_t)stream_number(in);
		change.flags = stream_below(in, 3);
		checked(punctual_task_change(handle(in, held.task),
					     stream_byte(in) % 8 ? &change : NULL));
		break;
	case 10:
		task = handle(in, held.task);
		/* No thread would resume the calling one. */
		if (task != punctual_self())
			checked(punctual_task_suspend(task));
		break;
	case 11:
		checked(punctual_task_resume(handle(in, held.task)));
		break;
	}
}

static void call_current(struct stream *in)
{
	struct punctual_period period;

	switch (stream_byte(in) % 6) {
	case 0:
		checked(punctual_wait_period(stream_byte(in) % 2 ? &period : NULL));
		break;
	case 1:
		checked(punctual_current_period(stream_byte(in) % 2 ? &period : NULL));
		break;
	case 2:
		checked(punctual_remaining_budget());
		break;
	case 3:
		checked(punctual_is_over());
		break;
	case 4:
		punctual_self();
		break;
	case 5:
		checked(punctual_detach());
		break;
	}
}

static void call_fifo(struct stream *in)
{
	static const char *const names[] = { NULL, "a", "0", "..", "a/b", "" };
	struct punctual_fifo_attr attr = PUNCTUAL_FIFO_ATTR_INIT;
	struct punctual_fifo_info info = PUNCTUAL_FIFO_INFO_INIT;
	const char *name = names[stream_below(in, 6)];

	switch (stream_byte(in) % 7) {
	case 0:
		attr.capacity = stream_number(in);
		/* Memory that the machine may have, and that is then locked. */
		if (attr.capacity <= 1ull << 30)
			attr.capacity %= 1 << 16;
		attr.flags = stream_byte(in) % 4 ? stream_below(in, 4) : (uint32_t)stream_number(in);
		attr.size = stream_byte(in) % 8 ? sizeof(attr) : stream_below(in, 64);
		checked(punctual_fifo_create(name, &attr, room(in, held.fifo)));
		break;
	case 1:
		checked(punctual_fifo_open(name, room(in, held.fifo)));
		break;
	case 2:
		checked(punctual_fifo_remove(name));
		break;
	case 3:
		checked(punctual_fifo_close(handle(in, held.fifo)));
		break;
	case 4:
		info.size = stream_byte(in) % 8 ? sizeof(info) : stream_below(in, sizeof(info));
		checked(punctual_fifo_info(handle(in, held.fifo), &info));
		break;
	case 5:
		checked(punctual_fifo_writer_open(handle(in, held.fifo), stream_below(in, 3),
						  room(in, held.writer)));
		break;
	case 6:
		checked(punctual_fifo_reader_open(handle(in, held.fifo), stream_below(in, 3),
						  room(in, held.reader)));
		break;
	}
}

static void call_end(struct stream *in)
{
	void *writer = handle(in, held.writer), *reader = handle(in, held.reader);
	void *memory = stream_byte(in) % 16 ? buffer : NULL;
	/* What the buffer has, or more than any FIFO here. */
	size_t length = stream_number(in);
	uint64_t until = soon(in);

	if (length <= 1ull << 30)
		length %= sizeof(buffer) + 1;
	switch (stream_byte(in) % 8) {
	case 0:
		checked(punctual_fifo_put(writer, memory, length));
		break;
	case 1:
		checked(punctual_fifo_put_until(writer, memory, length, until));
		break;
	case 2:
		checked(punctual_fifo_get(reader, memory, length));
		break;
	case 3:
		checked(punctual_fifo_get_until(reader, memory, length, until));
		break;
	case 4:
		checked(punctual_fifo_get_some(reader, memory, length % (sizeof(buffer) + 1)));
		break;
	case 5:
		checked(punctual_fifo_writer_ready(writer, length));
		checked(punctual_fifo_writer_fd(writer));
		break;
	case 6:
		checked(punctual_fifo_reader_ready(reader));
		checked(punctual_fifo_reader_fd(reader));
		break;
	case 7:
		if (stream_byte(in) % 2)
			checked(punctual_fifo_writer_close(writer));
		else
			checked(punctual_fifo_reader_close(reader));
		break;
	}
}

static void call_mutex(struct stream *in)
{
	struct punctual_mutex_attr attr = PUNCTUAL_MUTEX_ATTR_INIT;
	struct punctual_mutex *mutex = handle(in, held.mutex);

	switch (stream_byte(in) % 8) {
	case 0:
		checked(punctual_mutex_create(room(in, held.mutex)));
		break;
	case 1:
		checked(punctual_mutex_destroy(mutex));
		break;
	case 2:
		checked(punctual_mutex_lock(mutex));
		break;
	case 3:
		checked(punctual_mutex_lock_until(mutex, stream_number(in)));
		break;
	case 4:
		checked(punctual_mutex_trylock(mutex));
		break;
	case 5:
		checked(punctual_mutex_unlock(mutex));
		break;
	case 6:
		checked(punctual_mutex_consistent(mutex));
		break;
	case 7:
		attr.flags = stream_byte(in) % 4;
		attr.ceiling_deadline = stream_number(in);
		attr.ceiling_priority = (int64_t)stream_number(in);
		checked(punctual_mutex_create_with(&attr, room(in, held.mutex)));
		break;
	}
}

static void call_queue(struct stream *in)
{
	struct punctual_sem_attr attr = PUNCTUAL_SEM_ATTR_INIT;
	struct punctual_cond *cond = handle(in, held.cond);
	struct punctual_sem *sem = handle(in, held.sem);
	struct punctual_barrier *barrier = handle(in, held.barrier);

	switch (stream_byte(in) % 13) {
	case 0:
		checked(punctual_cond_create(room(in, held.cond)));
		break;
	case 1:
		checked(punctual_cond_destroy(cond));
		break;
	case 2:
		checked(punctual_cond_wait_until(cond, handle(in, held.mutex), soon(in)));
		break;
	case 3:
		checked(punctual_cond_signal(cond));
		break;
	case 4:
		checked(punctual_cond_broadcast(cond));
		break;
	case 5:
		attr.units = (uint32_t)stream_number(in);
		attr.maximum = (uint32_t)stream_number(in);
		attr.size = stream_byte(in) % 8 ? sizeof(attr) : stream_below(in, sizeof(attr));
		checked(punctual_sem_create(&attr, room(in, held.sem)));
		break;
	case 6:
		checked(punctual_sem_destroy(sem));
		break;
	case 7:
		checked(punctual_sem_wait_until(sem, soon(in)));
		break;
	case 8:
		checked(punctual_sem_trywait(sem));
		break;
	case 9:
		checked(punctual_sem_post(sem));
		break;
	case 10:
		checked(punctual_barrier_create((uint32_t)stream_number(in),
						room(in, held.barrier)));
		break;
	case 11:
		checked(punctual_barrier_destroy(barrier));
		break;
	case 12:
		checked(punctual_barrier_wait_until(barrier, soon(in)));
		break;
	}
}

static void choose_job(struct stream *in, struct punctual_job_attr *job)
{
	int usual = stream_byte(in) % 4;

	job->start = usual ? punctual_clock() + stream_number(in) % MS : stream_number(in);
	job->finish = usual > 1 ? job->start + 4 * MS : stream_number(in);
	job->budget = usual > 2 ? MS / 4 : stream_number(in);
	job->priority = (int64_t)stream_number(in);
	job->cookie = stream_number(in);
	job->size = stream_byte(in) % 16 ? sizeof(*job) : stream_below(in, sizeof(*job));
}

static void call_jobs(struct stream *in)
{
	struct punctual_job_event event = PUNCTUAL_JOB_EVENT_INIT;
	struct punctual_job_attr job = PUNCTUAL_JOB_ATTR_INIT;
	struct punctual_jobs *jobs = handle(in, held.jobs);
	struct punctual_job_events *events = handle(in, held.events);
	uint32_t by[5];
	uint64_t number;

	switch (stream_byte(in) % 9) {
	case 0:
		checked(punctual_jobs_open(handle(in, held.task), room(in, held.jobs)));
		break;
	case 1:
		if (jobs != running_jobs)
			checked(punctual_jobs_close(jobs));
		break;
	case 2:
		for (int i = 0; i < 5; i++)
			by[i] = stream_below(in, 6);
		checked(punctual_jobs_order(handle(in, held.set), group_names[stream_below(in, 4)],
					    by, stream_below(in, 6)));
		break;
	case 3:
	case 4:
		choose_job(in, &job);
		if (checked(punctual_job_add(jobs, &job, &number)) == 0 && stream_byte(in) % 4 == 0)
			checked(punctual_job_cancel(jobs, number));
		break;
	case 5:
		checked(punctual_job_cancel(jobs, stream_number(in)));
		break;
	case 6:
		checked(punctual_job_events_open(handle(in, held.set), room(in, held.events)));
		break;
	case 7:
		checked(punctual_job_events_fd(events));
		if (events != running_events)
			checked(punctual_job_events_close(events));
		break;
	case 8:
		event.size = stream_byte(in) % 8 ? sizeof(event) : stream_below(in, sizeof(event));
		if (checked(punctual_job_event(events, &event, soon(in))) == 0) {
			MUST(event.end <= PUNCTUAL_JOB_REFUSED);
			MUST((event.end == PUNCTUAL_JOB_REFUSED) == (event.error < 0));
		}
		break;
	}
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
							  call_queue, call_jobs };
	struct stream in = { data, size };

	held.set[0] = running;
	held.jobs[0] = running_jobs;
	held.events[0] = running_events;
	for (int n = 0; in.left > 0 && n < 32; n++)
		calls[stream_below(&in, sizeof(calls) / sizeof(*calls))](&in);
	close_all();
	return 0;
}
