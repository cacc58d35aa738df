/* SPDX-License-Identifier: MIT */
/*
 * Clocks of RT-Linux 2 and 3. Times are ns.
 */
#ifndef RTL_TIME_H
#define RTL_TIME_H

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef long long hrtime_t;

#define HRTIME_INFINITY 0x7fffffffffffffffLL
#define NSECS_PER_SEC 1000000000

/* The clock of pthread_make_periodic_np, which takes times of CLOCK_REALTIME, too. */
#define CLOCK_RTL_SCHED CLOCK_MONOTONIC

#define RTL_CLOCK_MODE_ONESHOT 1
#define RTL_CLOCK_MODE_PERIODIC 2

/*
 * The time since the machine was started: CLOCK_MONOTONIC.
 * Test: time.c
 */
hrtime_t gethrtime(void);

/*
 * The time of CLOCK_REALTIME, since the Epoch, or of CLOCK_MONOTONIC. -EINVAL: there is no such
 * clock.
 * Test: time.c
 */
hrtime_t clock_gethrtime(clockid_t clock);

/*
 * CLOCK_MONOTONIC.
 * Test: time.c
 */
clockid_t rtl_getschedclock(void);

/*
 * Returns 0: the timers are exact in both modes. EINVAL: there is no such clock or mode, or no
 * period for RTL_CLOCK_MODE_PERIODIC.
 * Test: time.c
 */
int rtl_setclockmode(clockid_t clock, int mode, hrtime_t period);

/*
 * Executes for so long.
 * Test: time.c
 */
void rtl_delay(hrtime_t ns);

/* A time as struct timespec has it, and back. */
static inline struct timespec timespec_from_ns(hrtime_t ns)
{
	struct timespec time;

	time.tv_sec = (time_t)(ns / NSECS_PER_SEC);
	time.tv_nsec = (long)(ns % NSECS_PER_SEC);
	return time;
}

static inline hrtime_t rtl_timespec_to_ns(const struct timespec *time)
{
	return (hrtime_t)time->tv_sec * NSECS_PER_SEC + time->tv_nsec;
}
#define timespec_to_ns(time) rtl_timespec_to_ns(time)

/* Adds to the struct timespec at the first pointer, or takes away from it. */
static inline void rtl_timespec_add_ns(struct timespec *time, hrtime_t ns)
{
	*time = timespec_from_ns(timespec_to_ns(time) + ns);
}
#define timespec_add_ns(time, ns) rtl_timespec_add_ns((time), (ns))
#define timespec_add(time, other) rtl_timespec_add_ns((time), rtl_timespec_to_ns(other))
#define timespec_sub(time, other) rtl_timespec_add_ns((time), -rtl_timespec_to_ns(other))

/* Compare two of them. */
#define timespec_gt(a, b) (rtl_timespec_to_ns(a) > rtl_timespec_to_ns(b))
#define timespec_ge(a, b) (rtl_timespec_to_ns(a) >= rtl_timespec_to_ns(b))
#define timespec_lt(a, b) (rtl_timespec_to_ns(a) < rtl_timespec_to_ns(b))
#define timespec_le(a, b) (rtl_timespec_to_ns(a) <= rtl_timespec_to_ns(b))

#ifdef __cplusplus
}
#else
/* A time in the place of a pointer to struct timespec, until the end of the block. */
#define hrt2ts(ns)                                            \
	((const struct timespec[1]){ { (ns) / NSECS_PER_SEC, \
				       (ns) % NSECS_PER_SEC } })
#endif

#endif
