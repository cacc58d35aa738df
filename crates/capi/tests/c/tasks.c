/* SPDX-License-Identifier: MIT */
/* The calling thread as a task, and threads that the library makes. */
#include "check.h"

#include <pthread.h>
#include <semaphore.h>

static void attaches_and_detaches(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("main", 10 * MS, 2 * MS);
	struct punctual_task *task = NULL, *again = NULL;
	struct punctual_period period, next;
	cpu_set_t before, after;

	/* However late the machine is, no release is returned twice. */
	attr.overrun = PUNCTUAL_SKIP;
	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	CHECK(class_of_this_thread() == SCHED_OTHER);
	CHECK(punctual_attach(set, &attr, &task) == 0);
	CHECK(class_of_this_thread() == SCHED_FIFO);
	CHECK(task && punctual_self() == task);
	CHECK(punctual_is_over() == 0);
	CHECK(punctual_current_period(&period) == 0);
	CHECK(period.deadline == period.release + 10 * MS);
	CHECK(punctual_remaining_budget() >= 0);
	CHECK(punctual_remaining_budget() <= (int64_t)(4 * MS));
	for (int n = 0; n < 5; n++) {
		CHECK(punctual_wait_period(&next) == 0);
		CHECK(next.number > period.number && next.release > period.release);
		CHECK((next.release - period.release) % (10 * MS) == 0);
		period = next;
	}
	CHECK(punctual_wait_period(NULL) == 0 && punctual_current_period(NULL) == 0);
	FAILS(punctual_attach(set, &attr, &again), EALREADY);
	CHECK(again == NULL && punctual_self() == task);
	FAILS(punctual_task_join(task, NULL), EDEADLK);

	CHECK(punctual_detach() == 0);
	CHECK(class_of_this_thread() == SCHED_OTHER);
	CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&before, &after));
	CHECK(punctual_self() == NULL);
	FAILS(punctual_detach(), EPERM);

	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;

	CHECK(punctual_task_join(task, &end) == 0 && end.how == PUNCTUAL_RETURNED);
	FAILS(punctual_task_join(task, NULL), EBADF);
	/* The name and the budget are free again; without a name there is one. */
	attr.budget = 8 * MS;
	CHECK(punctual_attach(set, &attr, &task) == 0 && punctual_detach() == 0);
	CHECK(punctual_task_join(task, NULL) == 0);
	attr.name = NULL;
	CHECK(punctual_attach(set, &attr, NULL) == 0 && punctual_self() == NULL);
	CHECK(punctual_detach() == 0);
}

struct counter {
	pthread_t thread;
	struct punctual_task *self;
	unsigned periods;
};

static void *count(void *argument)
{
	struct counter *counter = argument;

	counter->thread = pthread_self();
	counter->self = punctual_self();
	CHECK(class_of_this_thread() == SCHED_FIFO);
	while (counter->periods < 3) {
		counter->periods++;
		CHECK(punctual_wait_period(NULL) == 0);
	}
	return counter;
}

static void *exits(void *argument)
{
	CHECK(punctual_wait_period(NULL) == 0);
	pthread_exit(argument);
}

struct cancelled {
	pthread_t thread;
	sem_t runs;
};

static void *is_cancelled(void *argument)
{
	struct cancelled *cancelled = argument;

	cancelled->thread = pthread_self();
	sem_post(&cancelled->runs);
	while (pause() < 0)
		;
	return NULL;
}

static void *detaches(void *argument)
{
	CHECK(punctual_detach() == 0 && class_of_this_thread() == SCHED_OTHER);
	FAILS(punctual_wait_period(NULL), EPERM);
	return argument;
}

