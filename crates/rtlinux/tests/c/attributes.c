/* SPDX-License-Identifier: MIT */
/* Attributes of threads keep what they were given, and nothing that is out of its range. */
#include "check.h"

#include <rtl.h>

int main(void)
{
	struct sched_param parameters = { .sched_priority = 7 };
	pthread_attr_t attr;
	size_t size;
	int value;

	RETURNS(pthread_attr_init(NULL), EINVAL);
	RETURNS(pthread_attr_init(&attr), 0);
	RETURNS(pthread_attr_setschedparam(&attr, &parameters), 0);
	for (int bad = -1; bad <= 1000001; bad += 1000002) {
		parameters.sched_priority = bad;
		RETURNS(pthread_attr_setschedparam(&attr, &parameters), EINVAL);
	}
	RETURNS(pthread_attr_setschedparam(&attr, NULL), EINVAL);
	RETURNS(pthread_attr_getschedparam(&attr, &parameters), 0);
	CHECK(parameters.sched_priority == 7);
	RETURNS(pthread_attr_getschedparam(&attr, NULL), EINVAL);
	RETURNS(pthread_attr_setschedpolicy(&attr, SCHED_RR), 0);
	RETURNS(pthread_attr_setschedpolicy(&attr, 77), EINVAL);
	RETURNS(pthread_attr_getschedpolicy(&attr, &value), 0);
	CHECK(value == SCHED_RR);
	RETURNS(pthread_attr_getstacksize(&attr, &size), 0);
	CHECK(size == 0);
	RETURNS(pthread_attr_setstacksize(&attr, 20000), 0);
	RETURNS(pthread_attr_setstacksize(&attr, RTL_PTHREAD_STACK_MIN - 1), EINVAL);
	RETURNS(pthread_attr_getstacksize(&attr, &size), 0);
	CHECK(size == 20000);
	RETURNS(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED), 0);
	RETURNS(pthread_attr_setdetachstate(&attr, 77), EINVAL);
	RETURNS(pthread_attr_getdetachstate(&attr, &value), 0);
	CHECK(value == PTHREAD_CREATE_DETACHED);
	RETURNS(pthread_attr_getcpu_np(&attr, &value), 0);
	CHECK(value == -1);
	RETURNS(pthread_attr_setcpu_np(&attr, rtl_getcpuid()), 0);
	RETURNS(pthread_attr_setcpu_np(&attr, -1), EINVAL);
	RETURNS(pthread_attr_setcpu_np(&attr, 100000), EINVAL);
	RETURNS(pthread_attr_getcpu_np(&attr, &value), 0);
	CHECK(value >= 0 && rtl_cpu_exists(value));
	RETURNS(pthread_attr_setfp_np(&attr, 1), 0);
	RETURNS(pthread_attr_getfp_np(&attr, &value), 0);
	CHECK(value == 1);
	CHECK(sched_get_priority_max(SCHED_FIFO) == 1000000);
	CHECK(sched_get_priority_min(SCHED_FIFO) == 0);
	RETURNS(pthread_attr_destroy(&attr), 0);
	/* Of no use any more. */
	RETURNS(pthread_attr_destroy(&attr), EINVAL);
	RETURNS(pthread_attr_setfp_np(&attr, 1), EINVAL);
	RETURNS(pthread_attr_getcpu_np(&attr, &value), EINVAL);
	return 0;
}
