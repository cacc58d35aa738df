/* SPDX-License-Identifier: MIT */
/* Events to the allocators. A full ring loses the newest, and says so as soon as one is taken. */
#include "internal.h"

PD_INLINE int pd_event_room(pd_ref d)
{
	return PD(d)->event_head - PD(d)->event_tail <= PD(d)->event_mask;
}

/* The next entry, with its time, kind and task set and the rest zero. */
PD_INLINE pd_event_p pd_event_put(pd_ref d, pd_u64 now, pd_u32 kind, pd_u32 task)
{
	pd_event_p e = PD_EVENT(d, PD(d)->event_head++ & PD(d)->event_mask);

	e->time = now;
	e->kind = kind;
	e->task = task;
	e->job = 0;
	e->cookie = 0;
	e->used = 0;
	e->remaining = 0;
	return e;
}

/* 0 if there is no room, and then it is counted as lost. */
PD_ALWAYS_INLINE int pd_event_ready(pd_ref d, pd_u64 now)
{
	if (PD_LIKELY(pd_event_room(d)))
		return 1;
	PD(d)->event_lost++;
	PD(d)->event_lost_at = now;
	return 0;
}

/* An event about a task (or a group) that names no job. */
PD_FN int pd_event_task(pd_ref d, pd_u64 now, pd_u32 kind, pd_u32 task, pd_u64 cookie)
{
	pd_event_p e;

	pd_record(d, PD_REC_EVENT + kind, task, now, 0, cookie);
	if (!pd_event_ready(d, now))
		return 0;
	e = pd_event_put(d, now, kind, task);
	e->cookie = cookie;
	return 1;
}

/* An event about a job that is still there. */
PD_ALWAYS_INLINE int pd_event_job(pd_ref d, pd_u64 now, pd_u32 kind, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);
	pd_u32 task = j->attr.task;
	pd_event_p e;

	/* A segment that ends by itself has its own events, which tell the node. */
	if (PD_UNLIKELY(j->attr.budget_server) &&
	    (kind == PD_EV_EXHAUSTED || kind == PD_EV_EXPIRED)) {
		task = j->attr.budget_server;
		kind = kind == PD_EV_EXHAUSTED ? PD_EV_SEGMENT_EXHAUSTED : PD_EV_SEGMENT_EXPIRED;
	}
	pd_record(d, PD_REC_EVENT + kind, task, now, j->id, j->used);
	if (!pd_event_ready(d, now))
		return 0;
	e = pd_event_put(d, now, kind, task);
	e->job = j->id;
	e->cookie = j->attr.cookie;
	e->used = j->used;
	e->remaining = j->attr.budget;
	return 1;
}

PD_API int pd_event_pop(pd_ref d)
{
	if (PD(d)->event_head == PD(d)->event_tail)
		return 0;
	PD(d)->event_tail++;
	/* What had no room stands behind all that had it, and before whatever comes next. */
	if (PD_UNLIKELY(PD(d)->event_lost)) {
		pd_event_put(d, PD(d)->event_lost_at, PD_EV_LOST, PD_NONE)->used = PD(d)->event_lost;
		PD(d)->event_lost = 0;
	}
	return 1;
}