static void makes_threads(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("thread", 10 * MS, MS);
	struct punctual_task *task;
	struct counter counter = { 0 };
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;

	CHECK(punctual_task_create(set, &attr, count, &counter, &task) == 0);
	CHECK(punctual_task_join(task, &end) == 0);
	CHECK(end.how == PUNCTUAL_RETURNED && end.value == &counter && counter.periods == 3);
	CHECK(counter.self == task && !pthread_equal(counter.thread, pthread_self()));

	attr.stack = 256 << 10;
	CHECK(punctual_task_create(set, &attr, exits, &counter, &task) == 0);
	CHECK(punctual_task_join(task, &end) == 0);
	CHECK(end.how == PUNCTUAL_RETURNED && end.value == &counter);

	CHECK(punctual_task_create(set, &attr, detaches, &attr, &task) == 0);
	CHECK(punctual_task_join(task, &end) == 0 && end.value == &attr);

	/* Without a handle; and one that is given up. */
	CHECK(punctual_task_create(set, &attr, exits, NULL, NULL) == 0);
	CHECK(punctual_wait(set, punctual_clock() + LIVENESS) == 0);
	CHECK(punctual_task_create(set, &attr, exits, NULL, &task) == 0);
	CHECK(punctual_task_close(task) == 0);
	FAILS(punctual_task_close(task), EBADF);
	CHECK(punctual_wait(set, UINT64_MAX) == 0);
}

static void a_cancelled_thread_ends_its_task(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("cancelled", 10 * MS, MS);
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	struct cancelled cancelled;
	struct punctual_task *task;

	sem_init(&cancelled.runs, 0, 0);
	CHECK(punctual_task_create(set, &attr, is_cancelled, &cancelled, &task) == 0);
	sem_wait(&cancelled.runs);
	FAILS(punctual_wait(set, punctual_clock() + 10 * MS), ETIMEDOUT);
	CHECK(pthread_cancel(cancelled.thread) == 0);
	CHECK(punctual_task_join(task, &end) == 0 && end.value == PTHREAD_CANCELED);
}

static void *attaches_and_returns(void *set)
{
	struct punctual_task_attr attr = task_attr("own thread", 10 * MS, MS);

	CHECK(punctual_attach(set, &attr, NULL) == 0);
	CHECK(punctual_wait_period(NULL) == 0);
	return NULL;
}

static void the_end_of_a_thread_ends_its_task(struct punctual *set)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, attaches_and_returns, set) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(punctual_wait(set, punctual_clock() + LIVENESS) == 0);
}

struct waiting {
	sem_t runs;
	bool is_over;
};

static void *waits(void *argument)
{
	struct waiting *waiting = argument;

	sem_post(&waiting->runs);
	while (punctual_wait_period(NULL) == 0)
		;
	FAILS(punctual_wait_period(NULL), ECANCELED);
	waiting->is_over = punctual_is_over() == 1 && class_of_this_thread() == SCHED_OTHER;
	return NULL;
}

static void *waits_for_tasks(void *set)
{
	/* The set is closed meanwhile, or was before. */
	int result = punctual_wait(set, UINT64_MAX);

	CHECK(result == 0 || result == -EBADF);
	return NULL;
}

static void a_closed_set_ends_what_waits(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("waits", 10 * MS, MS);
	struct waiting waiting = { .is_over = false };
	struct punctual_task *task;
	pthread_t thread;

	sem_init(&waiting.runs, 0, 0);
	CHECK(punctual_task_create(set, &attr, waits, &waiting, &task) == 0);
	sem_wait(&waiting.runs);
	CHECK(pthread_create(&thread, NULL, waits_for_tasks, set) == 0);
	CHECK(punctual_close(set) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(punctual_task_join(task, NULL) == 0 && waiting.is_over);
	FAILS(punctual_close(set), EBADF);
}

/* Neither the task nor the set keeps the program from ending. */
static void the_program_ends_as_a_task(void)
{
	struct punctual_task_attr attr = task_attr("main", 10 * MS, 2 * MS);

	CHECK(punctual_attach(open_set(NULL), &attr, NULL) == 0);
	CHECK(punctual_wait_period(NULL) == 0);
}

int main(void)
{
	struct punctual *set = open_set(NULL);

	attaches_and_detaches(set);
	makes_threads(set);
	a_cancelled_thread_ends_its_task(set);
	the_end_of_a_thread_ends_its_task(set);
	a_closed_set_ends_what_waits(set);
	the_program_ends_as_a_task();
	return 0;
}
