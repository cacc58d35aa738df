/* SPDX-License-Identifier: MIT */
/*
 * The life of a job:
 *
 *   add ──> WAITING ──start──> READY <──task wakes/sleeps──> BLOCKED
 *              └─────────────────┴───────── end, once ─────────┘
 *
 * A job stands in one place for its state (the starts, its group's queue, or nowhere while its
 * task sleeps) and, if it has a finish, among the finishes too: but not while it is ready in a
 * group 0 that is ordered by finish first, whose queue then serves for both.
 */
#include "internal.h"

PD_INLINE pd_u64 pd_ready_key(pd_ref d, pd_job_p j)
{
	pd_group_p g = PD_GROUP(d, j->attr.group);

	return (&j->attr.start)[g->first] ^ g->turned;
}

/* Its queue orders it by finish, so the first of the queue is the next to expire. */
PD_INLINE int pd_queue_by_finish(pd_ref d, pd_job_p j)
{
	return PD_GROUP(d, j->attr.group)->by_finish;
}

PD_FN int pd_job_set_watched(pd_ref d, pd_u32 i, int wanted)
{
	pd_job_p j = PD_JOB(d, i);

	j->among_finishes = (pd_u8)wanted;
	return wanted ? pd_heap_insert(d, PD_FINISHES, j->attr.finish, i) :
			pd_heap_remove(d, PD_FINISHES, i);
}

/* Among the finishes, unless its queue serves for it. */
PD_FOLD int pd_job_watch(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);
	int wanted = j->attr.finish != PD_INFINITE &&
		     !(j->state == PD_READY && pd_queue_by_finish(d, j));

	return wanted == j->among_finishes ? 0 : pd_job_set_watched(d, i, wanted);
}

/* Into its group's queue. */
PD_FOLD int pd_job_enqueue(pd_ref d, pd_u32 i, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);
	pd_u32 group = j->attr.group;

	j->state = PD_READY;
	if (PD_GROUP(d, group)->members++ == 0)
		pd_event_task(d, now, PD_EV_GROUP_ACTIVE, group, 0);
	pd_heap_insert(d, PD_GROUPS + group, pd_ready_key(d, j), i);
	return pd_job_watch(d, i);
}

/* Out of its group's queue. */
PD_FOLD int pd_job_dequeue(pd_ref d, pd_u32 i, pd_u64 now)
{
	pd_u32 group = PD_JOB(d, i)->attr.group;

	pd_heap_remove(d, PD_GROUPS + group, i);
	if (--PD_GROUP(d, group)->members == 0)
		pd_event_task(d, now, PD_EV_GROUP_IDLE, group, 0);
	return 0;
}

/* Its start has come (or it never had to wait). */
PD_FOLD int pd_job_begin(pd_ref d, pd_u32 i, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);

	j->eligible_at = now;
	if (PD_TASK(d, j->attr.task)->blocked) {
		j->state = PD_BLOCKED;
		return pd_job_watch(d, i);
	}
	return pd_job_enqueue(d, i, now);
}

PD_INLINE void pd_job_link(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);
	pd_task_p t = PD_TASK(d, j->attr.task);

	j->prev_of_task = PD_NONE;
	j->next_of_task = t->first_job;
	if (t->first_job != PD_NONE)
		PD_JOB(d, t->first_job)->prev_of_task = i;
	t->first_job = i;
}

PD_INLINE void pd_job_unlink(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);

	if (j->prev_of_task == PD_NONE)
		PD_TASK(d, j->attr.task)->first_job = j->next_of_task;
	else
		PD_JOB(d, j->prev_of_task)->next_of_task = j->next_of_task;
	if (j->next_of_task != PD_NONE)
		PD_JOB(d, j->next_of_task)->prev_of_task = j->prev_of_task;
}

/* Out of the list of exhausted jobs, which is seldom longer than one. */
PD_FN int pd_job_undue(pd_ref d, pd_u32 i)
{
	pd_u32 at = PD(d)->first_due;

	PD_JOB(d, i)->due = 0;
	if (at == i) {
		PD(d)->first_due = PD_JOB(d, i)->next_due;
		return 0;
	}
	pd_while (at != PD_NONE) {
		if (PD_JOB(d, at)->next_due == i) {
			PD_JOB(d, at)->next_due = PD_JOB(d, i)->next_due;
			return 0;
		}
		at = PD_JOB(d, at)->next_due;
	}
	return 0;
}

PD_FN int pd_job_end(pd_ref d, pd_u32 i, pd_u32 kind, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);

	if (j->state == PD_READY)
		pd_job_dequeue(d, i, now);
	else if (j->state == PD_WAITING)
		pd_heap_remove(d, PD_STARTS, i);
	if (j->among_finishes)
		pd_heap_remove(d, PD_FINISHES, i);
	if (j->due)
		pd_job_undue(d, i);
	pd_job_unlink(d, i);
	pd_event_job(d, now, kind, i);
	if (j->reservation != PD_NONE)
		pd_reservation_ended(d, i, kind, now);
	j->state = PD_FREE;
	j->id = ~(j->id + pd_id(1, 0));
	if (PD_UNLIKELY((pd_i64)j->id >= 0))
		j->id = ~pd_id(1, i);
	j->next_of_task = PD(d)->free_job;
	PD(d)->free_job = i;
	return 0;
}

