/* SPDX-License-Identifier: MIT */
/*
 * Waits. They are cancellation points, at their ends: what waits is Rust, which cannot be unwound.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define NS 1000000000LL

/* api/threads.rs, api/periods.rs, api/paper.rs */
bool punctual__rtlinux_is_thread(void);
int punctual__rtlinux_wait(void);
int punctual__rtlinux_suspend(void);
int punctual__rtlinux_suspend_other(pthread_t thread);
int punctual__rtlinux_sleep(long long time, bool is_absolute, long long *left);
int punctual__rtlinux_wait_period(void);
int punctual__rtlinux_wait_start(long long *start, long long *period, int priority);
int punctual__rtlinux_wait_program(int pid, int *status);

int pthread_wait_np(void);
int pthread_suspend_np(pthread_t thread);
int rtl_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			struct timespec *left);
int rtl_nanosleep(const struct timespec *time, struct timespec *left);
int rtl_usleep(unsigned int microseconds);
int RTwait_period(void);
int RTwait_start(long long *start, long long *period, int priority);
int RTwait(int pid, int *status);

/* Calls what is Rust, between two cancellation points. */
#define WAIT(call)                                               \
	do {                                                     \
		int state_;                                      \
		pthread_testcancel();                            \
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state_); \
		call;                                            \
		pthread_setcancelstate(state_, NULL);            \
		pthread_testcancel();                            \
	} while (0)

int pthread_wait_np(void)
{
	int result;

	WAIT(result = punctual__rtlinux_wait());
	return result;
}

int pthread_suspend_np(pthread_t thread)
{
	int result;

	if (!punctual__rtlinux_is_thread() || !pthread_equal(thread, pthread_self()))
		return punctual__rtlinux_suspend_other(thread);
	WAIT(result = punctual__rtlinux_suspend());
	return result;
}

static int sleep_ns(long long time, bool is_absolute, struct timespec *left)
{
	long long left_ns;
	int result;

	WAIT(result = punctual__rtlinux_sleep(time, is_absolute, &left_ns));
	if (result && left && !is_absolute) {
		left->tv_sec = left_ns / NS;
		left->tv_nsec = left_ns % NS;
	}
	return result;
}

/* The longest time there is, where it is longer than that. */
static long long ns_of(const struct timespec *time)
{
	return time->tv_sec >= INT64_MAX / NS ? INT64_MAX : time->tv_sec * NS + time->tv_nsec;
}

int rtl_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			struct timespec *left)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_MONOTONIC)
		return EINVAL;
	if (!time || (flags & ~TIMER_ABSTIME) || time->tv_nsec < 0 || time->tv_nsec >= NS)
		return EINVAL;
	if (time->tv_sec < 0)
		return (flags & TIMER_ABSTIME) ? 0 : EINVAL;
	return sleep_ns(ns_of(time), flags & TIMER_ABSTIME, left);
}

int rtl_nanosleep(const struct timespec *time, struct timespec *left)
{
	int result = rtl_clock_nanosleep(CLOCK_MONOTONIC, 0, time, left);

	errno = result ? result : errno;
	return result ? -1 : 0;
}

int rtl_usleep(unsigned int microseconds)
{
	int result = sleep_ns(microseconds * 1000LL, false, NULL);

	errno = result ? result : errno;
	return result ? -1 : 0;
}

int RTwait_period(void)
{
	int result;

	WAIT(result = punctual__rtlinux_wait_period());
	return result;
}

int RTwait_start(long long *start, long long *period, int priority)
{
	int result;

	WAIT(result = punctual__rtlinux_wait_start(start, period, priority));
	return result;
}

int RTwait(int pid, int *status)
{
	int result;

	WAIT(result = punctual__rtlinux_wait_program(pid, status));
	return result;
}
