/* SPDX-License-Identifier: MIT */
/*
 * The life of a job:
 *
 *   add ──> WAITING ──start──> BLOCKED, THROTTLED, IDLE or READY <──> each other
 *              └─────────────────────────┴─────────── end, once ─────────────┘
 *
 * (a segment: WAITING, then OPEN). A job stands in one place for its state (the starts, its group's
 * queue, its node's segments, or nowhere) and, if it has a finish, among the finishes too: but not
 * while it is ready in a group 0 that is ordered by finish first, whose queue then serves for both.
 */
#include "internal.h"

/* Its queue orders it by finish, so the first of the queue is the next to expire. */
PD_INLINE int pd_queue_by_finish(pd_ref d, pd_job_p j)
{
	return PD_GROUP(d, j->attr.group)->by_finish;
}

PD_INLINE pd_u32 pd_finishes_of(pd_job_p j)
{
	return j->attr.budget_server ? PD_SEGMENT_FINISHES : PD_FINISHES;
}

PD_NOINLINE int pd_job_set_watched(pd_ref d, pd_u32 i, int wanted)
{
	pd_job_p j = PD_JOB(d, i);

	j->among_finishes = (pd_u8)wanted;
	return wanted ? pd_heap_insert(d, pd_finishes_of(j), j->attr.finish, i) :
			pd_heap_remove(d, pd_finishes_of(j), i);
}

/* Among the finishes, unless its queue serves for it. */
PD_ALWAYS_INLINE int pd_job_watch(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);
	int wanted = j->attr.finish != PD_INFINITE &&
		     !(j->state == PD_READY && pd_queue_by_finish(d, j));

	return wanted == j->among_finishes ? 0 : pd_job_set_watched(d, i, wanted);
}

/* Into its group's queue. */
PD_SHARE int pd_job_enqueue(pd_ref d, pd_u32 i, pd_u32 group, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);
	pd_u32 heap = PD_GROUPS + group;

	j->state = PD_READY;
	j->eligible_at = now;
	pd_heap_insert(d, heap, pd_group_key(d, group, j), i);
	if (PD_UNLIKELY(pd_heap_size(d, heap) == 1))
		pd_group_mark(d, group);
	return pd_job_watch(d, i);
}

/* Out of its group's queue. */
PD_ALWAYS_INLINE int pd_job_dequeue(pd_ref d, pd_u32 i, pd_u32 group)
{
	pd_heap_remove(d, PD_GROUPS + group, i);
	if (PD_UNLIKELY(!pd_heap_size(d, PD_GROUPS + group)))
		pd_group_mark(d, group);
	return 0;
}

/* Out of its group's queue, in another state. */
PD_SHARE int pd_job_leave(pd_ref d, pd_u32 i, pd_u32 state)
{
	pd_job_dequeue(d, i, PD_JOB(d, i)->attr.group);
	PD_JOB(d, i)->state = (pd_u8)state;
	return pd_job_watch(d, i);
}

/* One that has begun and is not blocked: throttled, or ready. A server job is idle until its group
 * is settled, at the end of this call. */
PD_ALWAYS_INLINE int pd_job_stand(pd_ref d, pd_u32 i, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);

	if (j->attr.budget_group && PD_NODE(d, j->attr.budget_group)->throttled) {
		j->state = PD_THROTTLED;
	} else if (j->attr.server) {
		j->state = PD_IDLE;
		pd_group_mark(d, j->attr.server);
	} else {
		return pd_job_enqueue(d, i, j->attr.group, now);
	}
	return pd_job_watch(d, i);
}

/* Likewise, for a job in a hierarchy. */
PD_NOINLINE int pd_job_begin_in_hierarchy(pd_ref d, pd_u32 i, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);

	if (j->attr.budget_server) {
		pd_segment_open(d, i);
		return pd_job_watch(d, i);
	}
	if (j->attr.budget_group)
		pd_node_link(d, i);
	if (j->attr.server) {
		pd_list_add(d, &PD_GROUP(d, j->attr.server)->first_server, i);
		PD_GROUP(d, j->attr.server)->best_server = PD_UNKNOWN;
	} else if (PD_TASK(d, j->attr.task)->blocked) {
		j->state = PD_BLOCKED;
		return pd_job_watch(d, i);
	}
	return pd_job_stand(d, i, now);
}

/* Its start has come (or it never had to wait). */
PD_ALWAYS_INLINE int pd_job_begin(pd_ref d, pd_u32 i, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);

	j->eligible_at = now;
	if (PD_UNLIKELY(j->in_hierarchy))
		return pd_job_begin_in_hierarchy(d, i, now);
	if (PD_TASK(d, j->attr.task)->blocked) {
		j->state = PD_BLOCKED;
		return pd_job_watch(d, i);
	}
	return pd_job_enqueue(d, i, 0, now);
}

