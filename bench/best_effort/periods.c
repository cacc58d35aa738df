// SPDX-License-Identifier: MIT
/*
 * A task that spins, and how far the CPU time of each of its periods is from its budget, ns.
 *
 *   periods NAME PERIOD_US BUDGET_US SETTLE_MS SECONDS [deadline]
 *
 * It finds its periods by itself: its budget's end shows as a gap in its execution. With "deadline"
 * it gives itself SCHED_DEADLINE; otherwise it is started as a task with that budget.
 */
#include "figures.h"

#include <sys/syscall.h>

struct gap {
	uint64_t from, to; /* the monotonic clock */
	uint64_t executed; /* the thread's CPU clock */
};

static uint64_t own_cpu_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static void under_deadline(uint64_t period, uint64_t budget)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {
		.size = sizeof(attr), .policy = 6,
		.runtime = budget, .deadline = period, .period = period
	};

	if (syscall(SYS_sched_setattr, 0, &attr, 0))
		die("SCHED_DEADLINE");
}

/* Shorter ones are interrupts. */
#define GAP 200000ULL

/* The CPU clock at an instant: of the gap that spans it, or of the last one and what followed. */
static uint64_t executed_at(const struct gap *gaps, int count, uint64_t time)
{
	int i = 0;

	while (i + 1 < count && gaps[i + 1].from <= time)
		i++;
	return gaps[i].executed + (time > gaps[i].to ? time - gaps[i].to : 0);
}

static int periods(const char *name, uint64_t period, uint64_t budget, uint64_t settle,
		   int seconds, int deadline)
{
	int most = 4 * seconds * SECOND / period + 16, count = 0, seen = 0;
	struct gap *gaps = calloc(most, sizeof(*gaps));
	uint64_t *off = calloc(most, sizeof(*off));
	uint64_t began, end, last, phase = period, all = 0;
	char text[64];

	if (!gaps || !off || seconds < 1)
		die("arguments");
	memset(gaps, 1, most * sizeof(*gaps));
	memset(off, 1, most * sizeof(*off));
	if (deadline)
		under_deadline(period, budget);
	began = now() + settle;
	end = began + seconds * SECOND;
	for (last = now(); last < end && count < most;) {
		uint64_t time = now();

		if (time - last > GAP && time > began) {
			gaps[count].from = last;
			gaps[count].to = time;
			gaps[count].executed = own_cpu_clock() - (now() - time);
			count++;
		}
		last = time;
		for (int i = 0; i < 500; i++)
			__asm__ volatile("" ::: "memory");
	}
	if (count < 3)
		die("there are no gaps");
	/* The releases: the earliest of the gaps' ends within a period, from the first one on. */
	for (int i = 0; i < count; i++) {
		uint64_t at = (gaps[i].to - gaps[0].to + period / 2) % period;

		if (at < phase)
			phase = at;
	}
	began = gaps[0].to + phase - period / 2;
	end = gaps[count - 1].to;
	for (uint64_t time = began; time + period <= end && seen < most; time += period) {
		uint64_t got = executed_at(gaps, count, time + period) - executed_at(gaps, count, time);

		all += got;
		off[seen++] = got > budget ? got - budget : budget - got;
	}
	snprintf(text, sizeof(text), "%s_off", name);
	printf("%s_periods\t%d\n", name, seen);
	distribution(text, off, seen);
	printf("%s_mean\t%llu\n", name, (unsigned long long)(all / seen));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 6 || argc == 7)
		return periods(argv[1], atoi(argv[2]) * 1000ULL, atoi(argv[3]) * 1000ULL,
			       atoi(argv[4]) * 1000000ULL, atoi(argv[5]), argc == 7);
	fprintf(stderr, "periods NAME PERIOD_US BUDGET_US SETTLE_MS SECONDS [deadline]\n");
	return 126;
}
