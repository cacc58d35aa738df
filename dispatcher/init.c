/* SPDX-License-Identifier: MIT */
/* Creation: limits are set once, every array gets its place, nothing is allocated afterwards. */
#include "internal.h"

PD_INLINE int pd_power_of_two(pd_u32 x)
{
	return x && !(x & (x - 1));
}

PD_INLINE int pd_limits_valid(const struct pd_limits PD_ARENA *l)
{
	return l->jobs >= 1 && l->jobs <= 1U << 20 && l->tasks >= 1 && l->tasks <= 1U << 20 &&
	       l->reservations <= 1U << 20 && l->groups >= 1 && l->groups <= 1024 &&
	       l->budget_groups <= 1024 && l->timers <= 1U << 20 && l->depth >= 1 &&
	       l->depth <= PD_MAX_DEPTH && pd_power_of_two(l->events) && l->events <= 1U << 24 &&
	       pd_power_of_two(l->records) && l->records <= 1U << 28 && l->cpus == 1 &&
	       l->windows <= 1U << 20;
}

/* Elements from `e` on are free: each links to the next one. */
#define PD_LINK_FREE(e, link, count)                               \
	do {                                                       \
		i = PD_ZERO(d);                                    \
		pd_while (i < (count)) {                           \
			PD_BARRIER_VAR(e);                         \
			e->link = i + 1 < (count) ? i + 1 : PD_NONE; \
			e++;                                       \
			i++;                                       \
		}                                                  \
	} while (0)

/* Jobs, tasks, reservations, timers and windows: all free. */
PD_ALWAYS_INLINE int pd_start_free(pd_ref d)
{
	pd_p p = PD(d);
	pd_job_p j = PD_JOB(d, 0);
	pd_task_p t = PD_TASK(d, 0);
	pd_reservation_p v = PD_RESERVATION(d, 0);
	pd_timer_p m = PD_TIMER(d, 0);
	pd_window_p w = PD_WINDOW(d, 0);
	pd_u32 i = PD_ZERO(d);

	pd_while (i <= p->limits.jobs) {
		PD_BARRIER_VAR(j);
		j->id = ~pd_id(1, i);
		j->next = i < p->limits.jobs ? i + 1 : PD_NONE;
		j++;
		i++;
	}
	PD_LINK_FREE(t, next_free, p->limits.tasks);
	p->free_reservation = p->limits.reservations ? 0 : PD_NONE;
	PD_LINK_FREE(v, next_free, p->limits.reservations);
	p->free_timer = p->limits.timers ? 0 : PD_NONE;
	i = PD_ZERO(d);
	pd_while (i < p->limits.timers) {
		PD_BARRIER_VAR(m);
		m->id = ~pd_id(1, i);
		m->next_free = i + 1 < p->limits.timers ? i + 1 : PD_NONE;
		m++;
		i++;
	}
	p->free_window = p->limits.windows ? 0 : PD_NONE;
	PD_LINK_FREE(w, next, p->limits.windows);
	return 0;
}

/* All empty, and all chunks in the pool. */
PD_ALWAYS_INLINE int pd_start_heaps(pd_ref d)
{
	pd_p p = PD(d);
	pd_u32 queues = p->limits.groups + p->limits.budget_groups;
	pd_u32 per_heap = PD_CHUNKS_FOR(p->limits.jobs);
	pd_u32 chunks = PD_CHUNKS(p->limits.jobs, p->limits.reservations, p->limits.timers, queues);
	pd_heap_p h = PD_HEAP(d, 0);
	pd_slot_p s = PD_SLOT(d, 0);
	pd_u32 i = PD_ZERO(d);

	pd_while (i < chunks) {
		PD_BARRIER_VAR(s);
		s->key = i + 1;
		s += PD_CHUNK;
		i++;
	}
	i = PD_ZERO(d);
	pd_while (i < PD_HEAPS(queues)) {
		PD_BARRIER_VAR(h);
		h->least = PD_INFINITE;
		h->first = PD_NONE;
		h->table = i * per_heap;
		h++;
		i++;
	}
	/* Theirs are other numbers than jobs'. */
	PD_HEAP(d, PD_RELEASES)->table = PD_HEAPS(queues) * per_heap;
	PD_HEAP(d, PD_TIMERS)->table =
		PD_HEAPS(queues) * per_heap + PD_CHUNKS_FOR(p->limits.reservations);
	/* A job stands in one queue and among the finishes: two positions. */
	PD_HEAP(d, PD_FINISHES)->positions = p->limits.jobs + 1;
	PD_HEAP(d, PD_SEGMENT_FINISHES)->positions = p->limits.jobs + 1;
	PD_HEAP(d, PD_RELEASES)->positions = 2 * (p->limits.jobs + 1);
	PD_HEAP(d, PD_TIMERS)->positions = 2 * (p->limits.jobs + 1) + p->limits.reservations;
	return 0;
}

