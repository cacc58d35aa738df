/* SPDX-License-Identifier: MIT */
/* What the programs share: assertions, and waits with an end. */
#ifndef CHECK_H
#define CHECK_H

#include <rtai_lxrt.h>

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000LL
/* How long a program waits for what must come: far longer than it takes. */
#define LIVENESS (60000 * MS)
/* The machine does not permit it. */
#define MISSING 77

#define CHECK(holds)                                                                    \
	do {                                                                            \
		if (!(holds)) {                                                         \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds);     \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

/* A call returns this. */
#define RETURNS(call, value)                                                            \
	do {                                                                            \
		long long returned_ = (long long)(call), wanted_ = (long long)(value);  \
		if (returned_ != wanted_) {                                             \
			fprintf(stderr, "%s:%d: %s returns %lld, not %s (%lld)\n",      \
				__FILE__, __LINE__, #call, returned_, #value, wanted_); \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

/* Waits until it holds. */
#define UNTIL(holds)                                                                    \
	do {                                                                            \
		RTIME end_ = rt_get_time() + LIVENESS;                                  \
		while (!(holds)) {                                                      \
			CHECK(rt_get_time() < end_ && #holds);                          \
			sleep_ms(1);                                                    \
		}                                                                       \
	} while (0)

static inline void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

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
	struct timespec time;
	RTIME end = 0, now = 0;

	while (now <= end) {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
		now = time.tv_sec * 1000 * MS + time.tv_nsec;
		if (!end)
			end = now + ns;
	}
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
	return has == priority && has_base == base;
}

/* What the priority of a task that is not hard has more. */
#define SOFT 1000000000

#endif
