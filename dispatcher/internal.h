/* SPDX-License-Identifier: MIT */
/* The dispatcher's objects, all in arrays and named by index. */
#pragma once

#include "punctual_dispatcher.h"
#include "record.h"

/* The attributes are where the allocator wrote them: the draft is the next free job. */
struct pd_job {
	struct pd_job_attr attr; /* its budget is what remains of it; `reserved` is prev_of_node */
	pd_u64 id;		 /* its uses so far and its index; inverted while it is free */
	pd_u64 eligible_at;	 /* arrival, first part: when it became ready, or else when it began */
	pd_u64 sequence;	 /* arrival, second part: the order of adding */
	pd_u64 used;
	pd_u64 excess;	    /* executed beyond its budget */
	pd_u32 reservation; /* index, PD_NONE if an allocator outside made it */
	pd_u32 next_due;
	pd_u32 next; /* in its task's list, or its group's list of servers, or that of free jobs */
	pd_u32 prev;
	pd_u32 next_of_node;
	union {
		struct {
			pd_u8 state; /* enum pd_job_state */
			pd_u8 due;   /* in a list of exhausted jobs */
			pd_u8 among_finishes;
			/* It names a group other than 0, a server or a node. */
			pd_u8 in_hierarchy;
		};
		pd_u32 flags; /* all of these: PD_PLAIN for most in a flat set */
	};
};

/* A real job ready in group 0, which is in no other place. */
#define PD_PLAIN ((pd_u32)PD_READY)


struct pd_task {
	pd_u32 first_job;
	pd_u32 reservation;
	pd_u32 lends_to;     /* the task that its jobs execute in its place; PD_NONE for none */
	pd_u32 executes;     /* what its jobs execute in the end: itself, or what that one executes */
	pd_u32 first_lender; /* of the tasks that lend to it */
	union {
		pd_u32 next_free;
		pd_u32 next_lender; /* these two: of those that lend to the same one */
	};
	pd_u32 prev_lender;
	pd_u8 used;
	pd_u8 sleeps;
	pd_u8 blocked; /* what its jobs execute sleeps */
	pd_u8 raised;  /* the attribute (enum pd_attribute) that has a ceiling; 0: it is not raised */
	pd_u64 ceiling;
};

/* A scheduling group. Its members are its heap's. */
struct pd_group {
	pd_u64 turned; /* bits to turn over in the first attribute, to make it a key */
	pd_u32 order;  /* PD_ORDER */
	pd_u32 first;  /* the first attribute's place in the job */
	pd_u32 parent; /* the group of its server jobs; PD_NONE until it has one */
	pd_u32 height; /* levels of the tree from here down, 1 at least */
	pd_u32 first_server; /* of its server jobs that have begun */
	pd_u32 best_server;  /* of these, for its path; PD_UNKNOWN after a change */
	pd_u32 next_unsettled;
	pd_u8 by_budget; /* charging a member may change its place */
	pd_u8 by_finish; /* group 0's queue serves for its members' finishes too */
	pd_u8 active;	 /* it had members when things were last settled */
	pd_u8 unsettled;
	pd_u32 unused[6];
};

#define PD_UNKNOWN (PD_NONE - 1)


/* A budget group. Its open segments are its heap's. */
struct pd_node {
	pd_u64 charged; /* the number of the last charge that reached it */
	pd_u32 parent;	/* 0 for none */
	pd_u32 depth;	/* 0 until it is made */
	pd_u32 first_child;
	pd_u32 next_sibling;
	pd_u32 first_job; /* of the jobs put under it that have begun */
	pd_u32 next_unsettled;
	pd_u8 unsettled;
	pd_u8 throttled; /* it or one above it was exhausted when last settled */
	pd_u8 unused[6];
};

/* One that an allocator asked for. */
struct pd_timer {
	pd_u64 id; /* as a job's */
	pd_u64 cookie;
	pd_u64 sequence;
	pd_u64 at;
	pd_u32 next_free;
	pd_u32 unused;
};

