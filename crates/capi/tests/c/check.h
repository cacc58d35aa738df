/* SPDX-License-Identifier: MIT */
/* What the programs share: assertions, and a set on the CPU that tests use. */
#ifndef CHECK_H
#define CHECK_H

#include <punctual.h>

#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
/* How long a program waits for what must come: far longer than it takes. */
#define LIVENESS (120000 * MS)
/* The machine does not permit it. */
#define MISSING 77

#define CHECK(holds)                                                                    \
	do {                                                                            \
		if (!(holds)) {                                                         \
			fprintf(stderr, "%s:%d: %s; last error: %s\n", __FILE__,        \
				__LINE__, #holds, punctual_last_error());               \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

/* A call fails with this error number, and a text. */
#define FAILS(call, number)                                                             \
	do {                                                                            \
		long long returned_ = (long long)(call);                                \
		if (returned_ != -(number) || !*punctual_last_error()) {                \
			fprintf(stderr, "%s:%d: %s returns %lld, not -%s; %s\n",        \
				__FILE__, __LINE__, #call, returned_, #number,          \
				punctual_last_error());                                 \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

static inline void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* The last CPU, as the other tests. Another dispatcher may have it for a while. */
static inline struct punctual *open_set(const struct punctual_attr *attr)
{
	uint64_t until = punctual_clock() + LIVENESS;
	struct punctual *set = NULL;
	int result;

	while ((result = punctual_open(attr, &set)) == -EBUSY && punctual_clock() < until)
		sleep_ms(100);
	if (result == -EPERM) {
		puts(punctual_last_error());
		exit(MISSING);
	}
	CHECK(result == 0 && set);
	return set;
}

static inline struct punctual_task_attr task_attr(const char *name, uint64_t period,
						  uint64_t budget)
{
	struct punctual_task_attr attr = PUNCTUAL_TASK_ATTR_INIT;

	attr.name = name;
	attr.period = period;
	attr.budget = budget;
	return attr;
}

static inline uint64_t executed(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

/* SCHED_FIFO or SCHED_OTHER. */
static inline int class_of_this_thread(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

#endif
