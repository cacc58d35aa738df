/* SPDX-License-Identifier: MIT */
/* Tasks: what jobs execute. A task has a list of its jobs, and sleeps or not. */
#include "internal.h"

PD_API pd_i64 pd_task_add(pd_ref d, pd_u64 now)
{
	pd_u32 i = PD(d)->free_task;
	pd_task_p t;

	if (i == PD_NONE)
		return -ENOSPC;
	t = PD_TASK(d, i);
	PD(d)->free_task = t->next_free;
	t->used = 1;
	t->sleeps = 0;
	t->blocked = 0;
	t->raised = 0;
	t->ceiling = 0;
	t->lends_to = PD_NONE;
	t->executes = i;
	t->first_lender = PD_NONE;
	t->first_job = PD_NONE;
	t->reservation = PD_NONE;
	pd_record(d, PD_REC_TASK_ADD, i, now, 0, 0);
	return i;
}

/* Which of two begun jobs of a task is run and charged first. */
PD_INLINE int pd_job_preferred(pd_ref d, pd_u32 a, pd_u32 b)
{
	int ready = PD_JOB(d, a)->state == PD_READY;

	if (ready != (PD_JOB(d, b)->state == PD_READY))
		return ready;
	return pd_path_before(d, a, b);
}

/* Of a task's begun jobs and `best` the one that selection would prefer; PD_NONE if there is
 * none. */
PD_FN pd_i64 pd_task_best_own(pd_ref d, pd_u32 task, pd_u32 best)
{
	pd_u32 i = PD_TASK(d, task)->first_job;

	pd_while (i != PD_NONE) {
		if (PD_JOB(d, i)->state != PD_WAITING &&
		    (best == PD_NONE || pd_job_preferred(d, i, best)))
			best = i;
		i = PD_JOB(d, i)->next;
	}
	return best;
}

/* Of all begun jobs that execute a task if it does not lend itself. */
PD_NOINLINE pd_u32 pd_task_best_job(pd_ref d, pd_u32 task)
{
	pd_u32 best = PD_NONE;
	pd_u32 of = PD_ZERO(d) + task;

	pd_while (of != PD_NONE) {
		best = (pd_u32)pd_task_best_own(d, of, best);
		of = pd_next_lender(d, of, task);
	}
	return best;
}

PD_API int pd_charge_task(pd_ref d, pd_u32 task, pd_u64 ran, pd_u64 now)
{
	pd_u32 i, r;

	if (!pd_task_there(d, task))
		return -ENOENT;
	pd_record(d, PD_REC_CHARGE_TASK, task, now, ran, 0);
	i = pd_task_best_job(d, task);
	if (i != PD_NONE)
		return pd_charge_path(d, i, ran);
	r = PD_TASK(d, task)->reservation;
	if (r != PD_NONE)
		pd_error_add(d, r, (pd_i64)pd_min(ran, PD_RESERVATION(d, r)->now.budget));
	return 0;
}

PD_API int pd_task_blocked(pd_ref d, pd_u32 task, pd_u64 now)
{
	if (!pd_task_there(d, task))
		return -ENOENT;
	if (PD_TASK(d, task)->sleeps)
		return 0;
	pd_record(d, PD_REC_TASK_BLOCKED, task, now, 0, 0);
	PD_TASK(d, task)->sleeps = 1;
	if (PD_TASK(d, task)->lends_to != PD_NONE)
		return 0;
	pd_tree_block(d, task, now);
	pd_settle(d, now);
	return 0;
}

PD_API int pd_task_ready(pd_ref d, pd_u32 task, pd_u64 now)
{
	if (!pd_task_there(d, task))
		return -ENOENT;
	if (!PD_TASK(d, task)->sleeps)
		return 0;
	pd_record(d, PD_REC_TASK_READY, task, now, 0, 0);
	PD_TASK(d, task)->sleeps = 0;
	if (PD_TASK(d, task)->lends_to != PD_NONE)
		return 0;
	pd_tree_wake(d, task, now);
	pd_settle(d, now);
	return 0;
}

PD_API int pd_task_done(pd_ref d, pd_u32 task, pd_u64 now)
{
	int wait = PD_WAIT_RELEASE;
	pd_u32 i;

	if (!pd_task_there(d, task))
		return -ENOENT;
	pd_record(d, PD_REC_TASK_DONE, task, now, 0, 0);
	if (PD_TASK(d, task)->reservation != PD_NONE) {
		wait = pd_reservation_waits(d, PD_TASK(d, task)->reservation, now);
	} else {
		i = (pd_u32)pd_task_best_own(d, task, PD_NONE);
		if (i != PD_NONE)
			pd_job_end(d, i, PD_EV_COMPLETED, now);
	}
	pd_settle(d, now);
	return wait;
}

PD_API int pd_task_gone(pd_ref d, pd_u32 task, pd_u64 now)
{
	pd_task_p t;

	if (!pd_task_there(d, task))
		return -ENOENT;
	t = PD_TASK(d, task);
	if (t->first_lender != PD_NONE)
		return -EBUSY;
	pd_record(d, PD_REC_TASK_GONE, task, now, 0, 0);
	pd_lender_del(d, task);
	if (t->reservation != PD_NONE)
		pd_reservation_drop(d, t->reservation);
	pd_while (t->first_job != PD_NONE)
		pd_job_end(d, t->first_job, PD_EV_TASK_GONE, now);
	t->used = 0;
	t->next_free = PD(d)->free_task;
	PD(d)->free_task = task;
	pd_settle(d, now);
	return 0;
}

PD_API pd_u64 pd_task_job(pd_ref d, pd_u32 task)
{
	pd_u32 i = pd_task_there(d, task) ? pd_task_best_job(d, task) : PD_NONE;

	return i == PD_NONE ? 0 : PD_JOB(d, i)->id;
}

#ifndef __bpf__
PD_API pd_u32 pd_late_waits_after_release(pd_u32 late, pd_u32 waits)
{
	return pd_late_after_release(late, waits != 0);
}

PD_API pd_u32 pd_late_waits_own(pd_u32 late, pd_u32 ended)
{
	return pd_late_own(late, ended != 0);
}

PD_API pd_u32 pd_late_waits_is(pd_u32 late, pd_u32 ended)
{
	return (pd_u32)pd_late_is(late, ended != 0);
}
#endif