/* What a heap's keys are, and so which of two equal keys is first. */
enum pd_heap_number {
	PD_STARTS = 0,		 /* waiting jobs by start */
	PD_FINISHES = 1,	 /* jobs by finish, where their queue does not order them so */
	PD_SEGMENT_FINISHES = 2, /* segments by finish */
	PD_RELEASES = 3,	 /* reservations by next release */
	PD_TIMERS = 4,
	PD_GROUPS = 5, /* + group: its ready jobs by its ordering; then the nodes (PD_NODES) */
};
/* + node: its open segments by finish. */
#define PD_NODES(d) (PD_GROUPS + PD(d)->limits.groups - 1)

/* One of a table's, which is a ring of them (window.c). */
struct pd_window {
	pd_u64 start; /* from the release on */
	pd_u64 length;
	pd_u32 next;	 /* in the ring, or of the free ones */
	pd_u32 next_row; /* of the first one of a row: that of the next row */
	pd_u32 ends;	 /* the last one of its row */
	pd_u32 unused;
};

struct pd_slot {
	pd_u64 key;
	pd_u32 item;
	pd_u32 unused;
};

/* Heaps share one pool of slots, taken in chunks, so that a group's queue can grow to all jobs
 * without every group having room for all. */
#define PD_CHUNK_BITS 5U
#define PD_CHUNK (1U << PD_CHUNK_BITS)

/* Where a heap begins (heap.c); this offset counts as items. */
#define PD_ROOT 3U
#define PD_CHUNKS_FOR(items) (((items) + PD_ROOT + PD_CHUNK - 1) / PD_CHUNK)
/* `queues` counts groups and nodes together. */
#define PD_HEAPS(queues) (PD_GROUPS + (queues))
/* Slots for all heaps together: each job is among the starts or in one queue, and among the
 * finishes; each heap keeps one chunk that is not full, and one that it never gives back. */
#define PD_CHUNKS(jobs, reservations, timers, queues)                                        \
	(2 * PD_CHUNKS_FOR(jobs) + PD_CHUNKS_FOR(reservations) + PD_CHUNKS_FOR(timers) + \
	 2 * PD_HEAPS(queues))
/* Chunk-table entries: every heap can hold all its items. */
#define PD_CHUNK_ENTRIES(jobs, reservations, timers, queues)                        \
	(PD_HEAPS(queues) * PD_CHUNKS_FOR(jobs) + PD_CHUNKS_FOR(reservations) + \
	 PD_CHUNKS_FOR(timers))
/* A job stands in one queue and among the finishes. */
#define PD_POSITIONS(jobs, reservations, timers) (2 * ((jobs) + 1) + (reservations) + (timers))

struct pd_heap {
	pd_u32 size;
	pd_u32 chunks;	  /* taken from the pool */
	pd_u32 table;	  /* its first entry in chunk_table */
	pd_u32 positions; /* its items' first entry in positions */
	pd_u64 least;	  /* the first one's key; PD_INFINITE when it is empty */
	pd_u32 first;	  /* the first one; PD_NONE when it is empty */
	pd_u32 unused;
};

/* What pd_reservation_change may change. */
struct pd_terms {
	pd_u64 period;
	pd_u64 budget;
	pd_u64 deadline;
	pd_i64 priority;
	pd_u64 cookie;
	pd_u32 group;
	pd_u8 overrun;
	pd_u8 wakeup_rule;
	pd_u8 own_cookie;
	pd_u8 unused;
	pd_u32 table; /* the last one of its windows; PD_NONE without */
	pd_u32 rows;
};

