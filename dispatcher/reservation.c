/* SPDX-License-Identifier: MIT */
/*
 * The standard periodic allocator (design, "Reservation"; RED-Linux Table 1; RTAI paper 3.2, 3.3).
 *
 *            release                      wait_period
 *   BETWEEN ─────────> HAS A JOB ──────────────────────> BETWEEN (done)
 *      ^                   │ budget used up, or finish reached
 *      └───────────────────┘ overrun: one wait is delayed
 *
 * Invariants: at most one job; delayed counts releases that overran and whose wait_period has not
 * come; error is settled into the next job's budget and never exceeds one budget either way.
 */
#include "internal.h"

PD_INLINE int pd_reservation_there(pd_ref d, pd_u32 r)
{
	return r < PD(d)->limits.reservations && PD_RESERVATION(d, r)->used;
}

/* More lost releases for the next wait_period to report. */
PD_INLINE void pd_reservation_lost(pd_reservation_p v, pd_u64 more)
{
	v->lost = (pd_u32)pd_min(v->lost + more, PD_NONE);
}

/* Executed beyond (+) or short of (-) what was assigned: at most one budget. */
PD_FN int pd_reservation_overran(pd_ref d, pd_u32 r, pd_i64 by)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_i64 most = (pd_i64)v->budget;

	v->error += by;
	if (v->error > most)
		v->error = most;
	if (v->error < -most)
		v->error = -most;
	return 0;
}

PD_INLINE void pd_reservation_delay(pd_ref d, pd_reservation_p v, pd_u64 now)
{
	if (!v->waits)
		return;
	if (v->delayed < PD_MAX_DELAYED && ++v->delayed == PD_MAX_DELAYED)
		pd_event_task(d, now, PD_EV_DELAYED_SATURATED, v->task, PD_MAX_DELAYED);
}

/* A job of a reservation ended (it is still there to be read). */
PD_FN int pd_reservation_ended(pd_ref d, pd_u32 job, pd_u32 kind, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, job);
	pd_u32 r = j->reservation;
	pd_reservation_p v = PD_RESERVATION(d, r);

	v->job = 0;
	if (j->excess)
		pd_reservation_overran(d, r, (pd_i64)pd_min(j->excess, v->budget));
	if (kind == PD_EV_EXHAUSTED && j->attr.budget)
		pd_reservation_overran(d, r, -(pd_i64)j->attr.budget);
	if (kind != PD_EV_EXHAUSTED && kind != PD_EV_EXPIRED)
		return 0;
	pd_reservation_delay(d, v, now);
	if (v->overrun == PD_SIGNAL)
		pd_event_task(d, now, PD_EV_OVERRUN, v->task, v->release_number - 1);
	else if (v->overrun == PD_BACKGROUND)
		pd_event_task(d, now, PD_EV_BACKGROUND, v->task, v->release_number - 1);
	return 0;
}

/* wait_period: the latest release is done, or an earlier one is, late. */
PD_FN int pd_reservation_waits(pd_ref d, pd_u32 r, pd_u64 now)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_u32 job = v->job ? pd_job_index(d, v->job) : PD_NONE;
	/* Without a job the latest release has overrun itself, and this may be its own wait. */
	pd_u32 own = job == PD_NONE && v->delayed ? 1 : 0;

	v->waits = 1;
	if (v->delayed > own && v->overrun != PD_SKIP) {
		v->delayed--;
		return PD_WAIT_IGNORED;
	}
	pd_reservation_lost(v, v->delayed - own);
	v->delayed = 0;
	if (job != PD_NONE)
		pd_job_end(d, job, PD_EV_COMPLETED, now);
	return PD_WAIT_RELEASE;
}

/* x * budget / deadline for x <= deadline: exact below 2^32 ns, else rounded down a little more. */
PD_FN pd_u64 pd_bandwidth_of(pd_u64 x, pd_u64 budget, pd_u64 deadline)
{
	pd_u32 shift = 0;

	pd_while (deadline >> 32) {
		deadline = (deadline >> 1) + 1;
		budget >>= 1;
		x >>= 1;
		shift++;
	}
	return x * budget / deadline << shift;
}

