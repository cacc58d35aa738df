/* SPDX-License-Identifier: MIT */
/* The paper's calls for the calling program, which was not loaded. */
#include "check.h"

#include <rtlinux.h>

#define PERIOD (RT_TICKS_PER_SEC / 200)

int main(void)
{
	RTime now, start, period = PERIOD, bad = -1, none = 0, infinite = 0x7fffffffffffffffLL;

	FAILS(RTget_time(NULL), EFAULT);
	RETURNS(RTget_time(&now), 0);
	CHECK(now / RT_TICKS_PER_SEC <= clock_ns() / (1000 * MS));
	FAILS(RTwait_period(), EINVAL);
	FAILS(RTset_params(NULL, &bad, 1), EINVAL);
	FAILS(RTset_params(NULL, NULL, -1), EINVAL);
	FAILS(RTset_params(NULL, NULL, RT_LOWEST_PRIORITY + 1), EINVAL);
	FAILS(RTwait_start(NULL, &period, 1), EFAULT);
	FAILS(RTwait_start(&now, &bad, 1), EINVAL);
	FAILS(RTwait_start(&now, &period, -1), EINVAL);
	RETURNS(RTget_time(&now), 0);
	start = now + PERIOD;
	RETURNS(RTwait_start(&start, &period, 3), 0);
	RETURNS(RTget_time(&now), 0);
	CHECK(now >= start);
	/* Releases that go by become one: no wait returns before its release. */
	for (int n = 1; n <= 20; n++) {
		RETURNS(RTwait_period(), 0);
		RETURNS(RTget_time(&now), 0);
		CHECK(now >= start + n * PERIOD);
	}
	/* Another period, from a time on; and the priority alone. */
	start = now + 3 * PERIOD;
	period = PERIOD / 2;
	RETURNS(RTset_params(&start, &period, RT_LOWEST_PRIORITY), 0);
	for (int n = 0; n < 5; n++) {
		RETURNS(RTset_params(NULL, NULL, n), 0);
		RETURNS(RTwait_period(), 0);
		RETURNS(RTget_time(&now), 0);
		CHECK(now >= start + n * period);
	}
	/* One that is past is waited for no longer. */
	start = now - PERIOD;
	RETURNS(RTwait_start(&start, NULL, 1), 0);
	RETURNS(RTwait_period(), 0);
	RETURNS(RTset_params(NULL, &none, 1), 0);
	FAILS(RTwait_period(), EINVAL);
	RETURNS(RTset_params(&infinite, &period, 1), 0);
	RETURNS(RTset_params(&now, &infinite, 1), 0);
	RETURNS(RTwait_period(), 0);
	RETURNS(RTset_params(NULL, &none, 0), 0);
	return 0;
}
