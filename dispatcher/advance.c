/* SPDX-License-Identifier: MIT */
/* What is due at one instant, in the order that the design fixes:
 * EXHAUSTED; EXPIRED; segments; starts; timers; the allocator inside. */
#include "internal.h"

/* The earliest finish of all jobs but segments. */
PD_INLINE pd_u64 pd_next_finish(pd_ref d)
{
	pd_u64 next = pd_heap_least(d, PD_FINISHES);

	if (PD_GROUP(d, 0)->by_finish)
		next = pd_min(next, pd_heap_least(d, PD_GROUPS));
	return next;
}

/* Equal finishes expire in the order of adding, and only the finishes know it. So what expires in a
 * queue that serves for them goes over to them, but for a single one. */
PD_FN int pd_advance_finishes(pd_ref d, pd_u64 now, pd_u64 horizon)
{
	pd_while (PD_GROUP(d, 0)->by_finish && pd_heap_least(d, PD_GROUPS) <= horizon) {
		pd_u32 i = pd_heap_first(d, PD_GROUPS);

		pd_job_dequeue(d, i, 0);
		/* It ends before anybody can see it. */
		PD_JOB(d, i)->state = PD_BLOCKED;
		if (pd_next_finish(d) > horizon)
			pd_job_end(d, i, PD_EV_EXPIRED, now);
		else
			pd_job_watch(d, i);
	}
	pd_while (pd_heap_least(d, PD_FINISHES) <= horizon)
		pd_job_end(d, pd_heap_first(d, PD_FINISHES), PD_EV_EXPIRED, now);
	return 0;
}

PD_FN int pd_advance_segments(pd_ref d, pd_u64 now, pd_u64 horizon)
{
	pd_while (PD(d)->first_due_segment != PD_NONE)
		pd_job_end(d, PD(d)->first_due_segment, PD_EV_EXHAUSTED, now);
	pd_while (pd_heap_least(d, PD_SEGMENT_FINISHES) <= horizon)
		pd_job_end(d, pd_heap_first(d, PD_SEGMENT_FINISHES), PD_EV_EXPIRED, now);
	return 0;
}

PD_FN int pd_advance_starts(pd_ref d, pd_u64 now)
{
	/* A start never fires early. */
	pd_while (pd_heap_least(d, PD_STARTS) <= now && pd_heap_size(d, PD_STARTS)) {
		pd_u32 i = pd_heap_first(d, PD_STARTS);

		pd_heap_remove(d, PD_STARTS, i);
		pd_job_begin(d, i, now);
	}
	return 0;
}

PD_NOINLINE int pd_advance_due(pd_ref d, pd_u64 now, pd_u64 horizon)
{
	/* What is rare was looked at together. */
	if ((PD(d)->first_due & PD(d)->first_due_segment) == PD_NONE &&
	    pd_next_finish(d) > horizon && pd_heap_least(d, PD_SEGMENT_FINISHES) > horizon &&
	    pd_heap_least(d, PD_STARTS) > now && pd_heap_least(d, PD_TIMERS) > now &&
	    pd_heap_least(d, PD_RELEASES) > now)
		return 0;
	pd_record(d, PD_REC_ADVANCE, 0, now, 0, 0);
	pd_while (PD(d)->first_due != PD_NONE)
		pd_job_end(d, PD(d)->first_due, PD_EV_EXHAUSTED, now);
	pd_advance_finishes(d, now, horizon);
	pd_advance_segments(d, now, horizon);
	pd_advance_starts(d, now);
	pd_while (pd_heap_least(d, PD_TIMERS) <= now && pd_heap_size(d, PD_TIMERS))
		pd_timer_fire(d, now);
	pd_while (1) {
		pd_u32 r = PD(d)->first_going;

		if (PD_UNLIKELY(r != PD_NONE)) {
			PD(d)->first_going = PD_RESERVATION(d, r)->next_free;
		} else {
			if (pd_heap_least(d, PD_RELEASES) > now || !pd_heap_size(d, PD_RELEASES))
				break;
			r = pd_heap_first(d, PD_RELEASES);
			if (!pd_reservation_release(d, r, now))
				continue;
		}
		pd_reservation_put(d, r, now);
	}
	pd_settle(d, now);
	return 0;
}

PD_API int pd_advance(pd_ref d, pd_u64 now)
{
	/* A job without a finish has PD_INFINITE, which no horizon reaches. */
	pd_u64 horizon = pd_min(pd_later(now, PD(d)->granularity), PD_INFINITE - 1);

	if ((PD(d)->first_due & PD(d)->first_due_segment) != PD_NONE ||
	    pd_next_finish(d) <= horizon || pd_heap_least(d, PD_STARTS) <= now ||
	    PD(d)->rare <= horizon)
		return pd_advance_due(d, now, horizon);
	return 0;
}

PD_API int pd_set_granularity(pd_ref d, pd_u64 ns)
{
	if (ns >> 32)
		return -EINVAL;
	pd_record(d, PD_REC_GRANULARITY, 0, 0, ns, 0);
	PD(d)->granularity = ns;
	return 0;
}