/* Its task woke in mid-job: what is left is cut to what its bandwidth allows before the finish
 * (the revised CBS wake-up rule), by replacing the job. */
PD_FN int pd_reservation_woke(pd_ref d, pd_u32 r, pd_u64 now)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_u32 i = v->job ? pd_job_index(d, v->job) : PD_NONE;
	pd_job_p j;
	pd_u64 allowed;

	if (i == PD_NONE || !v->wakeup_rule)
		return 0;
	j = PD_JOB(d, i);
	if (j->attr.finish <= now)
		return 0;
	allowed = pd_bandwidth_of(j->attr.finish - now, v->budget, v->deadline);
	if (j->attr.budget <= allowed)
		return 0;
	pd_job_end(d, i, PD_EV_CANCELLED, now);
	return pd_reservation_put(d, r, allowed, now);
}

/* A job for the latest release, with so much budget. */
PD_FOLD int pd_reservation_put(pd_ref d, pd_u32 r, pd_u64 budget, pd_u64 now)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	struct pd_job_attr PD_ARENA *a = pd_draft(d);
	pd_i64 id;

	a->start = v->latest_release;
	a->finish = pd_later(v->latest_release, v->deadline);
	a->budget = budget;
	a->priority = v->priority;
	a->cookie = v->release_number - 1;
	a->task = v->task;
	a->group = v->group;
	a->server = 0;
	a->budget_group = 0;
	a->budget_server = 0;
	id = pd_job_make(d, r, now);
	pd_job_settle(d, (pd_u32)id, now);
	/* One without budget has ended already. */
	if (PD_LIKELY(pd_job_index(d, (pd_u64)id) != PD_NONE))
		v->job = (pd_u64)id;
	return 0;
}

/* Releases that nobody looked at in time, or for which no job was left, are said to be lost. */
PD_FN int pd_reservation_lose(pd_ref d, pd_u32 r, pd_u64 lost, pd_u64 now)
{
	pd_reservation_p v = PD_RESERVATION(d, r);

	pd_record(d, PD_REC_EVENT + PD_EV_RELEASES_LOST, v->task, now, v->release_number, lost);
	if (pd_event_ready(d, now)) {
		pd_event_p e = pd_event_put(d, now, PD_EV_RELEASES_LOST, v->task);

		e->cookie = v->release_number;
		e->used = lost;
	}
	v->release_number += lost;
	v->next_release += lost * v->period;
	pd_reservation_lost(v, lost);
	return 0;
}

/* The job of a release: its budget is the task's, less what was overrun before. */
PD_FN int pd_reservation_release(pd_ref d, pd_u32 r, pd_u64 now)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_u64 budget = (pd_u64)((pd_i64)v->budget - v->error);
	int full = PD_JOB(d, PD(d)->free_job)->next_of_task == PD_NONE;

	if (PD_UNLIKELY(now - v->next_release >= v->period))
		pd_reservation_lose(d, r, (now - v->next_release) / v->period, now);
	if (PD_UNLIKELY(full)) {
		pd_reservation_lose(d, r, 1, now);
	} else {
		v->error = 0;
		v->release_number++;
		v->latest_release = v->next_release;
		v->next_release = pd_later(v->next_release, v->period);
	}
	pd_heap_later(d, PD_RELEASES, r, v->next_release);
	if (PD_UNLIKELY(full))
		return 0;
	pd_record(d, PD_REC_EVENT + PD_EV_RELEASED, v->task, now, v->release_number - 1, budget);
	if (pd_event_ready(d, now)) {
		pd_event_p e = pd_event_put(d, now, PD_EV_RELEASED, v->task);

		e->job = ~PD_JOB(d, PD(d)->free_job)->id;
		e->cookie = v->release_number - 1;
		e->used = v->latest_release;
		e->remaining = budget;
	}
	return pd_reservation_put(d, r, budget, now);
}

