/* SPDX-License-Identifier: MIT */
/*
 * The time-driven table (RED-Linux Table 1 and Table 2): a reservation with windows makes of each
 * release one job per window.
 *
 *                          exhausted or expired with budget left
 *                              ┌───────────────────┐
 *   release ──> JOB IN THE FIRST WINDOW ──> JOB IN THE NEXT WINDOW ──> over
 *                    │ completed, nothing left, or the last window          ^
 *                    └──────────────────────────────────────────────────────┘
 *
 * A table is a ring of windows in rows, named by its last window, so that it is taken and freed
 * in one step. Invariants: a release in flight has one job, at most; `left` is what remains of the
 * release's budget before that job; `window` is the one after that job's, in the release's row.
 */
#include "internal.h"

PD_API int pd_window_add(pd_ref d, pd_u64 start, pd_u64 length, pd_u32 begins, pd_u64 now)
{
	pd_p p = PD(d);
	pd_u32 last = p->drafted_last;
	pd_u32 i = p->free_window;
	pd_window_p w;

	if (!length || start >> 62 || length >> 62)
		return -EINVAL;
	if (last == PD_NONE)
		begins = 1;
	else if (!begins && start < PD_WINDOW(d, last)->start + PD_WINDOW(d, last)->length)
		return -EINVAL;
	if (i == PD_NONE)
		return -ENOSPC;
	pd_record(d, PD_REC_WINDOW_ADD, begins != 0, now, start, length);
	w = PD_WINDOW(d, i);
	p->free_window = w->next;
	w->start = start;
	w->length = length;
	w->ends = 1;
	w->next = i;
	if (last != PD_NONE) {
		w->next = PD_WINDOW(d, last)->next;
		PD_WINDOW(d, last)->next = i;
	}
	if (begins) {
		w->next_row = w->next;
		if (last != PD_NONE)
			PD_WINDOW(d, p->drafted_row)->next_row = i;
		p->drafted_row = i;
		p->drafted_rows++;
	} else {
		PD_WINDOW(d, last)->ends = 0;
	}
	p->drafted_last = i;
	p->drafted++;
	if (start + length > p->drafted_end)
		p->drafted_end = start + length;
	return 0;
}

/* Gives windows back; PD_NONE for none. */
PD_FN int pd_table_free(pd_ref d, pd_u32 table)
{
	pd_u32 first;

	if (table == PD_NONE)
		return 0;
	first = PD_WINDOW(d, table)->next;
	PD_WINDOW(d, table)->next = PD(d)->free_window;
	PD(d)->free_window = first;
	return 0;
}

PD_INLINE void pd_table_draft(pd_ref d)
{
	PD(d)->drafted_last = PD_NONE;
	PD(d)->drafted = 0;
	PD(d)->drafted_rows = 0;
	PD(d)->drafted_end = 0;
}

/* Moves the drafted windows into `t`; the next draft is empty. */
PD_INLINE void pd_table_take(pd_ref d, struct pd_terms PD_ARENA *t)
{
	t->table = PD(d)->drafted_last;
	t->rows = PD(d)->drafted_rows;
	pd_table_draft(d);
}

PD_API int pd_window_drop(pd_ref d, pd_u64 now)
{
	if (!PD(d)->drafted)
		return 0;
	pd_record(d, PD_REC_WINDOW_DROP, 0, now, 0, 0);
	pd_table_free(d, PD(d)->drafted_last);
	pd_table_draft(d);
	return 0;
}

/* Passes rows over: as many steps as releases were lost, and no more than there are rows. */
PD_FN int pd_table_turn(pd_ref d, pd_u32 r, pd_u64 rows)
{
	pd_reservation_p v = PD_RESERVATION(d, r);

	rows %= v->now.rows;
	pd_while (rows) {
		v->row = PD_WINDOW(d, v->row)->next_row;
		rows--;
	}
	return 0;
}

/* pd_advance puts the reservation's next job at this instant. */
PD_INLINE void pd_table_continues(pd_ref d, pd_u32 r)
{
	if (PD(d)->first_going == PD_NONE)
		PD(d)->first_going = r;
	else
		PD_RESERVATION(d, PD(d)->last_going)->next_free = r;
	PD_RESERVATION(d, r)->next_free = PD_NONE;
	PD(d)->last_going = r;
}

/* A release: the first window of its row is next. */
PD_INLINE void pd_table_begin(pd_ref d, pd_reservation_p v)
{
	v->window = v->row;
	v->row = PD_WINDOW(d, v->row)->next_row;
}

/* The job of a window ends: returns the kind of event that reports it. What the job executed beyond
 * its budget counts as excess only as far as it is beyond the release's. */
PD_FN int pd_table_ends(pd_ref d, pd_u32 job, pd_u32 kind)
{
	pd_job_p j = PD_JOB(d, job);
	pd_reservation_p v = PD_RESERVATION(d, j->reservation);

	j->excess = j->used > v->left ? j->used - v->left : 0;
	v->left = j->used > v->left ? 0 : v->left - j->used;
	if ((kind != PD_EV_EXHAUSTED && kind != PD_EV_EXPIRED) || v->window == PD_NONE ||
	    v->left <= PD(d)->granularity)
		return (int)kind;
	pd_table_continues(d, j->reservation);
	return kind == PD_EV_EXHAUSTED ? PD_EV_WINDOW_EXHAUSTED : PD_EV_WINDOW_EXPIRED;
}

/* The draft's job is that of the next window. */
PD_FN int pd_table_next(pd_ref d, pd_u32 r)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_window_p w = PD_WINDOW(d, v->window);
	struct pd_job_attr PD_ARENA *a = pd_draft(d);

	a->start = pd_later(v->latest_release, w->start);
	a->finish = pd_later(a->start, w->length);
	a->budget = pd_min(w->length, v->left);
	v->window = w->ends ? PD_NONE : w->next;
	return 0;
}
