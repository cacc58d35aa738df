/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Full decisions, as bench/core/decision.c makes them: charge, end one job, what is due, add one,
 * select, next timer. The jobs are all in group 0, or in the four groups at the third level of a
 * hierarchy, EDF in each, with two levels of budget groups beside it.
 */
#pragma once

#include "calls.h"

/* Group 0 has 1 and 2, of which 1 has 3 and 4, and 2 has 5 and 6. */
#define DECISION_GROUPS 7U
#define DECISION_LEAVES 4U
/* Node 1 is above nodes 2 and 3. */
#define DECISION_NODES 3U

struct decisions {
	pd_u64 random;
	pd_u64 now;
	pd_u64 hash;
	pd_u64 running;
	pd_u64 server_finish;
	pd_u32 trees;
	pd_u32 unused;
	pd_u64 finishes[PD_DECISION_JOBS];
	pd_u64 periods[PD_DECISION_JOBS];
};

#ifdef __bpf__
#define DE(d) PD_POINTER(struct decisions, (d) + PD_OFFSET(beside))
#else
#define DE(d) ((struct decisions *)((char *)(d) - PD_BESIDE))
#endif

PD_INLINE pd_u64 decisions_below(pd_ref d, pd_u64 limit)
{
	DE(d)->random ^= DE(d)->random << 13;
	DE(d)->random ^= DE(d)->random >> 7;
	DE(d)->random ^= DE(d)->random << 17;
	return DE(d)->random % limit;
}

/* Nothing but who it is for; it never ends by itself. */
PD_INLINE struct pd_job_attr PD_ARENA *decisions_draft(pd_ref d, pd_u32 task)
{
	struct pd_job_attr PD_ARENA *a = pd_draft(d);

	a->start = 0;
	a->finish = PD_INFINITE;
	a->budget = PD_INFINITE >> 1;
	a->priority = 0;
	a->cookie = 0;
	a->task = task;
	a->group = 0;
	a->server = 0;
	a->budget_group = 0;
	a->budget_server = 0;
	a->reserved = 0;
	return a;
}

PD_FN pd_u64 decisions_add(pd_ref d, pd_u32 task, pd_u64 now)
{
	struct pd_job_attr PD_ARENA *a = decisions_draft(d, task);
	pd_u64 PD_ARENA *finish = &PD_NTH(DE(d)->finishes, task & (PD_DECISION_JOBS - 1));

	*finish += PD_NTH(DE(d)->periods, task & (PD_DECISION_JOBS - 1));
	a->finish = *finish;
	a->budget = 1000000000;
	a->cookie = task;
	if (DE(d)->trees) {
		a->group = DECISION_GROUPS - DECISION_LEAVES + task % DECISION_LEAVES;
		a->budget_group = 2 + task % 2;
	}
	return (pd_u64)pd_job_add(d, now);
}

/* A server job for `group`, behind the others. */
PD_ALWAYS_INLINE pd_u64 decisions_serve(pd_ref d, pd_u32 group, pd_u64 now)
{
	struct pd_job_attr PD_ARENA *a = decisions_draft(d, PD_NONE);

	DE(d)->server_finish += 1000;
	a->finish = DE(d)->server_finish;
	a->server = group;
	a->group = (group - 1) / 2;
	return (pd_u64)pd_job_add(d, now);
}

PD_FN int decisions_trees(pd_ref d)
{
	pd_u32 i = PD_ZERO(d) + 1;

	pd_while (i < DECISION_GROUPS) {
		pd_group_set_order(d, i, PD_ORDER(PD_BY_FINISH, PD_BY_PRIORITY, 0, 0));
		decisions_serve(d, i, 1);
		i++;
	}
	i = PD_ZERO(d) + 1;
	pd_while (i <= DECISION_NODES) {
		struct pd_job_attr PD_ARENA *a = decisions_draft(d, PD_NONE);

		a->budget_server = i;
		a->budget_group = i / 2;
		if (pd_job_add(d, 1) <= 0)
			return -EINVAL;
		i++;
	}
	return 0;
}

PD_ALWAYS_INLINE int decisions_begin(pd_ref d, pd_u32 jobs, pd_u32 trees)
{
	pd_u32 i = PD_ZERO(d);

	if (!jobs || jobs > PD_DECISION_JOBS)
		return -EINVAL;
	DE(d)->random = 88172645463325252ULL;
	DE(d)->now = 1;
	DE(d)->hash = 0;
	DE(d)->server_finish = 1ULL << 41;
	DE(d)->trees = trees;
	if (pd_group_set_order(d, 0, PD_ORDER(PD_BY_FINISH, PD_BY_PRIORITY, 0, 0)))
		return -EINVAL;
	if (trees && decisions_trees(d))
		return -EINVAL;
	pd_while (i < jobs) {
		pd_i64 task = pd_task_add(d, 1);

		if (task < 0 || task >= PD_DECISION_JOBS)
			return -EINVAL;
		PD_NTH(DE(d)->periods, task) = (1 + decisions_below(d, 100)) * 1000 * jobs;
		PD_NTH(DE(d)->finishes, task) =
			1ULL << 40 | decisions_below(d, PD_NTH(DE(d)->periods, task));
		decisions_add(d, (pd_u32)task, 1);
		i++;
	}
	DE(d)->running = pd_select(d, 0, 1);
	return 0;
}

/* The server jobs of the running one give way to the others of their groups. */
PD_FN int decisions_turn(pd_ref d, pd_u64 now)
{
	pd_u32 depth = PD_ZERO(d);

	pd_while (depth < 2) {
		pd_u64 job = pd_path(d, 0, depth);

		if (job) {
			pd_u32 group = PD_JOB(d, (pd_u32)job)->attr.server;

			decisions_serve(d, group, now);
			pd_job_cancel(d, job, now);
		}
		depth++;
	}
	return 0;
}

PD_ALWAYS_INLINE pd_u64 decisions_run(pd_ref d, pd_u32 count)
{
	pd_while (count--) {
		pd_u64 now = DE(d)->now += 1000;
		pd_u64 running = DE(d)->running;
		pd_u32 task = PD_JOB(d, (pd_u32)running)->attr.task;

		pd_charge(d, running, 900, now);
		pd_job_complete(d, running, now);
		pd_advance(d, now);
		decisions_add(d, task & (PD_DECISION_JOBS - 1), now);
		if (DE(d)->trees && count % 16 == 0)
			decisions_turn(d, now);
		DE(d)->running = pd_select(d, 0, now);
		DE(d)->hash = (DE(d)->hash ^ DE(d)->running ^ pd_timer(d, 0, 1, now)) *
			      0x9E3779B97F4A7C15ULL;
		PD(d)->event_tail = PD(d)->event_head;
	}
	return DE(d)->hash;
}