/* Out of its list of exhausted jobs, which is seldom longer than one. */
PD_FN int pd_job_undue(pd_ref d, pd_u32 i)
{
	pd_u32 next = PD_JOB(d, i)->next_due;
	pd_u32 at = PD(d)->first_due;

	PD_JOB(d, i)->due = 0;
	if (at == i) {
		PD(d)->first_due = next;
		return 0;
	}
	if (PD_JOB(d, i)->attr.budget_server) {
		at = PD(d)->first_due_segment;
		if (at == i) {
			PD(d)->first_due_segment = next;
			return 0;
		}
	}
	pd_while (at != PD_NONE) {
		if (PD_JOB(d, at)->next_due == i) {
			PD_JOB(d, at)->next_due = next;
			return 0;
		}
		at = PD_JOB(d, at)->next_due;
	}
	return 0;
}

/* Out of the trees. */
PD_NOINLINE int pd_job_leave_hierarchy(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);

	if (j->state == PD_OPEN)
		return pd_segment_close(d, i);
	if (j->attr.budget_server || j->state == PD_WAITING)
		return 0;
	if (j->attr.budget_group)
		pd_node_unlink(d, i);
	if (j->attr.server) {
		pd_list_del(d, &PD_GROUP(d, j->attr.server)->first_server, i);
		PD_GROUP(d, j->attr.server)->best_server = PD_UNKNOWN;
	}
	return 0;
}

/* Out of all the places where it may stand. */
PD_NOINLINE int pd_job_take_out(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);

	if (j->state == PD_READY)
		pd_job_dequeue(d, i, j->attr.group);
	else if (j->state == PD_WAITING)
		pd_heap_remove(d, PD_STARTS, i);
	if (j->among_finishes)
		pd_heap_remove(d, pd_finishes_of(j), i);
	if (j->due)
		pd_job_undue(d, i);
	return j->in_hierarchy ? pd_job_leave_hierarchy(d, i) : 0;
}

PD_SHARE int pd_job_end_here(pd_ref d, pd_u32 i, pd_u32 kind, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);

	if (PD_LIKELY(j->flags == PD_PLAIN))
		pd_job_dequeue(d, i, 0);
	else
		pd_job_take_out(d, i);
	if (PD_LIKELY(j->attr.task != PD_NONE))
		pd_list_del(d, &PD_TASK(d, j->attr.task)->first_job, i);
	else
		PD(d)->unsettled |= PD_UNSETTLED_TIMES;
	if (PD_LIKELY(j->reservation == PD_NONE))
		pd_event_job(d, now, kind, i);
	else
		pd_reservation_ended(d, i, kind, now);
	j->state = PD_FREE;
	j->id = ~(j->id + pd_id(1, 0));
	if (PD_UNLIKELY((pd_i64)j->id >= 0))
		j->id = ~pd_id(1, i);
	j->next = PD(d)->free_job;
	PD(d)->free_job = i;
	return 0;
}

/* Likewise, where it is not the end of most jobs. */
PD_NOINLINE int pd_job_end(pd_ref d, pd_u32 i, pd_u32 kind, pd_u64 now)
{
	return pd_job_end_here(d, i, kind, now);
}

/* Takes the draft; for a reservation's job too. */
PD_ALWAYS_INLINE pd_i64 pd_job_make(pd_ref d, pd_u32 reservation, pd_u32 in_hierarchy, pd_u64 now)
{
	pd_u32 i = PD(d)->free_job;
	pd_job_p j = PD_JOB(d, i);

	PD(d)->free_job = j->next;
	j->id = ~j->id;
	j->sequence = PD(d)->sequence++;
	j->used = 0;
	j->excess = 0;
	j->flags = PD_WAITING;
	j->reservation = reservation;
	if (PD_UNLIKELY(in_hierarchy))
		j->in_hierarchy = 1;
	if (PD_LIKELY(!in_hierarchy || j->attr.task != PD_NONE))
		pd_list_add(d, &PD_TASK(d, j->attr.task)->first_job, i);
	else
		PD(d)->unsettled |= PD_UNSETTLED_TIMES; /* it may be a segment with a finish */
	if (j->attr.start > now) {
		pd_heap_insert(d, PD_STARTS, j->attr.start, i);
		pd_job_watch(d, i);
	} else {
		pd_job_begin(d, i, now);
	}
	return (pd_i64)j->id;
}

/* One added with no budget or a past finish is accepted all the same, and ends at once (design,
 * "Job"). */
PD_ALWAYS_INLINE int pd_job_end_at_once(pd_ref d, pd_u32 i, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);

	if (PD_LIKELY(j->attr.budget && j->attr.finish > now))
		return 0;
	return pd_job_end(d, i, j->attr.budget ? PD_EV_EXPIRED : PD_EV_EXHAUSTED, now);
}
