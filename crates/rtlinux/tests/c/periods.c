/* SPDX-License-Identifier: MIT */
/* Periods, suspension, sleep and critical sections of threads. */
#include "check.h"

#include <rtl.h>
#include <rtl_spinlock.h>

#define PERIOD (5 * MS)

static volatile int passed, state;
static volatile hrtime_t start;

/* A wait for release `number` returns no earlier. */
static void waits_for(long number)
{
	RETURNS(pthread_wait_np(), 0);
	CHECK(gethrtime() >= start + number * PERIOD);
}

/*
 * On a machine that takes the CPU for some periods, releases become one: then it returns at a later
 * one. No wait returns before the release that it waits for.
 */
static void *is_periodic(void *argument)
{
	hrtime_t late;

	start = gethrtime() + 2 * PERIOD;
	RETURNS(pthread_make_periodic_np(pthread_self(), start, PERIOD), 0);
	for (long n = 0; n < 20; n++)
		waits_for(n);
	/* Three releases go by, and end one wait. */
	late = gethrtime() + 4 * PERIOD;
	while (gethrtime() < late)
		rtl_delay(MS / 10);
	RETURNS(pthread_wait_np(), 0);
	late = gethrtime();
	RETURNS(pthread_wait_np(), 0);
	/* At a release of the same grid, after that one. */
	CHECK(gethrtime() >= start + ((late - start) / PERIOD) * PERIOD);
	/* A time of CLOCK_REALTIME is understood. */
	RETURNS(pthread_make_periodic_np(pthread_self(), clock_gethrtime(CLOCK_REALTIME), PERIOD), 0);
	for (int n = 0; n < 3; n++)
		RETURNS(pthread_wait_np(), 0);
	/* A single release. */
	start = gethrtime() + PERIOD;
	RETURNS(pthread_make_periodic_np(pthread_self(), start, 0), 0);
	waits_for(0);
	RETURNS(pthread_make_periodic_np(pthread_self(), 0, -1), EINVAL);
	state = 1;
	/* No release: until it is woken. */
	RETURNS(pthread_wait_np(), 0);
	state = 2;
	RETURNS(pthread_suspend_np(pthread_self()), 0);
	state = 3;
	/* Until another thread gives it periods. */
	RETURNS(pthread_suspend_np(pthread_self()), 0);
	CHECK(gethrtime() >= start);
	state = 4;
	return argument;
}

static void others_wake_it(void)
{
	pthread_t thread;

	RETURNS(pthread_create(&thread, NULL, is_periodic, NULL), 0);
	UNTIL(state == 1);
	RETURNS(pthread_wakeup_np(thread), 0);
	UNTIL(state == 2);
	RETURNS(pthread_kill(thread, RTL_SIGNAL_WAKEUP), 0);
	UNTIL(state == 3);
	start = gethrtime() + PERIOD;
	RETURNS(pthread_make_periodic_np(thread, start, PERIOD), 0);
	UNTIL(state == 4);
	RETURNS(pthread_join(thread, NULL), 0);
	RETURNS(pthread_wakeup_np(thread), ESRCH);
	RETURNS(pthread_suspend_np(thread), ESRCH);
	RETURNS(pthread_make_periodic_np(thread, 0, 1), ESRCH);
	RETURNS(pthread_kill(thread, RTL_SIGNAL_SUSPEND), ESRCH);
}

static void *goes_on(void *argument)
{
	pthread_make_periodic_np(pthread_self(), gethrtime(), MS);
	for (;;) {
		passed++;
		pthread_wait_np();
	}
	return argument;
}

static void others_suspend_it(void)
{
	pthread_t thread;
	int before;

	RETURNS(pthread_create(&thread, NULL, goes_on, NULL), 0);
	UNTIL(passed > 3);
	RETURNS(pthread_kill(thread, 77), EINVAL);
	RETURNS(pthread_kill(thread, RTL_SIGNAL_NULL), 0);
	for (int n = 0; n < 20; n++) {
		RETURNS(pthread_suspend_np(thread), 0);
		/* It may have begun one more. */
		before = passed + 1;
		sleep_ms(5);
		CHECK(passed <= before);
		before = passed;
		RETURNS(pthread_wakeup_np(thread), 0);
		UNTIL(passed > before + 1);
	}
	/* It is stopped, and started again. */
	RETURNS(pthread_make_periodic_np(thread, HRTIME_INFINITY, 0), 0);
	before = passed + 1;
	sleep_ms(5);
	CHECK(passed <= before);
	before = passed;
	RETURNS(pthread_make_periodic_np(thread, gethrtime(), MS), 0);
	UNTIL(passed > before + 2);
	RETURNS(pthread_delete_np(thread), 0);
}

