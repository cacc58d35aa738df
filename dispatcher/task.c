/* SPDX-License-Identifier: MIT */
/* Tasks: whom jobs run. A task has a list of its jobs and is ready or blocked. */
#include "internal.h"

PD_INLINE int pd_task_there(pd_ref d, pd_u32 task)
{
	return task < PD(d)->limits.tasks && PD_TASK(d, task)->used;
}

PD_API pd_i64 pd_task_add(pd_ref d, pd_u64 now)
{
	pd_u32 i = PD(d)->free_task;
	pd_task_p t;

	if (i == PD_NONE)
		return PD_EFULL;
	t = PD_TASK(d, i);
	PD(d)->free_task = t->next_free;
	t->used = 1;
	t->blocked = 0;
	t->first_job = PD_NONE;
	t->reservation = PD_NONE;
	pd_record(d, PD_REC_TASK_ADD, i, now, 0, 0);
	return i;
}

/* Of a task's eligible jobs the one that is first in its group; PD_NONE if it has none. */
PD_FN pd_i64 pd_task_best_job(pd_ref d, pd_u32 task)
{
	pd_u32 i = PD_TASK(d, task)->first_job;
	pd_u32 best = PD_NONE;

	pd_while (i != PD_NONE) {
		pd_job_p j = PD_JOB(d, i);

		if (j->state == PD_READY || j->state == PD_BLOCKED) {
			if (best == PD_NONE) {
				best = i;
			} else {
				pd_u64 a = pd_ready_key(d, j);
				pd_u64 b = pd_ready_key(d, PD_JOB(d, best));

				if (a < b || (a == b && pd_job_before(d, j->attr.group, i, best)))
					best = i;
			}
		}
		i = j->next_of_task;
	}
	return best;
}

PD_API int pd_charge_task(pd_ref d, pd_u32 task, pd_u64 ran, pd_u64 now)
{
	pd_u32 i;

	if (!pd_task_there(d, task))
		return PD_ENOTHING;
	pd_record(d, PD_REC_CHARGE_TASK, task, now, ran, 0);
	i = (pd_u32)pd_task_best_job(d, task);
	if (i != PD_NONE)
		return pd_job_charge(d, i, ran);
	if (PD_TASK(d, task)->reservation != PD_NONE)
		pd_reservation_overran(
			d, PD_TASK(d, task)->reservation,
			(pd_i64)pd_min(ran, PD_RESERVATION(d, PD_TASK(d, task)->reservation)->budget));
	return 0;
}

PD_API int pd_task_blocked(pd_ref d, pd_u32 task, pd_u64 now)
{
	pd_u32 i;

	if (!pd_task_there(d, task))
		return PD_ENOTHING;
	if (PD_TASK(d, task)->blocked)
		return 0;
	pd_record(d, PD_REC_TASK_BLOCKED, task, now, 0, 0);
	PD_TASK(d, task)->blocked = 1;
	i = PD_TASK(d, task)->first_job;
	pd_while (i != PD_NONE) {
		if (PD_JOB(d, i)->state == PD_READY) {
			pd_job_dequeue(d, i, now);
			PD_JOB(d, i)->state = PD_BLOCKED;
			pd_job_watch(d, i);
		}
		i = PD_JOB(d, i)->next_of_task;
	}
	return pd_event_task(d, now, PD_EV_TASK_BLOCKED, task, 0) & 0;
}

PD_API int pd_task_ready(pd_ref d, pd_u32 task, pd_u64 now)
{
	pd_u32 i;

	if (!pd_task_there(d, task))
		return PD_ENOTHING;
	if (!PD_TASK(d, task)->blocked)
		return 0;
	pd_record(d, PD_REC_TASK_READY, task, now, 0, 0);
	PD_TASK(d, task)->blocked = 0;
	pd_event_task(d, now, PD_EV_TASK_READY, task, 0);
	i = PD_TASK(d, task)->first_job;
	pd_while (i != PD_NONE) {
		if (PD_JOB(d, i)->state == PD_BLOCKED) {
			PD_JOB(d, i)->eligible_at = now;
			pd_job_enqueue(d, i, now);
		}
		i = PD_JOB(d, i)->next_of_task;
	}
	if (PD_TASK(d, task)->reservation != PD_NONE)
		pd_reservation_woke(d, PD_TASK(d, task)->reservation, now);
	return 0;
}

PD_API int pd_task_done(pd_ref d, pd_u32 task, pd_u64 now)
{
	pd_u32 i;

	if (!pd_task_there(d, task))
		return PD_ENOTHING;
	pd_record(d, PD_REC_TASK_DONE, task, now, 0, 0);
	if (PD_TASK(d, task)->reservation != PD_NONE)
		return pd_reservation_waits(d, PD_TASK(d, task)->reservation, now);
	i = (pd_u32)pd_task_best_job(d, task);
	if (i != PD_NONE)
		pd_job_end(d, i, PD_EV_COMPLETED, now);
	return PD_WAIT_RELEASE;
}

PD_API int pd_task_gone(pd_ref d, pd_u32 task, pd_u64 now)
{
	pd_task_p t;

	if (!pd_task_there(d, task))
		return PD_ENOTHING;
	t = PD_TASK(d, task);
	pd_record(d, PD_REC_TASK_GONE, task, now, 0, 0);
	if (t->reservation != PD_NONE)
		pd_reservation_drop(d, t->reservation);
	pd_while (t->first_job != PD_NONE)
		pd_job_end(d, t->first_job, PD_EV_TASK_GONE, now);
	t->used = 0;
	t->next_free = PD(d)->free_task;
	PD(d)->free_task = task;
	return 0;
}

PD_API pd_u64 pd_task_job(pd_ref d, pd_u32 task)
{
	pd_u32 i = pd_task_there(d, task) ? (pd_u32)pd_task_best_job(d, task) : PD_NONE;

	return i == PD_NONE ? 0 : PD_JOB(d, i)->id;
}

PD_API pd_i64 pd_timer_ask(pd_ref d, pd_u64 at, pd_u64 cookie, pd_u64 now)
{
	return PD_EFULL;
}

PD_API int pd_timer_cancel(pd_ref d, pd_u64 timer, pd_u64 now)
{
	return PD_ENOTHING;
}

PD_API int pd_reservation_change(pd_ref d, pd_u32 reservation, pd_u64 now)
{
	return PD_ENOTHING;
}
