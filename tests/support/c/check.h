/* SPDX-License-Identifier: MIT */
/* What programs in C share: assertions, clocks, and waits with an end. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* A call returns -1, and errno is this. */
#define FAILS(call, number)                                                             \
	do {                                                                            \
		errno = 0;                                                              \
		RETURNS(call, -1);                                                      \
		RETURNS(errno, number);                                                 \
	} while (0)

/* The time of a clock, ns. */
static inline long long time_of(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

static inline long long clock_ns(void)
{
	return time_of(CLOCK_MONOTONIC);
}

static inline void sleep_ms(long ms)
{
	struct timespec time = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* Waits until it holds. */
#define UNTIL(holds)                                                                    \
	do {                                                                            \
		long long end_ = clock_ns() + LIVENESS;                                 \
		while (!(holds)) {                                                      \
			CHECK(clock_ns() < end_ && #holds);                             \
			sleep_ms(1);                                                    \
		}                                                                       \
	} while (0)

#endif