struct pd_reservation {
	struct pd_terms now;
	struct pd_terms next; /* from the next release on, if `changes` */
	pd_u64 next_release;
	pd_u64 latest_release;
	pd_i64 error; /* enforcement error (enforcement.c) that is still to be settled */
	pd_u64 release_number;
	pd_u64 job; /* id of the current one, 0 between two */
	pd_u64 left; /* what the release may execute from its current job on */
	pd_u32 window; /* with windows: that of the job after the current one; PD_NONE for none */
	pd_u32 row;	 /* with windows: the first one of the next release */
	pd_u32 task; /* PD_NONE for server jobs and segments */
	pd_u32 server;
	pd_u32 budget_group;
	pd_u32 budget_server;
	pd_u32 delayed; /* wait_period calls that are due from releases gone by */
	pd_u32 lost;	/* releases that the next return of wait_period reports */
	pd_u32 next_free; /* or the next one that continues */
	pd_u8 used;
	pd_u8 waits; /* its task has called wait_period */
	pd_u8 changes;
	pd_u8 unused;
};

#define PD_RANKS 16U

struct pd_cpu {
	pd_u64 selected; /* id */
	pd_u64 path[PD_MAX_DEPTH];
	pd_u32 depth;
	pd_u32 ranks;		     /* how many of `ranked` are known */
	pd_u32 ranked[PD_RANKS];     /* jobs, best first */
	pd_u32 cursor[PD_MAX_DEPTH]; /* the path of the last of them, from group 0 down */
	pd_u32 cursor_depth;	     /* 0: there are no more; PD_NONE: it is the selected one */
	pd_u32 unused;
};

/* What pd_settle has to look at. */
#define PD_UNSETTLED_TREES 1U
#define PD_UNSETTLED_TIMES 2U
#define PD_UNSETTLED_TOP 4U /* group 0: it has no server jobs, and so comes last */

struct pd {
	struct pd_limits limits;
	pd_u64 granularity;
	pd_u64 sequence;
	pd_u64 record_count;
	pd_u64 event_head; /* next to write */
	pd_u64 event_tail; /* next to read */
	pd_u64 event_lost;
	pd_u64 event_lost_at;
	pd_u32 event_mask;
	pd_u32 record_mask;
	pd_u32 free_job;
	pd_u32 free_task;
	pd_u32 free_reservation;
	pd_u32 free_chunk;
	pd_u32 ceilings;	  /* a task was raised: the orders of groups look at the tasks */
	pd_u32 first_due;	  /* exhausted jobs, the last first */
	pd_u32 first_due_segment; /* and segments */
	pd_u32 unsettled;	  /* PD_UNSETTLED */
	pd_u32 unsettled_nodes;	  /* the first of them */
	pd_u32 zero;		  /* always */
	pd_u64 rare;		  /* the earliest finish of a segment, timer and release */
	pd_u64 charges;		  /* that went beyond one job, so far */
	pd_u64 unsettled_heights; /* bit h - 1: there are groups of height h to settle */
	pd_u32 unsettled_groups[PD_MAX_DEPTH]; /* the first of them, by height - 1 */
	struct pd_reservation_attr reservation_draft;
	pd_u32 first_going; /* reservations whose releases are due in another window, FIFO */
	pd_u32 last_going;
	pd_u32 free_window;
	pd_u32 drafted; /* windows so far */
	pd_u32 drafted_rows;
	pd_u32 drafted_row;  /* the first window of the last of them */
	pd_u32 drafted_last; /* window; PD_NONE for none */
	pd_u32 free_timer;
	pd_u64 drafted_end; /* the latest end of all */
#ifndef __bpf__
	struct pd_job *jobs;
	struct pd_task *tasks;
	struct pd_group *groups;
	struct pd_node *nodes;
	struct pd_timer *timers;
	struct pd_heap *heaps;
	struct pd_slot *slots;
	pd_u32 *chunk_table;
	pd_u32 *positions;
	struct pd_reservation *reservations;
	struct pd_window *windows;
	struct pd_cpu *cpus;
	struct pd_event *events;
	struct pd_record *records;
#endif
};