/* What an allocator may not ask for; 0 if it may. */
PD_FOLD int pd_job_refusal(pd_ref d)
{
	struct pd_job_attr PD_ARENA *a = pd_draft(d);

	if (a->task >= PD(d)->limits.tasks || !PD_TASK(d, a->task)->used)
		return PD_ENOTHING;
	if (PD_UNLIKELY(a->group | a->server | a->budget_group | a->budget_server))
		return PD_EINVALID;
	/* The last one is only for drafting. */
	if (PD_JOB(d, PD(d)->free_job)->next_of_task == PD_NONE)
		return PD_EFULL;
	return 0;
}

/* Takes the draft; for a reservation's job too. */
PD_FOLD pd_i64 pd_job_make(pd_ref d, pd_u32 reservation, pd_u64 now)
{
	pd_u32 i = PD(d)->free_job;
	pd_job_p j = PD_JOB(d, i);

	PD(d)->free_job = j->next_of_task;
	j->id = ~j->id;
	j->sequence = PD(d)->sequence++;
	j->used = 0;
	j->excess = 0;
	j->due = 0;
	j->among_finishes = 0;
	j->reservation = reservation;
	pd_job_link(d, i);
	if (j->attr.start > now) {
		j->state = PD_WAITING;
		pd_heap_insert(d, PD_STARTS, j->attr.start, i);
		pd_job_watch(d, i);
	} else {
		pd_job_begin(d, i, now);
	}
	return (pd_i64)j->id;
}

/* One added with no budget or a past finish is accepted all the same, and ends at once (design,
 * "Job"). */
PD_FOLD int pd_job_settle(pd_ref d, pd_u32 i, pd_u64 now)
{
	if (PD_UNLIKELY(!PD_JOB(d, i)->attr.budget))
		return pd_job_end(d, i, PD_EV_EXHAUSTED, now);
	if (PD_UNLIKELY(PD_JOB(d, i)->attr.finish <= now))
		return pd_job_end(d, i, PD_EV_EXPIRED, now);
	return 0;
}

PD_API pd_i64 pd_job_add(pd_ref d, pd_u64 now)
{
	struct pd_job_attr PD_ARENA *a = pd_draft(d);
	int refusal = pd_job_refusal(d);
	pd_i64 id;

	if (PD_UNLIKELY(refusal))
		return refusal;
	pd_record(d, PD_REC_JOB_ADD, a->task, now, a->start, a->finish);
	pd_record(d, PD_REC_JOB_ADD_2, a->group, a->budget, (pd_u64)a->priority, a->cookie);
	if (a->server | a->budget_group | a->budget_server)
		pd_record(d, PD_REC_JOB_ADD_3, 0, a->server, a->budget_group, a->budget_server);
	id = pd_job_make(d, PD_NONE, now);
	pd_job_settle(d, (pd_u32)id, now);
	return id;
}

PD_API int pd_job_cancel(pd_ref d, pd_u64 job, pd_u64 now)
{
	pd_u32 i = pd_job_index(d, job);

	if (i == PD_NONE)
		return PD_ENOTHING;
	pd_record(d, PD_REC_JOB_CANCEL, 0, now, job, 0);
	return pd_job_end(d, i, PD_EV_CANCELLED, now);
}

PD_API int pd_job_complete(pd_ref d, pd_u64 job, pd_u64 now)
{
	pd_u32 i = pd_job_index(d, job);

	if (i == PD_NONE)
		return PD_ENOTHING;
	pd_record(d, PD_REC_JOB_COMPLETE, 0, now, job, 0);
	return pd_job_end(d, i, PD_EV_COMPLETED, now);
}

PD_API pd_u64 pd_job_remaining(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	return i == PD_NONE ? 0 : PD_JOB(d, i)->attr.budget;
}

PD_API pd_u32 pd_job_task(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	return i == PD_NONE ? PD_NONE : PD_JOB(d, i)->attr.task;
}

/* What was executed, to a job and (later) all on its path. 1 if its budget is used up. */
PD_FOLD int pd_job_charge(pd_ref d, pd_u32 i, pd_u64 ran)
{
	pd_job_p j = PD_JOB(d, i);

	j->used += ran;
	if (ran > j->attr.budget) {
		j->excess += ran - j->attr.budget;
		j->attr.budget = 0;
	} else {
		j->attr.budget -= ran;
	}
	if (j->state == PD_READY && PD_UNLIKELY(PD_GROUP(d, j->attr.group)->by_budget))
		pd_heap_up(d, PD_GROUPS + j->attr.group,
			   PD_POSITION(d, PD_HEAP(d, PD_GROUPS + j->attr.group)->positions + i),
			   pd_ready_key(d, j), i);
	if (j->attr.budget > PD(d)->granularity)
		return 0;
	if (!j->due) {
		j->due = 1;
		j->next_due = PD(d)->first_due;
		PD(d)->first_due = i;
	}
	return 1;
}

PD_API int pd_charge(pd_ref d, pd_u64 job, pd_u64 ran, pd_u64 now)
{
	pd_u32 i = pd_job_index(d, job);

	if (i == PD_NONE)
		return PD_ENOTHING;
	pd_record(d, PD_REC_CHARGE, 0, now, job, ran);
	return pd_job_charge(d, i, ran);
}

PD_API pd_u64 pd_job_used(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	return i == PD_NONE ? 0 : PD_JOB(d, i)->used;
}

PD_API int pd_job_standing(pd_ref d, pd_u64 job)
{
	pd_u32 i = pd_job_index(d, job);

	return i == PD_NONE ? PD_FREE : PD_JOB(d, i)->state;
}

PD_API pd_u64 pd_job_allowance(pd_ref d, pd_u64 job)
{
	return pd_job_remaining(d, job);
}
