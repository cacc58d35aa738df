/* SPDX-License-Identifier: MIT */
/*
 * One full decision of the dispatcher: charge, due timers, end one job, add one, select, next
 * timer. With `jobs` jobs in group 0, EDF, as RED-Linux Table 5 counts them; or with `trees` in the
 * four groups at the third level of a hierarchy, EDF in each, where each job and its path are
 * limited by two levels of budget groups (RED-Linux, V-C).
 *
 *   decision JOBS DECISIONS [trees]   prints JOBS, ns per decision (min, median, p99 of batches of
 *                                     64) and the median in ticks of the time-stamp counter (0
 *                                     without one)
 *
 * Under callgrind with --toggle-collect=decide the instructions of the decisions alone are counted.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../dispatcher/punctual_dispatcher.h"

static uint64_t state = 88172645463325252ULL;

static uint64_t random_number(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static uint64_t *periods, *finishes; /* of each task */

/* Group 0 has 1 and 2, of which 1 has 3 and 4, and 2 has 5 and 6. Node 1 is above nodes 2 and 3. */
enum { GROUPS = 7, LEAVES = 4, NODES = 3 };

static int trees;

static void draft(pd_ref d, uint32_t task, uint64_t finish, uint64_t now)
{
	struct pd_job_attr *j = pd_job_draft(d);

	j->start = now;
	j->finish = finish;
	j->budget = 1000000000;
	j->priority = 0;
	j->cookie = task;
	j->task = task;
	j->group = trees ? GROUPS - LEAVES + task % LEAVES : 0;
	j->server = 0;
	j->budget_group = trees ? 2 + task % 2 : 0;
	j->budget_server = 0;
	j->reserved = 0;
}

/* A server job or a segment, which never ends by itself. */
static void lasting(pd_ref d, uint32_t server, uint32_t node, uint64_t finish, uint64_t now)
{
	struct pd_job_attr *j = pd_job_draft(d);

	draft(d, PD_NONE, finish, now);
	j->budget = PD_INFINITE >> 1;
	j->group = server ? (server - 1) / 2 : 0;
	j->server = server;
	j->budget_group = node / 2;
	j->budget_server = node;
	pd_job_add(d, now);
}

static uint64_t server_finish = 1ULL << 41;

static int plant(pd_ref d, uint64_t now)
{
	for (uint32_t i = 1; i < GROUPS; i++) {
		if (pd_group_set_order(d, i, PD_ORDER(PD_BY_FINISH, PD_BY_PRIORITY, 0, 0)))
			return 1;
		lasting(d, i, 0, server_finish += 1000, now);
	}
	for (uint32_t i = 1; i <= NODES; i++)
		lasting(d, 0, i, PD_INFINITE, now);
	return 0;
}

/* The server jobs of the running one are replenished, and yield to the others of their groups. */
static void turn(pd_ref d, uint64_t now)
{
	uint64_t path[2] = { pd_path(d, 0, 0), pd_path(d, 0, 1) };
	uint32_t leaf = GROUPS - LEAVES + pd_job_task(d, pd_path(d, 0, 2)) % LEAVES;

	for (int i = 0; i < 2; i++) {
		pd_job_cancel(d, path[i], now);
		lasting(d, i ? leaf : (leaf - 1) / 2, 0, server_finish += 1000, now);
	}
}

static uint64_t running; /* id */

/* The running job executed for `ran` ns and is done; its task's next one finishes at `finish`. */
__attribute__((noipa)) uint64_t decide(pd_ref d, uint64_t now, uint64_t ran, uint32_t task,
				       uint64_t finish)
{
	pd_charge(d, running, ran, now);
	pd_job_complete(d, running, now);
	pd_advance(d, now);
	draft(d, task, finish, now);
	pd_job_add(d, now);
	running = pd_select(d, 0, now);
	return pd_timer(d, 0, 1, now);
}

/* The task's next job is one period on. */
static uint64_t next_finish(uint32_t task)
{
	return finishes[task] += periods[task];
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static uint64_t nanoseconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint64_t ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

enum { BATCH = 64 };

int main(int argc, char **argv)
{
	uint32_t jobs = argc > 1 ? (uint32_t)atoi(argv[1]) : 100;
	uint32_t decisions = argc > 2 ? (uint32_t)atoi(argv[2]) : 100000;
	struct pd_limits limits = { .jobs = jobs + 1 + GROUPS + NODES, .tasks = jobs,
				    .groups = GROUPS, .budget_groups = NODES, .depth = 3,
				    .events = 64, .records = 1 << 14, .cpus = 1 };
	uint64_t size = pd_size(&limits);
	void *memory = aligned_alloc(64, (size + 63) & ~63ULL);
	uint64_t now = 1, *batches = calloc(decisions / BATCH + 1, sizeof(*batches));
	uint64_t *stamps = calloc(decisions / BATCH + 1, sizeof(*stamps));
	uint32_t i, n = 0;
	pd_ref d;

	memset(memory, 0, size);
	d = pd_init(memory, &limits);
	if (!d || pd_group_set_order(d, 0, PD_ORDER(PD_BY_FINISH, PD_BY_PRIORITY, 0, 0)))
		return 1;
	trees = argc > 3 && !strcmp(argv[3], "trees");
	if (trees && plant(d, now))
		return 1;
	periods = calloc(jobs, sizeof(*periods));
	finishes = calloc(jobs, sizeof(*finishes));
	for (i = 0; i < jobs; i++) {
		pd_task_add(d, now);
		/* 1 to 100 times the time in which each has one job; finishes far enough off. */
		periods[i] = (1 + random_number() % 100) * 1000 * jobs;
		finishes[i] = 1ULL << 40 | random_number() % periods[i];
		draft(d, i, next_finish(i), now);
		pd_job_add(d, now);
	}
	while (pd_event_pop(d))
		;
	running = pd_select(d, 0, now);
	for (i = 0; i + BATCH <= decisions; i += BATCH) {
		uint64_t before = nanoseconds(), stamp = ticks();

		for (uint32_t k = 0; k < BATCH; k++) {
			uint32_t task = pd_job_task(d, running);

			now += 1000;
			decide(d, now, 900, task, next_finish(task));
			if (trees && k % 16 == 0) {
				turn(d, now);
				running = pd_select(d, 0, now);
			}
			while (pd_event_pop(d))
				;
		}
		stamps[n] = (ticks() - stamp) / BATCH;
		batches[n++] = (nanoseconds() - before) / BATCH;
	}
	if (n) {
		qsort(batches, n, sizeof(*batches), by_value);
		qsort(stamps, n, sizeof(*stamps), by_value);
		printf("%u %llu %llu %llu %llu\n", jobs, (unsigned long long)batches[0],
		       (unsigned long long)batches[n / 2], (unsigned long long)batches[n * 99ULL / 100],
		       (unsigned long long)stamps[n / 2]);
	}
	return 0;
}
