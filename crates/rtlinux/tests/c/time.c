/* SPDX-License-Identifier: MIT */
/* Clocks: they advance, and are those of POSIX. */
#include "check.h"

#include <rtl.h>

int main(void)
{
	hrtime_t before = clock_ns(), time = gethrtime(), real;
	struct timespec now, a = timespec_from_ns(1500000000), b = { 0, 999999999 };

	CHECK(before <= time && time <= clock_ns());
	CHECK(clock_gethrtime(CLOCK_MONOTONIC) >= time);
	CHECK(clock_gethrtime(rtl_getschedclock()) >= time);
	CHECK(clock_gethrtime(CLOCK_RTL_SCHED) >= time);
	clock_gettime(CLOCK_REALTIME, &now);
	real = clock_gethrtime(CLOCK_REALTIME);
	/* Whatever sets the clock meanwhile sets it by less than an hour. */
	CHECK(real / NSECS_PER_SEC - now.tv_sec < 3600);
	RETURNS(clock_gethrtime(-7), -EINVAL);
	RETURNS(rtl_setclockmode(CLOCK_REALTIME, RTL_CLOCK_MODE_ONESHOT, 0), 0);
	RETURNS(rtl_setclockmode(CLOCK_MONOTONIC, RTL_CLOCK_MODE_PERIODIC, MS), 0);
	RETURNS(rtl_setclockmode(CLOCK_MONOTONIC, RTL_CLOCK_MODE_PERIODIC, 0), EINVAL);
	RETURNS(rtl_setclockmode(-7, RTL_CLOCK_MODE_ONESHOT, 0), EINVAL);
	RETURNS(rtl_setclockmode(CLOCK_MONOTONIC, 7, MS), EINVAL);
	before = gethrtime();
	rtl_delay(2 * MS);
	CHECK(gethrtime() >= before + 2 * MS);
	rtl_delay(-1);
	CHECK(rtl_getcpuid() >= 0 && rtl_cpu_exists(rtl_getcpuid()));
	CHECK(!rtl_cpu_exists(-1) && !rtl_cpu_exists(100000));
	CHECK(a.tv_sec == 1 && a.tv_nsec == 500000000 && timespec_to_ns(&a) == 1500000000);
	timespec_add_ns(&b, 2);
	CHECK(b.tv_sec == 1 && b.tv_nsec == 1);
	timespec_add(&b, &a);
	CHECK(timespec_to_ns(&b) == 2500000001LL && timespec_gt(&b, &a) && timespec_lt(&a, &b));
	timespec_sub(&b, &a);
	CHECK(timespec_to_ns(&b) == 1000000001 && timespec_ge(&a, &a) && timespec_le(&a, &a));
	CHECK(hrt2ts(3000000004LL)->tv_sec == 3 && hrt2ts(3000000004LL)->tv_nsec == 4);
	return 0;
}