#ifndef __bpf__
#define PD(d) (d)
#define PD_JOB(d, i) (&(d)->jobs[i])
#define PD_TASK(d, i) (&(d)->tasks[i])
#define PD_GROUP(d, i) (&(d)->groups[i])
#define PD_NODE(d, i) (&(d)->nodes[i])
#define PD_TIMER(d, i) (&(d)->timers[i])
#define PD_HEAP(d, i) (&(d)->heaps[i])
#define PD_SLOT(d, i) (&(d)->slots[i])
#define PD_CHUNK_ENTRY(d, i) ((d)->chunk_table[i])
#define PD_POSITION(d, i) ((d)->positions[i])
#define PD_RESERVATION(d, i) (&(d)->reservations[i])
#define PD_WINDOW(d, i) (&(d)->windows[i])
#define PD_CPU(d, i) (&(d)->cpus[i])
#define PD_EVENT(d, i) (&(d)->events[i])
#define PD_RECORD(d, i) (&(d)->records[i])
#define PD_ZERO(d) 0
/* The host keeps more than the selected job ready to run, and has pd_timer look at them. */
#define PD_RUNNERS_UP 1
/* A task was raised (raise.c). The kernel host raises none: there each comparison would add to what
 * the verifier follows. */
#define PD_CEILINGS(d) PD_UNLIKELY(PD(d)->ceilings)
#else
#include "arena.h"
/* Where a counter starts, and what is added where the verifier should not know a value: it would
 * follow the loop turn by turn, or continue separately for each value. */
#define PD_ZERO(d) (PD(d)->zero)
#define PD_CEILINGS(d) 0
#endif

#define pd_job_p struct pd_job PD_ARENA *
#define pd_task_p struct pd_task PD_ARENA *
#define pd_group_p struct pd_group PD_ARENA *
#define pd_node_p struct pd_node PD_ARENA *
#define pd_timer_p struct pd_timer PD_ARENA *
#define pd_heap_p struct pd_heap PD_ARENA *
#define pd_slot_p struct pd_slot PD_ARENA *
#define pd_reservation_p struct pd_reservation PD_ARENA *
#define pd_window_p struct pd_window PD_ARENA *
#define pd_cpu_p struct pd_cpu PD_ARENA *
#define pd_event_p struct pd_event PD_ARENA *
#define pd_record_p struct pd_record PD_ARENA *
#define pd_p struct pd PD_ARENA *

PD_INLINE pd_u64 pd_min(pd_u64 a, pd_u64 b)
{
	return a < b ? a : b;
}

/* The later time; PD_INFINITE stays. */
PD_INLINE pd_u64 pd_later(pd_u64 time, pd_u64 by)
{
	return time + by < time ? PD_INFINITE : time + by;
}

/* A job's id tells one use of its slot from another. It is positive as a pd_i64. */
PD_INLINE pd_u64 pd_id(pd_u32 use, pd_u32 i)
{
	return (pd_u64)use << 32 | i;
}

/* What the next pd_job_add takes. There is one job more than the limit, to be drafted in vain. */
PD_INLINE struct pd_job_attr PD_ARENA *pd_draft(pd_ref d)
{
	return &PD_JOB(d, PD(d)->free_job)->attr;
}

/* The index of a job that is still there, else PD_NONE. */
PD_INLINE pd_u32 pd_job_index(pd_ref d, pd_u64 id)
{
	pd_u32 i = (pd_u32)id;

	if (i > PD(d)->limits.jobs)
		return PD_NONE;
	return PD_JOB(d, i)->id == id ? i : PD_NONE;
}

PD_INLINE void pd_record(pd_ref d, pd_u32 kind, pd_u32 small, pd_u64 time, pd_u64 a, pd_u64 b)
{
	pd_record_p r = PD_RECORD(d, PD(d)->record_count++ & PD(d)->record_mask);

	r->time = time;
	r->a = a;
	r->b = b;
	r->small = small;
	r->kind = kind;
}
