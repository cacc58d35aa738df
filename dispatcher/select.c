/* SPDX-License-Identifier: MIT */
/*
 * Selection (RED-Linux, V-A; design, "Selection"): from group 0 down the first of each queue until
 * a real job is reached. Server jobs are ready only while their group has a ready member, so there
 * is always one. And the timer, until which the choice holds.
 */
#include "internal.h"

/* The job under a server job, and the path to it. */
PD_FN pd_u32 pd_select_below(pd_ref d, pd_u32 cpu, pd_u32 i)
{
	pd_cpu_p c = PD_CPU(d, cpu);

	pd_while (i != PD_NONE && PD_JOB(d, i)->attr.server) {
		i = pd_heap_first(d, PD_GROUPS + PD_JOB(d, i)->attr.server);
		if (i != PD_NONE)
			PD_NTH(c->path, c->depth++ & (PD_MAX_DEPTH - 1)) = PD_JOB(d, i)->id;
	}
	return i;
}

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
		if (PD_UNLIKELY(PD_JOB(d, i)->attr.server)) {
			i = pd_select_below(d, cpu, i);
			if (i == PD_NONE)
				return 0;
			id = PD_JOB(d, i)->id;
		}
		c->ranked[0] = i;
		c->ranks = 1;
		c->cursor_depth = PD_NONE;
	}
	if (c->selected != id) {
		c->selected = id;
		pd_record(d, PD_REC_SELECTED, cpu, now, id, 0);
	}
	return id;
}

PD_API pd_u64 pd_path(pd_ref d, pd_u32 cpu, pd_u32 depth)
{
	if (cpu >= PD(d)->limits.cpus || depth >= PD_CPU(d, cpu)->depth)
		return 0;
	return PD_NTH(PD_CPU(d, cpu)->path, depth & (PD_MAX_DEPTH - 1));
}

/* When the first of the jobs that this CPU may run, other than the selected one, has used up its
 * allowance. */
PD_NOINLINE pd_u64 pd_timer_of_others(pd_ref d, pd_u32 cpu, pd_u32 ranks, pd_u64 now)
{
	pd_u64 next = PD_INFINITE;
	pd_u32 i = PD_ZERO(d) + 1;

	pd_runner_up(d, cpu, pd_min(ranks, PD_RANKS) - 1);
	ranks = pd_min(ranks, PD_CPU(d, cpu)->ranks);
	pd_while (i < ranks) {
		pd_u32 job = PD_NTH(PD_CPU(d, cpu)->ranked, i & (PD_RANKS - 1));

		if (PD_JOB(d, job)->state == PD_READY)
			next = pd_min(next, pd_later(now, pd_allowance(d, job)));
		i++;
	}
	return next;
}

PD_API pd_u64 pd_timer(pd_ref d, pd_u32 cpu, pd_u32 ranks, pd_u64 now)
{
	pd_u64 next = pd_min(pd_next_finish(d), pd_heap_least(d, PD_STARTS));
	pd_job_p j;

	next = pd_min(next, PD(d)->rare);
	if (PD_UNLIKELY(cpu >= PD(d)->limits.cpus || !ranks || !PD_CPU(d, cpu)->ranks))
		return next;
	j = PD_JOB(d, PD_CPU(d, cpu)->ranked[0]);
	/* It may have ended since it was selected. */
	if (PD_LIKELY(j->flags == PD_PLAIN))
		next = pd_min(next, pd_later(now, j->attr.budget));
	else if (j->state == PD_READY)
		next = pd_min(next, pd_later(now, pd_allowance(d, PD_CPU(d, cpu)->ranked[0])));
	if (!PD_RUNNERS_UP || PD_LIKELY(ranks == 1))
		return next;
	return pd_min(next, pd_timer_of_others(d, cpu, ranks, now));
}
