/* SPDX-License-Identifier: MIT */
/* Timers that allocators ask for: the next pd_advance reports a timer that is due, also one whose
 * time had passed when it was asked for. */
#include "internal.h"

PD_API pd_i64 pd_timer_ask(pd_ref d, pd_u64 at, pd_u64 cookie, pd_u64 now)
{
	pd_u32 i = PD(d)->free_timer;
	pd_timer_p t;

	if (i == PD_NONE)
		return -ENOSPC;
	pd_record(d, PD_REC_TIMER_ASK, 0, now, at, cookie);
	t = PD_TIMER(d, i);
	PD(d)->free_timer = t->next_free;
	t->id = ~t->id;
	t->at = at;
	t->cookie = cookie;
	t->sequence = PD(d)->sequence++;
	pd_heap_insert(d, PD_TIMERS, at, i);
	PD(d)->unsettled |= PD_UNSETTLED_TIMES;
	pd_settle(d, now);
	return (pd_i64)t->id;
}

PD_FN int pd_timer_free(pd_ref d, pd_u32 i)
{
	pd_timer_p t = PD_TIMER(d, i);

	pd_heap_remove(d, PD_TIMERS, i);
	t->id = ~(t->id + pd_id(1, 0));
	if (PD_UNLIKELY((pd_i64)t->id >= 0))
		t->id = ~pd_id(1, i);
	t->next_free = PD(d)->free_timer;
	PD(d)->free_timer = i;
	PD(d)->unsettled |= PD_UNSETTLED_TIMES;
	return 0;
}

PD_API int pd_timer_cancel(pd_ref d, pd_u64 timer, pd_u64 now)
{
	pd_u32 i = (pd_u32)timer;

	if (i >= PD(d)->limits.timers || PD_TIMER(d, i)->id != timer)
		return -ENOENT;
	pd_record(d, PD_REC_TIMER_CANCEL, 0, now, timer, 0);
	pd_timer_free(d, i);
	pd_settle(d, now);
	return 0;
}

/* The first one is due. */
PD_FN int pd_timer_fire(pd_ref d, pd_u64 now)
{
	pd_u32 i = pd_heap_first(d, PD_TIMERS);
	pd_timer_p t = PD_TIMER(d, i);

	pd_record(d, PD_REC_EVENT + PD_EV_TIMER, PD_NONE, now, t->id, t->at);
	if (pd_event_ready(d, now)) {
		pd_event_p e = pd_event_put(d, now, PD_EV_TIMER, PD_NONE);

		e->job = t->id;
		e->cookie = t->cookie;
		e->used = t->at;
	}
	return pd_timer_free(d, i);
}
