/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Where the dispatcher's objects are in the kernel: arrays with fixed limits, all in one BPF arena.
 * The verifier proves nothing about an index into it; the kernel contains a wild one's fault.
 */
#ifndef PUNCTUAL_ARENA_H
#define PUNCTUAL_ARENA_H

/* One per domain. */
#define PD_DOMAINS 1

#define PD_ARENA_JOBS 4096U
#define PD_ARENA_TASKS 4096U
#define PD_ARENA_RESERVATIONS 1024U
#define PD_ARENA_GROUPS 64U
#define PD_ARENA_NODES 64U
#define PD_ARENA_QUEUES (PD_ARENA_GROUPS + PD_ARENA_NODES)
#define PD_ARENA_TIMERS 1024U
#define PD_ARENA_CPUS 1U
#define PD_ARENA_WINDOWS 4096U
#define PD_ARENA_EVENTS 4096U
#define PD_ARENA_RECORDS 65536U

struct pd PD_ARENA pd_dispatchers[PD_DOMAINS];
struct pd_job PD_ARENA pd_jobs[PD_DOMAINS][PD_ARENA_JOBS + 1];
struct pd_task PD_ARENA pd_tasks[PD_DOMAINS][PD_ARENA_TASKS];
struct pd_group PD_ARENA pd_groups[PD_DOMAINS][PD_ARENA_GROUPS];
struct pd_node PD_ARENA pd_nodes[PD_DOMAINS][PD_ARENA_NODES + 1];
struct pd_timer PD_ARENA pd_timers[PD_DOMAINS][PD_ARENA_TIMERS];
struct pd_heap PD_ARENA pd_heaps[PD_DOMAINS][PD_HEAPS(PD_ARENA_QUEUES)];
/* A row of four siblings is one line of the cache. */
struct pd_slot PD_ARENA
	pd_slots[PD_DOMAINS]
		[PD_CHUNKS(PD_ARENA_JOBS, PD_ARENA_RESERVATIONS, PD_ARENA_TIMERS, PD_ARENA_QUEUES)
		 << PD_CHUNK_BITS] __attribute__((aligned(64)));
pd_u32 PD_ARENA pd_chunk_table[PD_DOMAINS]
			      [PD_CHUNK_ENTRIES(PD_ARENA_JOBS, PD_ARENA_RESERVATIONS,
						PD_ARENA_TIMERS, PD_ARENA_QUEUES)];
pd_u32 PD_ARENA pd_positions[PD_DOMAINS][PD_POSITIONS(PD_ARENA_JOBS, PD_ARENA_RESERVATIONS,
						       PD_ARENA_TIMERS)];
struct pd_reservation PD_ARENA pd_reservations[PD_DOMAINS][PD_ARENA_RESERVATIONS];
struct pd_window PD_ARENA pd_windows[PD_DOMAINS][PD_ARENA_WINDOWS];
struct pd_cpu PD_ARENA pd_cpus[PD_DOMAINS][PD_ARENA_CPUS];
struct pd_event PD_ARENA pd_events[PD_DOMAINS][PD_ARENA_EVENTS];
struct pd_record PD_ARENA pd_records[PD_DOMAINS][PD_ARENA_RECORDS];

/* Of a single one the number is known. */
#define PD_DOMAIN(d) (PD_DOMAINS == 1 ? 0 : (d))

#define PD(d) (&pd_dispatchers[PD_DOMAIN(d)])
#define PD_JOB(d, i) (&pd_jobs[PD_DOMAIN(d)][i])
#define PD_TASK(d, i) (&pd_tasks[PD_DOMAIN(d)][i])
#define PD_GROUP(d, i) (&pd_groups[PD_DOMAIN(d)][i])
#define PD_NODE(d, i) (&pd_nodes[PD_DOMAIN(d)][i])
#define PD_TIMER(d, i) (&pd_timers[PD_DOMAIN(d)][i])
#define PD_HEAP(d, i) (&pd_heaps[PD_DOMAIN(d)][i])
#define PD_SLOT(d, i) (&pd_slots[PD_DOMAIN(d)][i])
#define PD_CHUNK_ENTRY(d, i) (pd_chunk_table[PD_DOMAIN(d)][i])
#define PD_POSITION(d, i) (pd_positions[PD_DOMAIN(d)][i])
#define PD_RESERVATION(d, i) (&pd_reservations[PD_DOMAIN(d)][i])
#define PD_WINDOW(d, i) (&pd_windows[PD_DOMAIN(d)][i])
#define PD_CPU(d, i) (&pd_cpus[PD_DOMAIN(d)][i])
#define PD_EVENT(d, i) (&pd_events[PD_DOMAIN(d)][i])
#define PD_RECORD(d, i) (&pd_records[PD_DOMAIN(d)][i])

#endif
