/* SPDX-License-Identifier: MIT */
/* Programs for RTload; what one does is its name. */
#include "check.h"

#include <rtlinux.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "loaded.h"

static long locked_kib(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char line[256];
	long kib = -1;

	CHECK(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "VmLck: %ld", &kib);
	fclose(status);
	return kib;
}

static void probe(void)
{
	struct facts facts = { 0 };
	struct rlimit limit;

	facts.policy = sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
	facts.locked_kib = locked_kib();
	CHECK(getrlimit(RLIMIT_AS, &limit) == 0);
	facts.memory_is_fixed = limit.rlim_cur == limit.rlim_max && limit.rlim_cur == 128 << 20;
	/* There is no more than that. */
	facts.memory_is_bounded = mmap(NULL, 129 << 20, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
	CHECK(getrlimit(RLIMIT_STACK, &limit) == 0);
	facts.stack_is_fixed = limit.rlim_cur == limit.rlim_max && limit.rlim_cur == 1 << 20;
	RETURNS(RTfifo_put(FACTS, (const char *)&facts, sizeof(facts)), sizeof(facts));
}

static void is_periodic(void)
{
	RTime now, start, period = 5 * MS;

	RETURNS(RTget_time(&now), 0);
	start = now + period;
	RETURNS(RTwait_start(&start, &period, 3), 0);
	for (int n = 0; n < PERIODS; n++) {
		RETURNS(RTget_time(&now), 0);
		CHECK(now >= start + n * period);
		RETURNS(RTfifo_put(TIMES, (const char *)&now, sizeof(now)), sizeof(now));
		RETURNS(RTwait_period(), 0);
	}
	RETURNS(RTset_params(NULL, NULL, 1), 0);
	FAILS(RTset_params(NULL, NULL, -1), EINVAL);
}

static void asks_all_the_time(void)
{
	int asked = 0;

	/* The program that has loaded this one takes some at a time; none is waited for. */
	for (int n = 0; n < 20000; n++)
		asked += RTset_params(NULL, NULL, n % RT_LOWEST_PRIORITY) == 0;
	CHECK(asked > 0);
}

int main(int argc, char **argv)
{
	const char *name = strrchr(argv[0], '/');

	CHECK(argc == 1 && name);
	name++;
	if (strcmp(name, "probe") == 0)
		probe();
	else if (strcmp(name, "periodic") == 0)
		is_periodic();
	else if (strcmp(name, "asks") == 0)
		asks_all_the_time();
	else if (strcmp(name, "exits") == 0)
		return 3;
	else if (strcmp(name, "crashes") == 0)
		abort();
	else if (strcmp(name, "spins") == 0)
		for (long long end = clock_ns() + 2 * LIVENESS; clock_ns() < end;)
			;
	else
		return 99;
	return 0;
}