/* Everything but the memory itself: free lists, heaps, orderings. */
PD_FN int pd_start(pd_ref d)
{
	pd_p p = PD(d);
	pd_group_p g = PD_GROUP(d, 0);
	pd_u32 i = PD_ZERO(d);

	p->event_mask = p->limits.events - 1;
	p->record_mask = p->limits.records - 1;
	p->first_due = PD_NONE;
	p->first_due_segment = PD_NONE;
	p->first_going = PD_NONE;
	p->drafted_last = PD_NONE;
	p->rare = PD_INFINITE;
	pd_start_free(d);
	pd_start_heaps(d);
	pd_while (i < p->limits.groups) {
		PD_BARRIER_VAR(g);
		pd_group_order(d, i, PD_ORDER_DEFAULT);
		g->parent = PD_NONE;
		g->height = 1;
		g->first_server = PD_NONE;
		g->best_server = PD_NONE;
		g++;
		i++;
	}
	i = PD_ZERO(d);
	pd_while (i < PD_MAX_DEPTH) {
		PD_NTH(p->unsettled_groups, i) = PD_NONE;
		i++;
	}
	return 0;
}

#ifndef __bpf__

/* The array's place in the block, which grows by it; null memory only counts. */
#define PD_PLACE(field, count)                                                \
	do {                                                                  \
		if (d)                                                        \
			d->field = (void *)((char *)d + at);                  \
		at += ((pd_u64)(count) * sizeof(*d->field) + 63) & ~63ULL;    \
	} while (0)

static pd_u64 pd_layout(struct pd *d, const struct pd_limits *l)
{
	pd_u64 at = (sizeof(struct pd) + 63) & ~63ULL;
	pd_u32 queues = l->groups + l->budget_groups;

	PD_PLACE(jobs, l->jobs + 1);
	PD_PLACE(tasks, l->tasks);
	PD_PLACE(groups, l->groups);
	PD_PLACE(nodes, l->budget_groups + 1);
	PD_PLACE(timers, l->timers);
	PD_PLACE(heaps, PD_HEAPS(queues));
	PD_PLACE(slots, (pd_u64)PD_CHUNKS(l->jobs, l->reservations, l->timers, queues)
				<< PD_CHUNK_BITS);
	PD_PLACE(chunk_table, PD_CHUNK_ENTRIES(l->jobs, l->reservations, l->timers, queues));
	PD_PLACE(positions, PD_POSITIONS((pd_u64)l->jobs, l->reservations, l->timers));
	PD_PLACE(reservations, l->reservations);
	PD_PLACE(windows, l->windows);
	PD_PLACE(cpus, l->cpus);
	PD_PLACE(events, l->events);
	PD_PLACE(records, l->records);
	return at;
}

PD_API pd_u64 pd_size(const struct pd_limits *limits)
{
	return pd_limits_valid(limits) ? pd_layout((struct pd *)0, limits) : 0;
}

PD_API pd_ref pd_init(void *memory, const struct pd_limits *limits)
{
	struct pd *d = memory;

	if (!pd_limits_valid(limits))
		return (pd_ref)0;
	d->limits = *limits;
	pd_layout(d, limits);
	pd_start(d);
	return d;
}

PD_API struct pd_job_attr *pd_job_draft(pd_ref d)
{
	return pd_draft(d);
}

PD_API struct pd_reservation_attr *pd_reservation_draft(pd_ref d)
{
	return &d->reservation_draft;
}

PD_API const struct pd_event *pd_event_peek(pd_ref d)
{
	return d->event_head == d->event_tail ? (const struct pd_event *)0 :
						&d->events[d->event_tail & d->event_mask];
}

PD_API const struct pd_record *pd_record_at(pd_ref d, pd_u64 number)
{
	if (number >= d->record_count || d->record_count - number > d->limits.records)
		return (const struct pd_record *)0;
	return &d->records[number & d->record_mask];
}

PD_API pd_u64 pd_record_count(pd_ref d)
{
	return d->record_count;
}

#else

PD_API int pd_create(pd_ref d)
{
	struct pd_limits PD_ARENA *l = &PD(d)->limits;

	if (!pd_limits_valid(l) || l->jobs > PD_ARENA_JOBS || l->tasks > PD_ARENA_TASKS ||
	    l->reservations > PD_ARENA_RESERVATIONS || l->groups > PD_ARENA_GROUPS ||
	    l->budget_groups > PD_ARENA_NODES || l->timers > PD_ARENA_TIMERS ||
	    l->windows > PD_ARENA_WINDOWS || l->events > PD_ARENA_EVENTS ||
	    l->records > PD_ARENA_RECORDS)
		return -EINVAL;
	return pd_start(d);
}

#endif
