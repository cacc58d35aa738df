/* SPDX-License-Identifier: MIT */
/* Reservations, as an allocator outside asks for them: added, changed, removed, read. */
#include "internal.h"

PD_INLINE int pd_reservation_there(pd_ref d, pd_u32 r)
{
	return r < PD(d)->limits.reservations && PD_RESERVATION(d, r)->used;
}

/* Budget, deadline, period, policy, windows. Windows are for tasks only, and exclude the wake-up
 * rule: both limit a bandwidth. */
PD_FN int pd_terms_invalid(pd_ref d, pd_u32 task)
{
	pd_p p = PD(d);

	if (p->drafted && (task == PD_NONE || p->reservation_draft.wakeup_rule ||
			   p->drafted_end > p->reservation_draft.deadline))
		return 1;
	return !p->reservation_draft.budget ||
	       p->reservation_draft.budget > p->reservation_draft.deadline ||
	       p->reservation_draft.deadline > p->reservation_draft.period ||
	       p->reservation_draft.period >> 62 || p->reservation_draft.overrun > PD_SIGNAL;
}

PD_FN int pd_reservation_refusal(pd_ref d)
{
	struct pd_reservation_attr PD_ARENA *a = &PD(d)->reservation_draft;

	if (pd_kind_nothing(d, a->task, a->server, a->budget_group, a->budget_server))
		return -ENOENT;
	if (a->task != PD_NONE && PD_TASK(d, a->task)->reservation != PD_NONE)
		return -EBUSY;
	if (pd_kind_invalid(d, a->task, a->group, a->server, a->budget_server) ||
	    pd_terms_invalid(d, a->task))
		return -EINVAL;
	if (a->server | a->budget_server) {
		int refusal = pd_tree_refusal(d, a->group, a->server, a->budget_group,
					      a->budget_server);

		if (refusal)
			return refusal;
	}
	return PD(d)->free_reservation == PD_NONE ? -ENOSPC : 0;
}

/* Four records of the draft. */
PD_FN int pd_reservation_record(pd_ref d, pd_u64 now)
{
	struct pd_reservation_attr PD_ARENA *a = &PD(d)->reservation_draft;

	pd_record(d, PD_REC_RESERVATION_ADD, a->task, now, a->start, a->period);
	pd_record(d, PD_REC_RESERVATION_ADD_2, a->group, a->budget, a->deadline,
		  (pd_u64)a->priority);
	pd_record(d, PD_REC_RESERVATION_ADD_3, a->own_cookie, a->cookie, a->wakeup_rule,
		  a->overrun);
	pd_record(d, PD_REC_RESERVATION_ADD_4, PD(d)->drafted, a->server, a->budget_group,
		  a->budget_server);
	return 0;
}

PD_INLINE void pd_terms_take(pd_ref d, struct pd_terms PD_ARENA *t)
{
	struct pd_reservation_attr PD_ARENA *a = &PD(d)->reservation_draft;

	t->period = a->period;
	t->budget = a->budget;
	t->deadline = a->deadline;
	t->priority = a->priority;
	t->cookie = a->cookie;
	t->group = a->group;
	t->overrun = (pd_u8)a->overrun;
	t->wakeup_rule = a->wakeup_rule != 0;
	t->own_cookie = a->own_cookie != 0;
	pd_table_take(d, t);
}

PD_API pd_i64 pd_reservation_add(pd_ref d, pd_u64 now)
{
	struct pd_reservation_attr PD_ARENA *a = &PD(d)->reservation_draft;
	int refusal = pd_reservation_refusal(d);
	pd_u32 r = PD(d)->free_reservation;
	pd_reservation_p v;

	if (refusal)
		return refusal;
	v = PD_RESERVATION(d, r);
	PD(d)->free_reservation = v->next_free;
	v->used = 1;
	v->changes = 0;
	v->next_release = a->start;
	pd_reservation_record(d, now);
	pd_terms_take(d, &v->now);
	if (v->now.table != PD_NONE)
		v->row = PD_WINDOW(d, v->now.table)->next;
	v->task = a->task;
	v->server = a->server;
	v->budget_group = a->budget_group;
	v->budget_server = a->budget_server;
	v->error = 0;
	v->release_number = 0;
	v->job = 0;
	v->delayed = 0;
	v->lost = 0;
	v->waits = 0;
	if (v->task != PD_NONE)
		PD_TASK(d, v->task)->reservation = r;
	else
		pd_tree_grow(d, a->group, a->server, a->budget_group, a->budget_server);
	pd_heap_insert(d, PD_RELEASES, v->next_release, r);
	PD(d)->unsettled |= PD_UNSETTLED_TIMES;
	pd_settle(d, now);
	return r;
}

PD_API int pd_reservation_change(pd_ref d, pd_u32 r, pd_u64 now)
{
	struct pd_reservation_attr PD_ARENA *a = &PD(d)->reservation_draft;
	pd_reservation_p v;

	if (!pd_reservation_there(d, r))
		return -ENOENT;
	v = PD_RESERVATION(d, r);
	if (pd_kind_invalid(d, v->task, a->group, v->server, v->budget_server) ||
	    pd_terms_invalid(d, v->task))
		return -EINVAL;
	/* A server job's group is its place in the tree. */
	if (v->server && PD_GROUP(d, v->server)->parent != a->group)
		return -ELOOP;
	pd_record(d, PD_REC_RESERVATION_CHANGE, r, now, 0, 0);
	pd_reservation_record(d, now);
	if (v->changes)
		pd_table_free(d, v->next.table);
	pd_terms_take(d, &v->next);
	v->changes = 1;
	return 0;
}

/* Without a word to its job, which continues to its own end. */
PD_FN int pd_reservation_drop(pd_ref d, pd_u32 r)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_u32 job = v->job ? pd_job_index(d, v->job) : PD_NONE;

	if (job != PD_NONE)
		PD_JOB(d, job)->reservation = PD_NONE;
	pd_table_free(d, v->now.table);
	if (v->changes)
		pd_table_free(d, v->next.table);
	pd_heap_remove(d, PD_RELEASES, r);
	PD(d)->unsettled |= PD_UNSETTLED_TIMES;
	if (v->task != PD_NONE)
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
		return -ENOENT;
	pd_record(d, PD_REC_RESERVATION_REMOVE, r, now, 0, 0);
	job = PD_RESERVATION(d, r)->job;
	pd_reservation_drop(d, r);
	if (job && pd_job_index(d, job) != PD_NONE)
		pd_job_end(d, (pd_u32)job, PD_EV_CANCELLED, now);
	pd_settle(d, now);
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
