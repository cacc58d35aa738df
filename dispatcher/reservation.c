/* SPDX-License-Identifier: MIT */
/*
 * The standard periodic allocator (design, "Reservation"; RED-Linux Table 1; RTAI paper 3.2, 3.3).
 *
 *            release                      wait_period
 *   BETWEEN ─────────> HAS A JOB ──────────────────────> BETWEEN (done)
 *      ^                   │ budget used up, or finish reached
 *      └───────────────────┘ overrun: one wait is delayed
 *
 * (With windows a release has one job after the other: window.c.)
 * Invariants: at most one job; delayed counts releases that overran and whose wait_period has not
 * come.
 */
#include "internal.h"

/* More lost releases for the next wait_period to report. */
PD_INLINE void pd_reservation_lost(pd_reservation_p v, pd_u64 more)
{
	v->lost = (pd_u32)pd_min(v->lost + more, PD_NONE);
}

PD_INLINE void pd_reservation_delay(pd_ref d, pd_reservation_p v, pd_u64 now)
{
	pd_u32 late = pd_late_after_release(v->delayed, v->waits);

	if (late == v->delayed)
		return;
	v->delayed = late;
	if (late == PD_MAX_DELAYED)
		pd_event_task(d, now, PD_EV_DELAYED_SATURATED, v->task, PD_MAX_DELAYED);
}

/* A job of a reservation ends: adds to the enforcement error and reports an overrun. The job can
 * still be read. */
PD_SHARE int pd_reservation_ended(pd_ref d, pd_u32 i, pd_u32 kind, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);
	pd_u32 r = j->reservation;
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_u64 left = j->attr.budget;

	v->job = 0;
	if (PD_UNLIKELY(v->now.table != PD_NONE)) {
		kind = (pd_u32)pd_table_ends(d, i, kind);
		left = pd_min(v->left, v->now.budget);
	}
	pd_event_job(d, now, kind, i);
	if (kind == PD_EV_WINDOW_EXHAUSTED || kind == PD_EV_WINDOW_EXPIRED)
		return 0;
	if (j->excess)
		pd_error_add(d, r, (pd_i64)pd_min(j->excess, v->now.budget));
	if (kind == PD_EV_EXHAUSTED && left)
		pd_error_add(d, r, -(pd_i64)left);
	/* Only a task can overrun: servers and segments use up their budgets normally. */
	if ((kind != PD_EV_EXHAUSTED && kind != PD_EV_EXPIRED) || v->task == PD_NONE)
		return 0;
	pd_reservation_delay(d, v, now);
	if (v->now.overrun == PD_SIGNAL)
		pd_event_task(d, now, PD_EV_OVERRUN, v->task, v->release_number - 1);
	else if (v->now.overrun == PD_BACKGROUND)
		pd_event_task(d, now, PD_EV_BACKGROUND, v->task, v->release_number - 1);
	return 0;
}

/* wait_period: the latest release is done, or an earlier one is, late. */
PD_FN int pd_reservation_waits(pd_ref d, pd_u32 r, pd_u64 now)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_u32 job = v->job ? pd_job_index(d, v->job) : PD_NONE;
	/* Without a job the latest release has overrun itself, and this may be its own wait. */
	int ended = job == PD_NONE;

	v->waits = 1;
	if (pd_late_is(v->delayed, ended) && v->now.overrun != PD_SKIP) {
		v->delayed--;
		return PD_WAIT_IGNORED;
	}
	pd_reservation_lost(v, v->delayed - pd_late_own(v->delayed, ended));
	v->delayed = 0;
	if (job != PD_NONE)
		pd_job_end(d, job, PD_EV_COMPLETED, now);
	return PD_WAIT_RELEASE;
}

/* Its task woke in mid-job: what is left is cut to what its bandwidth allows before the finish
 * (the revised CBS wake-up rule), by replacing the job: 1 if another one is to be put. */
PD_FN int pd_reservation_woke(pd_ref d, pd_u32 r, pd_u64 now)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_u32 i = v->job ? pd_job_index(d, v->job) : PD_NONE;
	pd_u64 allowed;

	if (i == PD_NONE)
		return 0;
	allowed = pd_wakeup_allows(d, i, now);
	if (PD_JOB(d, i)->attr.budget == allowed)
		return 0;
	pd_job_end(d, i, PD_EV_CANCELLED, now);
	v->left = allowed;
	return 1;
}

/* A job for the latest release: the only one, or the one in the next window. One without budget, or
 * whose window has gone by, ends at once. */
PD_SHARE int pd_reservation_put(pd_ref d, pd_u32 r, pd_u64 now)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	struct pd_job_attr PD_ARENA *a = pd_draft(d);
	pd_i64 id;

	a->start = v->latest_release;
	a->finish = pd_later(v->latest_release, v->now.deadline);
	a->budget = v->left;
	a->priority = v->now.priority;
	a->cookie = v->now.own_cookie ? v->now.cookie : v->release_number - 1;
	a->task = v->task;
	a->group = v->now.group;
	a->server = v->server;
	a->budget_group = v->budget_group;
	a->budget_server = v->budget_server;
	if (PD_UNLIKELY(v->now.table != PD_NONE))
		pd_table_next(d, r);
	id = pd_job_make(d, r, a->group | a->server | a->budget_group | a->budget_server, now);
	pd_job_end_at_once(d, (pd_u32)id, now);
	if (PD_LIKELY(pd_job_index(d, (pd_u64)id) != PD_NONE))
		v->job = (pd_u64)id;
	return 0;
}

/* Reports releases as lost that were not made in time, or for which no job was left. */
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
	v->next_release = pd_later(v->next_release, lost * v->now.period);
	pd_reservation_lost(v, lost);
	if (v->now.table != PD_NONE)
		pd_table_turn(d, r, lost);
	return 0;
}

/* What was changed takes effect. */
PD_FN int pd_reservation_renew(pd_ref d, pd_u32 r)
{
	pd_reservation_p v = PD_RESERVATION(d, r);

	pd_table_free(d, v->now.table);
	pd_copy(&v->now, &v->next, PD_ARENA);
	v->changes = 0;
	if (v->now.table != PD_NONE) {
		v->row = PD_WINDOW(d, v->now.table)->next;
		pd_table_turn(d, r, v->release_number);
	}
	/* No more than one budget of the new size. */
	return pd_error_add(d, r, 0);
}

/* A release: its budget is the reservation's, less what it settles of the enforcement error. 1 if
 * its job is to be put. */
PD_FN int pd_reservation_release(pd_ref d, pd_u32 r, pd_u64 now)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	int full = PD_JOB(d, PD(d)->free_job)->next == PD_NONE;
	pd_i64 settled;
	pd_u64 budget;

	PD(d)->unsettled |= PD_UNSETTLED_TIMES;
	if (PD_UNLIKELY(v->changes))
		pd_reservation_renew(d, r);
	settled = pd_error_settled(v->now.budget, v->error);
	budget = (pd_u64)((pd_i64)v->now.budget - settled);
	if (PD_UNLIKELY(now - v->next_release >= v->now.period))
		pd_reservation_lose(d, r, (now - v->next_release) / v->now.period, now);
	if (PD_UNLIKELY(full)) {
		pd_reservation_lose(d, r, 1, now);
	} else {
		v->error -= settled;
		v->release_number++;
		v->latest_release = v->next_release;
		v->next_release = pd_later(v->next_release, v->now.period);
	}
	pd_heap_increase_key(d, PD_RELEASES, r, v->next_release);
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
	v->left = budget;
	if (PD_UNLIKELY(v->now.table != PD_NONE))
		pd_table_begin(d, v);
	return 1;
}
