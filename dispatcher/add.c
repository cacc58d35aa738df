/* SPDX-License-Identifier: MIT */
/* What an allocator may ask for: the three kinds of job (docs/model.md), their places in the trees,
 * and the calls that add, end and read jobs. */
#include "internal.h"

/* No such task, or a node that is not made. A job that is for nothing has no task. */
PD_INLINE int pd_kind_nothing(pd_ref d, pd_u32 task, pd_u32 server, pd_u32 budget_group,
			      pd_u32 budget_server)
{
	if (task != PD_NONE || !(server | budget_server)) {
		if (task >= PD(d)->limits.tasks || !PD_TASK(d, task)->used)
			return 1;
	}
	return budget_group && budget_group != budget_server && !pd_node_made(d, budget_group);
}

/* A mixture of kinds, or numbers out of range. */
PD_INLINE int pd_kind_invalid(pd_ref d, pd_u32 task, pd_u32 group, pd_u32 server,
			      pd_u32 budget_server)
{
	if ((task != PD_NONE) + (server != 0) + (budget_server != 0) != 1)
		return 1;
	return group >= PD(d)->limits.groups || server >= PD(d)->limits.groups ||
	       budget_server > PD(d)->limits.budget_groups || (budget_server && group);
}

PD_FN int pd_tree_refusal(pd_ref d, pd_u32 group, pd_u32 server, pd_u32 budget_group,
			  pd_u32 budget_server)
{
	if (server)
		return pd_group_refusal(d, server, group);
	/* Itself. */
	if (budget_server == budget_group)
		return -ELOOP;
	return pd_node_refusal(d, budget_server, budget_group);
}

/* The first server job of a group, or segment of a node, fixes its parent. */
PD_FN int pd_tree_grow(pd_ref d, pd_u32 group, pd_u32 server, pd_u32 budget_group,
		       pd_u32 budget_server)
{
	if (server)
		return pd_group_adopt(d, server, group);
	return pd_node_make(d, budget_server, budget_group);
}

/* For a job in a hierarchy. */
PD_NOINLINE int pd_hierarchy_refusal(pd_ref d)
{
	struct pd_job_attr PD_ARENA *a = pd_draft(d);

	if (pd_kind_nothing(d, a->task, a->server, a->budget_group, a->budget_server))
		return -ENOENT;
	if (pd_kind_invalid(d, a->task, a->group, a->server, a->budget_server))
		return -EINVAL;
	if (a->server | a->budget_server)
		return pd_tree_refusal(d, a->group, a->server, a->budget_group, a->budget_server);
	return 0;
}

/* What an allocator may not ask for; 0 if it may. */
PD_ALWAYS_INLINE int pd_job_refusal(pd_ref d, pd_u32 in_hierarchy)
{
	struct pd_job_attr PD_ARENA *a = pd_draft(d);

	if (PD_LIKELY(!in_hierarchy)) {
		if (a->task >= PD(d)->limits.tasks || !PD_TASK(d, a->task)->used)
			return -ENOENT;
	} else {
		int refusal = pd_hierarchy_refusal(d);

		if (refusal)
			return refusal;
	}
	/* The last one is only for drafting. */
	if (PD_JOB(d, PD(d)->free_job)->next == PD_NONE)
		return -ENOSPC;
	return 0;
}
/* The rest of what was added, and what it does to the trees. */
PD_NOINLINE int pd_job_add_in_hierarchy(pd_ref d)
{
	struct pd_job_attr PD_ARENA *a = pd_draft(d);

	if (a->server | a->budget_group | a->budget_server)
		pd_record(d, PD_REC_JOB_ADD_3, 0, a->server, a->budget_group, a->budget_server);
	if (a->server | a->budget_server)
		pd_tree_grow(d, a->group, a->server, a->budget_group, a->budget_server);
	return 0;
}

PD_API pd_i64 pd_job_add(pd_ref d, pd_u64 now)
{
	struct pd_job_attr PD_ARENA *a = pd_draft(d);
	pd_u32 in_hierarchy = a->group | a->server | a->budget_group | a->budget_server;
	int refusal = pd_job_refusal(d, in_hierarchy);
	pd_i64 id;

	if (PD_UNLIKELY(refusal))
		return refusal;
	pd_record(d, PD_REC_JOB_ADD, a->task, now, a->start, a->finish);
	pd_record(d, PD_REC_JOB_ADD_2, a->group, a->budget, (pd_u64)a->priority, a->cookie);
	if (PD_UNLIKELY(in_hierarchy))
		pd_job_add_in_hierarchy(d);
	id = pd_job_make(d, PD_NONE, in_hierarchy, now);
	pd_job_end_at_once(d, (pd_u32)id, now);
	pd_settle(d, now);
	return id;
}

PD_API int pd_job_cancel(pd_ref d, pd_u64 job, pd_u64 now)
{
	pd_u32 i = pd_job_index(d, job);

	if (i == PD_NONE)
		return -ENOENT;
	pd_record(d, PD_REC_JOB_CANCEL, 0, now, job, 0);
	pd_job_end(d, i, PD_EV_CANCELLED, now);
	pd_settle(d, now);
	return 0;
}

PD_API int pd_job_complete(pd_ref d, pd_u64 job, pd_u64 now)
{
	pd_u32 i = pd_job_index(d, job);

	if (i == PD_NONE)
		return -ENOENT;
	pd_record(d, PD_REC_JOB_COMPLETE, 0, now, job, 0);
	pd_job_end_here(d, i, PD_EV_COMPLETED, now);
	pd_settle(d, now);
	return 0;
}

PD_API pd_u64 pd_job_remaining(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	return i == PD_NONE ? 0 : PD_JOB(d, i)->attr.budget;
}

PD_API pd_u64 pd_job_used(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	return i == PD_NONE ? 0 : PD_JOB(d, i)->used;
}

PD_API pd_u32 pd_job_task(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	if (i == PD_NONE || PD_JOB(d, i)->attr.task == PD_NONE)
		return PD_NONE;
	return PD_TASK(d, PD_JOB(d, i)->attr.task)->executes;
}

PD_API pd_u32 pd_job_owner(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	return i == PD_NONE ? PD_NONE : PD_JOB(d, i)->attr.task;
}

PD_API int pd_job_standing(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	return i == PD_NONE ? PD_FREE : PD_JOB(d, i)->state;
}

PD_API pd_u64 pd_job_allowance(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	return i == PD_NONE ? 0 : pd_allowance(d, i);
}
