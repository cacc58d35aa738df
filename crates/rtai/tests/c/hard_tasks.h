/* SPDX-License-Identifier: MIT */
/* What programs of RTAI share: hard tasks, their threads and priorities. */
#ifndef HARD_TASKS_H
#define HARD_TASKS_H

#include "check.h"

#include <rtai_lxrt.h>

/* Makes the calling thread's task hard. Another dispatcher may have the CPU for a while. */
static inline void make_hard(void)
{
	RTIME end = rt_get_time() + LIVENESS;

	do {
		rt_make_hard_real_time();
		if (rt_is_hard_real_time(NULL))
			return;
		sleep_ms(100);
	} while (rt_get_time() < end && geteuid() == 0);
	puts("hard tasks need a CPU without another dispatcher, and root");
	exit(MISSING);
}

/* Executes for so many ns of its own. */
static inline void execute(RTIME ns)
{
	RTIME end = time_of(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (time_of(CLOCK_THREAD_CPUTIME_ID) <= end)
		;
}

/* A thread, with `function` a void *(*)(void *). */
static inline pthread_t begin(void *(*function)(void *), void *argument)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, function, argument) == 0);
	return thread;
}

static inline void *join(pthread_t thread)
{
	void *value;

	CHECK(pthread_join(thread, &value) == 0);
	return value;
}

/* A task has this priority of its own, and inherits that one. */
static inline bool has_priorities(RT_TASK *task, int priority, int base)
{
	int has, has_base;

	CHECK(rt_get_priorities(task, &has, &has_base) == 0);
	CHECK(rt_get_inher_prio(task) == has && rt_get_prio(task) == has_base);
	return has == priority && has_base == base;
}

/* What the priority of a task that is not hard has more. */
#define SOFT 1000000000

#endif
