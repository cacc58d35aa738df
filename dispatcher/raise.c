/* SPDX-License-Identifier: MIT */
/*
 * Priority ceilings (Sha, Rajkumar and Lehoczky 1990; as finishes: the deadline floors of Burns
 * 2012): while a task holds a lock, its jobs stand in their groups' queues where no job of a task
 * that may want the lock comes before them. Their attributes stay as they are.
 */
#include "internal.h"

/* Takes the task's ready jobs out of their queues. All are out while the ceiling changes, which
 * changes all their keys. They stay ready, so groups without a member in between are not marked. */
PD_FN int pd_task_unqueue(pd_ref d, pd_u32 task)
{
	pd_u32 i = PD_TASK(d, task)->first_job;

	pd_while (i != PD_NONE) {
		if (PD_JOB(d, i)->state == PD_READY)
			pd_heap_remove(d, PD_GROUPS + PD_JOB(d, i)->attr.group, i);
		i = PD_JOB(d, i)->next;
	}
	return 0;
}

/* And into them, by their present keys. */
PD_FN int pd_task_queue(pd_ref d, pd_u32 task)
{
	pd_u32 i = PD_TASK(d, task)->first_job;

	pd_while (i != PD_NONE) {
		pd_job_p j = PD_JOB(d, i);

		if (j->state == PD_READY)
			pd_heap_insert(d, PD_GROUPS + j->attr.group, pd_ready_key(d, j), i);
		i = PD_JOB(d, i)->next;
	}
	return 0;
}

/* From the first ceiling on, group 0's queue no longer serves for the finishes: a raised job's
 * place is that of an earlier one. Dispatchers without ceilings keep the shorter way. */
PD_FN int pd_ceilings_begin(pd_ref d)
{
	PD(d)->ceilings = 1;
	if (!PD_GROUP(d, 0)->by_finish)
		return 0;
	PD_GROUP(d, 0)->by_finish = 0;
	return pd_group_sort(d, 0);
}

PD_API int pd_task_raise(pd_ref d, pd_u32 task, pd_u32 attribute, pd_u64 ceiling, pd_u64 now)
{
	pd_task_p t;

	if (!pd_task_there(d, task))
		return -ENOENT;
	if (attribute != PD_BY_NOTHING && attribute != PD_BY_FINISH && attribute != PD_BY_PRIORITY)
		return -EINVAL;
	if (!attribute)
		ceiling = 0;
	t = PD_TASK(d, task);
	if (t->raised == attribute && t->ceiling == ceiling)
		return 0;
	pd_record(d, PD_REC_TASK_RAISE, task, now, ceiling, attribute);
	if (!PD(d)->ceilings)
		pd_ceilings_begin(d);
	pd_task_unqueue(d, task);
	t = PD_TASK(d, task);
	t->raised = (pd_u8)attribute;
	t->ceiling = ceiling;
	return pd_task_queue(d, task);
}
