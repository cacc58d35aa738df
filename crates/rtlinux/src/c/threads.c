/* SPDX-License-Identifier: MIT */
/*
 * Threads. Their first function is C, because pthread_exit and pthread_cancel unwind it, and no
 * frame of Rust may be unwound by them. The end of the thread then ends its part, by the destructor
 * of the thread's own storage.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <time.h>

/* How long pthread_delete_np waits for a thread, s. */
#define PATIENCE 5

/* RTL_SIGNAL_CANCEL, RTL_SIGNAL_SUSPEND */
#define SIGNAL_CANCEL 2
#define SIGNAL_SUSPEND 3

/* api/threads.rs, api/periods.rs */
void punctual__rtlinux_begin(void *start, void *(**function)(void *), void **argument);
int punctual__rtlinux_create(pthread_t *thread, size_t stack, bool detached, const void *cpus,
			     size_t cpus_size, void *start);
int punctual__rtlinux_begin_join(pthread_t thread);
void punctual__rtlinux_end_join(pthread_t thread, bool is_joined);
int punctual__rtlinux_detach(pthread_t thread);
int rtl_pthread_cancel(pthread_t thread);
bool punctual__rtlinux_is_thread(void);
void punctual__rtlinux_report_endless(unsigned int seconds);
int punctual__rtlinux_signal(pthread_t thread, int signal);
int punctual__rtlinux_suspend_other(pthread_t thread);
/* waits.c */
int pthread_suspend_np(pthread_t thread);

int rtl_pthread_join(pthread_t thread, void **value);
int rtl_pthread_detach(pthread_t thread);
int rtl_pthread_kill(pthread_t thread, int signal);
int rtl_pthread_setcanceltype(int type, int *before);
int pthread_delete_np(pthread_t thread);

static void *first_function(void *start)
{
	void *(*function)(void *);
	void *argument;

	punctual__rtlinux_begin(start, &function, &argument);
	return function(argument);
}

int punctual__rtlinux_create(pthread_t *thread, size_t stack, bool detached, const void *cpus,
			     size_t cpus_size, void *start)
{
	pthread_attr_t attr;
	int refused = pthread_attr_init(&attr);

	if (refused)
		return refused;
	refused = pthread_attr_setstacksize(&attr, stack);
	if (!refused && detached)
		refused = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	/* A task makes it, perhaps, which has one CPU. */
	if (!refused && cpus_size)
		refused = pthread_attr_setaffinity_np(&attr, cpus_size, cpus);
	if (!refused)
		refused = pthread_create(thread, &attr, first_function, start);
	pthread_attr_destroy(&attr);
	return refused;
}

static void give_up(void *thread)
{
	punctual__rtlinux_end_join(*(pthread_t *)thread, false);
}

/* `until`: at most, or NULL. */
static int join(pthread_t thread, void **value, const struct timespec *until)
{
	int refused = punctual__rtlinux_begin_join(thread);

	if (refused)
		return refused;
	pthread_cleanup_push(give_up, &thread);
	refused = until ? pthread_timedjoin_np(thread, value, until) : pthread_join(thread, value);
	pthread_cleanup_pop(0);
	punctual__rtlinux_end_join(thread, refused == 0);
	return refused;
}

int rtl_pthread_join(pthread_t thread, void **value)
{
	return join(thread, value, NULL);
}

int rtl_pthread_detach(pthread_t thread)
{
	int refused = punctual__rtlinux_detach(thread);

	return refused ? refused : pthread_detach(thread);
}

int rtl_pthread_kill(pthread_t thread, int signal)
{
	if (signal == SIGNAL_CANCEL)
		return rtl_pthread_cancel(thread);
	if (signal == SIGNAL_SUSPEND)
		return pthread_suspend_np(thread);
	return punctual__rtlinux_signal(thread, signal);
}

/* A thread that is cancelled at any instant may hold a lock of this library. */
int rtl_pthread_setcanceltype(int type, int *before)
{
	if (type == PTHREAD_CANCEL_ASYNCHRONOUS)
		return ENOTSUP;
	return pthread_setcanceltype(type, before);
}

int pthread_delete_np(pthread_t thread)
{
	struct timespec until;
	int refused, cancelled;

	if (punctual__rtlinux_is_thread() && pthread_equal(thread, pthread_self()))
		pthread_exit(PTHREAD_CANCELED);
	cancelled = rtl_pthread_cancel(thread);
	/* One that has ended can still be joined. */
	if (cancelled && cancelled != ESRCH)
		return cancelled;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE;
	refused = join(thread, NULL, &until);
	if (refused == ETIMEDOUT) {
		rtl_pthread_detach(thread);
		punctual__rtlinux_report_endless(PATIENCE);
	}
	/* It is detached: nothing is left of it when it has ended, by now perhaps. */
	return refused == EINVAL || (refused == ESRCH && !cancelled) ? 0 : refused;
}
