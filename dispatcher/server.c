/* SPDX-License-Identifier: MIT */
/*
 * Server jobs (RED-Linux, V-A), and the path of a job: the job, then a server job of its group,
 * then one of that one's group, until group 0.
 */
#include "internal.h"

/* Lists through `next` and `prev`: of a task's jobs, and of a group's server jobs. */
PD_INLINE void pd_list_add(pd_ref d, pd_u32 PD_ARENA *first, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);

	j->prev = PD_NONE;
	j->next = *first;
	if (*first != PD_NONE)
		PD_JOB(d, *first)->prev = i;
	*first = i;
}

PD_INLINE void pd_list_del(pd_ref d, pd_u32 PD_ARENA *first, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);

	if (j->prev == PD_NONE)
		*first = j->next;
	else
		PD_JOB(d, j->prev)->next = j->next;
	if (j->next != PD_NONE)
		PD_JOB(d, j->next)->prev = j->prev;
}

/* Which of two jobs of one group is first, ready or not. */
PD_FN int pd_member_before(pd_ref d, pd_u32 a, pd_u32 b)
{
	pd_u64 x = pd_ready_key(d, PD_JOB(d, a));
	pd_u64 y = pd_ready_key(d, PD_JOB(d, b));

	if (x != y)
		return x < y;
	return pd_job_before(d, PD_JOB(d, a)->attr.group, a, b);
}

/* Of several server jobs of a group, the first in its parent's order, those that are ready before
 * the others; PD_NONE if none has begun. */
PD_FN pd_u32 pd_best_server(pd_ref d, pd_u32 group)
{
	pd_u32 best = PD_GROUP(d, group)->first_server;
	pd_u32 i = best;

	pd_while (i != PD_NONE) {
		int ready = PD_JOB(d, i)->state == PD_READY;
		int was = PD_JOB(d, best)->state == PD_READY;

		if (ready != was ? ready : pd_member_before(d, i, best))
			best = i;
		i = PD_JOB(d, i)->next;
	}
	PD_GROUP(d, group)->best_server = best;
	return best;
}

/* It changes seldom: when one begins, ends, becomes ready or ceases to be, or its place changes. */
PD_INLINE pd_u32 pd_server_of(pd_ref d, pd_u32 group)
{
	pd_u32 best = PD_GROUP(d, group)->best_server;

	return PD_LIKELY(best != PD_UNKNOWN) ? best : pd_best_server(d, group);
}

/* How many server jobs lie between a job and group 0; PD_NONE if its path does not get there. */
PD_FN pd_u32 pd_path_length(pd_ref d, pd_u32 i)
{
	pd_u32 length = PD_ZERO(d);

	pd_while (PD_JOB(d, i)->attr.group) {
		i = pd_server_of(d, PD_JOB(d, i)->attr.group);
		if (i == PD_NONE)
			return PD_NONE;
		length++;
	}
	return length;
}

/* Which of two begun jobs selection would prefer if both were ready: their paths are compared from
 * group 0 down. Where they part, they are in one group; that is the lowest group that they share,
 * since a group's own path is always the same. */
PD_FN int pd_path_before(pd_ref d, pd_u32 a, pd_u32 b)
{
	pd_u32 above_a = pd_path_length(d, a);
	pd_u32 above_b = pd_path_length(d, b);
	pd_job_p x = PD_JOB(d, a);
	pd_job_p y = PD_JOB(d, b);

	if (above_a == PD_NONE && above_b == PD_NONE)
		return x->eligible_at != y->eligible_at ? x->eligible_at < y->eligible_at :
							  x->sequence < y->sequence;
	if (above_a == PD_NONE || above_b == PD_NONE)
		return above_b == PD_NONE;
	pd_while (PD_JOB(d, a)->attr.group != PD_JOB(d, b)->attr.group) {
		/* The deeper one goes up. */
		if (above_a >= above_b) {
			a = pd_server_of(d, PD_JOB(d, a)->attr.group);
			above_a--;
		} else {
			b = pd_server_of(d, PD_JOB(d, b)->attr.group);
			above_b--;
		}
		above_a += PD_ZERO(d);
		above_b += PD_ZERO(d);
	}
	return pd_member_before(d, a, b);
}
