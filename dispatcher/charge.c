/* SPDX-License-Identifier: MIT */
/* What was executed is charged along both trees: to each job on the path, and to the current
 * segment of each node above one of them, each node once (RED-Linux, V-A and V-B.2). */
#include "internal.h"

/* A charge changes the key in a group ordered by budget: restores the order of its queue. */
PD_NOINLINE int pd_charge_sort(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);
	pd_u32 heap = PD_GROUPS + j->attr.group;

	if (j->attr.server)
		PD_GROUP(d, j->attr.server)->best_server = PD_UNKNOWN;
	if (j->state != PD_READY)
		return 0;
	return pd_heap_up(d, heap, PD_POSITION(d, PD_HEAP(d, heap)->positions + i),
			  pd_ready_key(d, j), i);
}

/* To one job or segment. 1 if its budget is used up. */
PD_ALWAYS_INLINE int pd_charge_one(pd_ref d, pd_u32 i, pd_u64 ran)
{
	pd_job_p j = PD_JOB(d, i);

	j->used += ran;
	if (PD_UNLIKELY(ran > j->attr.budget)) {
		j->excess += ran - j->attr.budget;
		j->attr.budget = 0;
	} else {
		j->attr.budget -= ran;
	}
	if (PD_UNLIKELY(PD_GROUP(d, j->attr.group)->by_budget))
		pd_charge_sort(d, i);
	if (PD_LIKELY(j->attr.budget > PD(d)->granularity))
		return 0;
	if (!j->due) {
		j->due = 1;
		if (j->attr.budget_server) {
			j->next_due = PD(d)->first_due_segment;
			PD(d)->first_due_segment = i;
		} else {
			j->next_due = PD(d)->first_due;
			PD(d)->first_due = i;
		}
	}
	return 1;
}

/* To the current segments from a node up, as far as this charge has not been. */
PD_FN int pd_charge_chain(pd_ref d, pd_u32 node, pd_u64 ran)
{
	pd_while (node && PD_NODE(d, node)->charged != PD(d)->charges) {
		pd_u32 segment = pd_current_segment(d, node);

		PD_NODE(d, node)->charged = PD(d)->charges;
		if (segment != PD_NONE)
			pd_charge_one(d, segment, ran);
		node = PD_NODE(d, node)->parent;
	}
	return 0;
}

/* To all but the job itself. */
PD_FN int pd_charge_above(pd_ref d, pd_u32 i, pd_u64 ran)
{
	pd_job_p j = PD_JOB(d, i);

	PD(d)->charges++;
	pd_while (1) {
		if (j->attr.budget_group)
			pd_charge_chain(d, j->attr.budget_group, ran);
		if (!j->attr.group)
			return 0;
		i = pd_server_of(d, j->attr.group);
		if (i == PD_NONE)
			return 0;
		j = PD_JOB(d, i);
		pd_charge_one(d, i, ran);
	}
	return 0;
}

PD_ALWAYS_INLINE int pd_charge_path(pd_ref d, pd_u32 i, pd_u64 ran)
{
	int due = pd_charge_one(d, i, ran);

	if (PD_UNLIKELY(PD_JOB(d, i)->in_hierarchy))
		pd_charge_above(d, i, ran);
	return due;
}

PD_API int pd_charge(pd_ref d, pd_u64 job, pd_u64 ran, pd_u64 now)
{
	pd_u32 i = pd_job_index(d, job);

	if (i == PD_NONE)
		return -ENOENT;
	pd_record(d, PD_REC_CHARGE, 0, now, job, ran);
	return pd_charge_path(d, i, ran);
}
