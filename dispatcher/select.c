/* SPDX-License-Identifier: MIT */
/*
 * Selection: the best eligible member of group 0 (design, "Selection"), and the next best ones
 * for hosts that keep several ready to run. The order of the first few is found without moving
 * anything: the next best is always a child of one already taken.
 */
#include "internal.h"

PD_API pd_u64 pd_select(pd_ref d, pd_u32 cpu, pd_u64 now)
{
	pd_u32 i = pd_heap_first(d, PD_GROUPS);
	pd_cpu_p c;
	pd_u64 id;

	if (cpu >= PD(d)->limits.cpus)
		return 0;
	c = PD_CPU(d, cpu);
	id = 0;
	c->ranks = 0;
	c->depth = 0;
	if (PD_LIKELY(i != PD_NONE)) {
		id = PD_JOB(d, i)->id;
		c->path[0] = id;
		c->depth = 1;
		c->ranked[0] = i;
		c->ranks = 1;
		c->frontier_size = 0;
	}
	if (c->selected != id) {
		c->selected = id;
		pd_record(d, PD_REC_SELECTED, cpu, now, id, 0);
	}
	return id;
}

PD_INLINE pd_slot_p pd_rank_slot(pd_ref d, pd_u32 position)
{
	return pd_slot_at(d, pd_heap_chunks(d, PD_HEAP(d, PD_GROUPS)), position);
}

/* The best job at the frontier, whose children take its place; PD_NONE if there is none. */
PD_FN pd_i64 pd_frontier_next(pd_ref d, pd_u32 cpu)
{
	pd_cpu_p c = PD_CPU(d, cpu);
	pd_u32 end = pd_heap_size(d, PD_GROUPS) + PD_ROOT;
	pd_u32 best = PD_NONE;
	pd_u32 at = 0;
	pd_u32 i = PD_ZERO(d);

	pd_while (i < c->frontier_size) {
		pd_u32 position = c->frontier[i & (PD_FRONTIER - 1)];

		if (position < end &&
		    (best == PD_NONE ||
		     pd_before(d, PD_GROUPS, pd_rank_slot(d, position)->key,
			       pd_rank_slot(d, position)->item, pd_rank_slot(d, best)))) {
			best = position;
			at = i;
		}
		i++;
	}
	if (best == PD_NONE)
		return PD_NONE;
	c->frontier[at & (PD_FRONTIER - 1)] = 4 * best - 8;
	i = PD_ZERO(d) + 1;
	pd_while (i < 4) {
		c->frontier[c->frontier_size++ & (PD_FRONTIER - 1)] = 4 * best - 8 + i;
		i++;
	}
	return pd_rank_slot(d, best)->item;
}

/* Of one task, one job. */
PD_FN int pd_rank_has_task(pd_ref d, pd_u32 cpu, pd_u32 task)
{
	pd_cpu_p c = PD_CPU(d, cpu);
	pd_u32 i = PD_ZERO(d);

	pd_while (i < c->ranks) {
		if (PD_JOB(d, c->ranked[i])->attr.task == task)
			return 1;
		i++;
	}
	return 0;
}

PD_API pd_u64 pd_runner_up(pd_ref d, pd_u32 cpu, pd_u32 rank)
{
	pd_cpu_p c;

	if (cpu >= PD(d)->limits.cpus || rank >= PD_RANKS)
		return 0;
	c = PD_CPU(d, cpu);
	if (!c->ranks)
		return 0;
	if (!c->frontier_size) {
		c->frontier[0] = PD_ROOT + 1;
		c->frontier[1] = PD_ROOT + 2;
		c->frontier[2] = PD_ROOT + 3;
		c->frontier[3] = PD_ROOT + 4;
		c->frontier_size = 4;
	}
	pd_while (c->ranks <= rank && c->frontier_size + 4 < PD_FRONTIER) {
		pd_u32 i = (pd_u32)pd_frontier_next(d, cpu);

		if (i == PD_NONE)
			return 0;
		if (!pd_rank_has_task(d, cpu, PD_JOB(d, i)->attr.task))
			c->ranked[c->ranks++] = i;
	}
	return c->ranks > rank ? PD_JOB(d, c->ranked[rank])->id : 0;
}

PD_API pd_u64 pd_path(pd_ref d, pd_u32 cpu, pd_u32 depth)
{
	if (cpu >= PD(d)->limits.cpus || depth >= PD_CPU(d, cpu)->depth)
		return 0;
	return PD_CPU(d, cpu)->path[depth & (PD_MAX_DEPTH - 1)];
}

/* When the first of the jobs that this CPU may run, other than the selected one, has used up its
 * budget. */
PD_FN pd_u64 pd_timer_of_others(pd_ref d, pd_u32 cpu, pd_u32 ranks, pd_u64 now)
{
	pd_u64 next = PD_INFINITE;
	pd_u32 i = PD_ZERO(d) + 1;

	pd_runner_up(d, cpu, pd_min(ranks, PD_RANKS) - 1);
	ranks = pd_min(ranks, PD_CPU(d, cpu)->ranks);
	pd_while (i < ranks) {
		pd_u32 job = PD_CPU(d, cpu)->ranked[i & (PD_RANKS - 1)];

		next = pd_min(next, pd_later(now, PD_JOB(d, job)->attr.budget));
		i++;
	}
	return next;
}

PD_API pd_u64 pd_timer(pd_ref d, pd_u32 cpu, pd_u32 ranks, pd_u64 now)
{
	pd_u64 next = pd_min(pd_next_finish(d), pd_heap_least(d, PD_STARTS));
	pd_u64 left;

	next = pd_min(next, pd_heap_least(d, PD_RELEASES));
	if (PD_UNLIKELY(cpu >= PD(d)->limits.cpus || !ranks || !PD_CPU(d, cpu)->ranks))
		return next;
	left = PD_JOB(d, PD_CPU(d, cpu)->ranked[0])->attr.budget;
	next = pd_min(next, pd_later(now, left));
	return PD_LIKELY(ranks == 1) ? next : pd_min(next, pd_timer_of_others(d, cpu, ranks, now));
}