static void *is_woken(void *argument)
{
	struct timespec time = { 1000, 5 }, left;

	errno = 0;
	RETURNS(nanosleep(&time, &left), -1);
	CHECK(errno == EINTR && left.tv_sec > 0 && left.tv_sec <= 1000);
	RETURNS(clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &left), EINTR);
	state = 6;
	RETURNS(usleep(1000000000), -1);
	return argument;
}

static void sleeps_as_posix_has_it(void)
{
	hrtime_t until = gethrtime() + 3 * MS;
	struct timespec bad[] = { { 0, -1 }, { 0, NSECS_PER_SEC } }, past = { -1, 0 };
	pthread_t thread;

	/* An ordinary thread may sleep, too. */
	RETURNS(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, hrt2ts(until), NULL), 0);
	CHECK(gethrtime() >= until);
	until = clock_gethrtime(CLOCK_REALTIME) + 3 * MS;
	RETURNS(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, hrt2ts(until), NULL), 0);
	until = gethrtime() + 2 * MS;
	RETURNS(nanosleep(hrt2ts(2 * MS), NULL), 0);
	CHECK(gethrtime() >= until);
	RETURNS(usleep(1000), 0);
	for (int n = 0; n < 2; n++) {
		FAILS(nanosleep(&bad[n], NULL), EINVAL);
		RETURNS(clock_nanosleep(CLOCK_MONOTONIC, 0, &bad[n], NULL), EINVAL);
	}
	RETURNS(clock_nanosleep(CLOCK_MONOTONIC, 0, NULL, NULL), EINVAL);
	RETURNS(clock_nanosleep(CLOCK_MONOTONIC, 0, &past, NULL), EINVAL);
	RETURNS(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &past, NULL), 0);
	RETURNS(clock_nanosleep(CLOCK_MONOTONIC, 77, hrt2ts(MS), NULL), EINVAL);
	RETURNS(clock_nanosleep(-7, 0, hrt2ts(MS), NULL), EINVAL);
	RETURNS(pthread_create(&thread, NULL, is_woken, NULL), 0);
	/* A wake-up that comes before the sleep is lost, so there are more of them. */
	UNTIL((pthread_wakeup_np(thread), state == 6));
	UNTIL(pthread_wakeup_np(thread) == ESRCH);
	RETURNS(pthread_join(thread, NULL), 0);
}

#define SECTIONS 2000
static volatile int inside;
static pthread_spinlock_t lock;

static void *is_alone(void *argument)
{
	for (int n = 0; n < SECTIONS; n++) {
		rtl_irqstate_t outer, inner;

		rtl_no_interrupts(outer);
		rtl_no_interrupts(inner);
		inside = inside + 1;
		rtl_restore_interrupts(inner);
		RETURNS(pthread_spin_lock(&lock), 0);
		RETURNS(pthread_spin_unlock(&lock), 0);
		inside = inside + 1;
		rtl_restore_interrupts(outer);
	}
	RETURNS(pthread_spin_lock(&lock), 0);
	inside = inside + 1;
	RETURNS(pthread_spin_unlock(&lock), 0);
	rtl_stop_interrupts();
	inside = inside + 1;
	/* It ends within the section. */
	return argument;
}

static void excludes_others(void)
{
	pthread_t threads[3];

	rtl_allow_interrupts();
	RETURNS(pthread_spin_init(&lock, PTHREAD_PROCESS_SHARED), ENOTSUP);
	RETURNS(pthread_spin_init(&lock, PTHREAD_PROCESS_PRIVATE), 0);
	for (int n = 0; n < 3; n++)
		RETURNS(pthread_create(&threads[n], NULL, is_alone, NULL), 0);
	for (int n = 0; n < 3; n++)
		RETURNS(pthread_join(threads[n], NULL), 0);
	RETURNS(inside, 3 * (2 * SECTIONS + 2));
	RETURNS(pthread_spin_destroy(&lock), 0);
	rtl_end_critical_np(rtl_begin_critical_np());
}

int main(void)
{
	RETURNS(pthread_wait_np(), EPERM);
	RETURNS(rtl_schedule(), 0);
	others_wake_it();
	others_suspend_it();
	sleeps_as_posix_has_it();
	excludes_others();
	return 0;
}
