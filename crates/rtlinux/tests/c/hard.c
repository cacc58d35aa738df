/* SPDX-License-Identifier: MIT */
/* Threads are tasks: in a real-time class, on one CPU, by their priorities, and within a budget. */
#include "check.h"

#include <rtl.h>

static volatile bool is_hard, is_done;
static volatile int high_runs;

static int class_of_this_thread(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void *looks(void *argument)
{
	cpu_set_t cpus;

	is_hard = class_of_this_thread() == SCHED_FIFO;
	if (is_hard)
		CHECK(sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) == 1);
	return argument;
}

static pthread_t begin(int priority, void *(*function)(void *), void *argument)
{
	struct sched_param parameters = { .sched_priority = priority };
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	RETURNS(pthread_attr_setschedparam(&attr, &parameters), 0);
	RETURNS(pthread_create(&thread, &attr, function, argument), 0);
	return thread;
}

/* Another dispatcher may have the CPU for a while. */
static void need_a_dispatcher(void)
{
	long long end = clock_ns() + LIVENESS;

	for (;;) {
		RETURNS(pthread_join(begin(1, looks, NULL), NULL), 0);
		if (is_hard)
			return;
		if (clock_ns() > end || geteuid() != 0)
			break;
		sleep_ms(100);
	}
	puts("tasks need a CPU without another dispatcher, and root");
	exit(MISSING);
}

/* Executes until it is done, or for very long. */
static void *spins(void *argument)
{
	long long end = clock_ns() + 2 * LIVENESS;

	*(volatile bool *)argument = true;
	while (!is_done && clock_ns() < end)
		;
	return (void *)(size_t)is_done;
}

static void *runs_at_once(void *argument)
{
	high_runs++;
	is_done = true;
	return argument;
}

/* Each release of a more important thread preempts a less important one that never waits. */
static void the_more_important_thread_preempts(void)
{
	volatile bool has_begun = false;
	pthread_t low = begin(1, spins, (void *)&has_begun), high;
	void *value;

	is_done = false;
	UNTIL(has_begun);
	high = begin(2, runs_at_once, NULL);
	RETURNS(pthread_join(high, NULL), 0);
	RETURNS(pthread_join(low, &value), 0);
	CHECK(value && high_runs == 1);
}

/* A thread that never gets the CPU below another one gets it with another priority. */
static void another_priority_holds_while_it_runs(void)
{
	struct sched_param parameters = { .sched_priority = 9 };
	volatile bool has_begun = false;
	pthread_t low, high;
	void *value;

	is_done = false;
	high = begin(5, spins, (void *)&has_begun);
	UNTIL(has_begun);
	low = begin(1, runs_at_once, NULL);
	/* Some budgets of the group go by. */
	sleep_ms(100);
	CHECK(!is_done);
	RETURNS(pthread_setschedparam(low, SCHED_FIFO, &parameters), 0);
	RETURNS(pthread_join(low, NULL), 0);
	RETURNS(pthread_join(high, &value), 0);
	CHECK(value);
}

static volatile hrtime_t executed;

static void *never_waits(void *argument)
{
	struct timespec time;

	for (;;) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
		executed = timespec_to_ns(&time);
	}
	return argument;
}

/* It has its budget, and no more: this thread, and the machine, continue. */
static void a_runaway_does_not_lock_the_machine(void)
{
	pthread_t runaway = begin(1000000, never_waits, NULL);
	hrtime_t before;

	UNTIL(executed > 30 * MS);
	before = executed;
	sleep_ms(1);
	UNTIL(executed > before + 10 * MS);
	/* It comes to no cancellation point. */
	RETURNS(pthread_delete_np(runaway), ETIMEDOUT);
	RETURNS(pthread_delete_np(runaway), 0);
}

int main(void)
{
	need_a_dispatcher();
	the_more_important_thread_preempts();
	another_priority_holds_while_it_runs();
	a_runaway_does_not_lock_the_machine();
	/* The end of the program ends it. */
	return 0;
}
