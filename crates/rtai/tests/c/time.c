/* SPDX-License-Identifier: MIT */
/* Clocks and counts. */
#include "check.h"

#include <rtai_lxrt.h>

static void is_between(RTIME (*read)(void), clockid_t clock)
{
	RTIME before = time_of(clock), time = read(), after = time_of(clock);

	CHECK(before <= time && time <= after);
}

static RTIME time_of_cpu(void)
{
	return rt_get_time_cpuid(0);
}

static RTIME time_of_cpu_ns(void)
{
	return rt_get_time_ns_cpuid(0);
}

int main(void)
{
	RTIME before;

	is_between(rt_get_time, CLOCK_MONOTONIC);
	is_between(rt_get_tscnt, CLOCK_MONOTONIC);
	is_between(rt_get_time_ns, CLOCK_MONOTONIC);
	is_between(rt_get_cpu_time_ns, CLOCK_MONOTONIC);
	is_between(time_of_cpu, CLOCK_MONOTONIC);
	is_between(time_of_cpu_ns, CLOCK_MONOTONIC);
	is_between(rt_get_real_time, CLOCK_REALTIME);
	is_between(rt_get_real_time_ns, CLOCK_REALTIME);

	CHECK(nano2count(-5) == -5 && count2nano(1LL << 62) == 1LL << 62);
	CHECK(nano2count_cpuid(7, 0) == 7 && count2nano_cpuid(7, 1) == 7);
	CHECK(rt_get_cpu_freq() == 1000000000);
	CHECK(nanos2tscnts(1000, 2000000000) == 2000 && tscnts2nanos(2000, 2000000000) == 1000);

	CHECK(!rt_is_hard_timer_running());
	RETURNS(start_rt_timer(500000), 500000);
	CHECK(rt_is_hard_timer_running() == 1);
	stop_rt_timer();
	CHECK(!rt_is_hard_timer_running());
	RETURNS(start_rt_timer_ns(1000000), 1000000);
	rt_set_oneshot_mode();
	CHECK(!rt_is_hard_timer_running());
	start_rt_timer(0);
	rt_set_periodic_mode();
	CHECK(!rt_is_hard_timer_running());

	before = time_of(CLOCK_THREAD_CPUTIME_ID);
	rt_busy_sleep(-1);
	rt_busy_sleep(3 * MS);
	CHECK(time_of(CLOCK_MONOTONIC) >= before);
	before = rt_get_time();
	rt_busy_sleep(3 * MS);
	CHECK(rt_get_time() - before >= 3 * MS);
	return 0;
}