PD_FN int pd_reservation_refusal(pd_ref d)
{
	pd_p p = PD(d);
	pd_u32 task = p->reservation_draft.task;

	if (task >= p->limits.tasks || !PD_TASK(d, task)->used)
		return PD_ENOTHING;
	if (PD_TASK(d, task)->reservation != PD_NONE)
		return PD_EBUSY;
	if (p->reservation_draft.group >= p->limits.groups)
		return PD_EINVALID;
	if (!p->reservation_draft.budget ||
	    p->reservation_draft.budget > p->reservation_draft.deadline ||
	    p->reservation_draft.deadline > p->reservation_draft.period ||
	    p->reservation_draft.period >> 62 || p->reservation_draft.overrun > PD_SIGNAL)
		return PD_EINVALID;
	if (p->free_reservation == PD_NONE)
		return PD_EFULL;
	return 0;
}

PD_API pd_i64 pd_reservation_add(pd_ref d, pd_u64 now)
{
	pd_p p = PD(d);
	int refusal = pd_reservation_refusal(d);
	pd_u32 r = p->free_reservation;
	pd_reservation_p v;

	if (refusal)
		return refusal;
	v = PD_RESERVATION(d, r);
	p->free_reservation = v->next_free;
	v->used = 1;
	v->next_release = p->reservation_draft.start;
	v->period = p->reservation_draft.period;
	v->budget = p->reservation_draft.budget;
	v->deadline = p->reservation_draft.deadline;
	v->priority = p->reservation_draft.priority;
	v->task = p->reservation_draft.task;
	v->group = p->reservation_draft.group;
	v->overrun = (pd_u8)p->reservation_draft.overrun;
	v->wakeup_rule = p->reservation_draft.wakeup_rule != 0;
	v->error = 0;
	v->release_number = 0;
	v->job = 0;
	v->delayed = 0;
	v->lost = 0;
	v->waits = 0;
	PD_TASK(d, v->task)->reservation = r;
	pd_record(d, PD_REC_RESERVATION_ADD, v->task, now, v->next_release, v->period);
	pd_record(d, PD_REC_RESERVATION_ADD_2, v->group, v->budget, v->deadline,
		  (pd_u64)v->priority);
	pd_record(d, PD_REC_RESERVATION_ADD_3, 0, v->overrun, v->wakeup_rule, 0);
	pd_heap_insert(d, PD_RELEASES, v->next_release, r);
	return r;
}

/* Without a word to its job, which goes on to its own end. */
PD_FN int pd_reservation_drop(pd_ref d, pd_u32 r)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_u32 job = v->job ? pd_job_index(d, v->job) : PD_NONE;

	if (job != PD_NONE)
		PD_JOB(d, job)->reservation = PD_NONE;
	pd_heap_remove(d, PD_RELEASES, r);
	PD_TASK(d, v->task)->reservation = PD_NONE;
	v->used = 0;
	v->next_free = PD(d)->free_reservation;
	PD(d)->free_reservation = r;
	return 0;
}

PD_API int pd_reservation_remove(pd_ref d, pd_u32 r, pd_u64 now)
{
	pd_u64 job;

	if (!pd_reservation_there(d, r))
		return PD_ENOTHING;
	pd_record(d, PD_REC_RESERVATION_REMOVE, r, now, 0, 0);
	job = PD_RESERVATION(d, r)->job;
	pd_reservation_drop(d, r);
	if (job && pd_job_index(d, job) != PD_NONE)
		pd_job_end(d, (pd_u32)job, PD_EV_CANCELLED, now);
	return 0;
}

PD_API pd_u32 pd_reservation_take_lost(pd_ref d, pd_u32 r)
{
	pd_u32 lost;

	if (!pd_reservation_there(d, r))
		return 0;
	lost = PD_RESERVATION(d, r)->lost;
	pd_record(d, PD_REC_TAKE_LOST, r, 0, lost, 0);
	PD_RESERVATION(d, r)->lost = 0;
	return lost;
}

PD_API pd_u64 pd_reservation_job(pd_ref d, pd_u32 r)
{
	return pd_reservation_there(d, r) ? PD_RESERVATION(d, r)->job : 0;
}

PD_API pd_u32 pd_reservation_delayed(pd_ref d, pd_u32 r)
{
	return pd_reservation_there(d, r) ? PD_RESERVATION(d, r)->delayed : 0;
}

PD_API pd_i64 pd_reservation_error(pd_ref d, pd_u32 r)
{
	return pd_reservation_there(d, r) ? PD_RESERVATION(d, r)->error : 0;
}
