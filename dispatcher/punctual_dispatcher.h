/* SPDX-License-Identifier: MIT */
/*
 * The dispatcher: Punctual's scheduling mechanism (RED-Linux GSF, section IV-D.1).
 *
 * Jobs with start, finish, budget and priority go in; the job to run comes out, and an event for
 * every job that ends. It knows no policy but the standard periodic reservation, no host and no
 * clock: every call brings the time, ns, which must not go back.
 *
 * At each instant a host calls, in this order:
 *   pd_charge*            what was executed since the last instant
 *   pd_task_done, pd_task_ready, pd_task_blocked, pd_task_gone, pd_job_*     what happened
 *   pd_advance            budgets, finishes, starts and releases that are due
 *   (allocators outside read the events and add jobs)
 *   pd_select, pd_runner_up, pd_timer                                       what to do now
 *
 * Functions that can fail return a negative error number; nothing has changed then:
 *   -ENOSPC   a limit set at creation is reached
 *   -ENOENT   no such job, task, group, CPU or reservation, or it is gone
 *   -EINVAL   a value outside its range
 *   -ELOOP    a cycle of groups or of lending, another parent than before, or too deep
 *   -EBUSY    it is in use
 * Nothing is allocated after pd_init. A dispatcher is used by one thread at a time.
 */
#pragma once

#include "errors.h"
#include "late_wait.h"
#include "platform.h"

#define PD_INFINITE (~0ULL)
#define PD_NONE (~0U)
#define PD_MAX_CPUS 64U
#define PD_MAX_DEPTH 64U

/* A group's ordering is up to four of these, the first in the lowest byte. */
enum pd_attribute {
	PD_BY_NOTHING = 0,
	PD_BY_START = 1,    /* earlier first */
	PD_BY_FINISH = 2,   /* earlier first */
	PD_BY_BUDGET = 3,   /* less remaining first */
	PD_BY_PRIORITY = 4, /* larger first */
};
#define PD_ORDER(a, b, c, e) \
	((pd_u32)(a) | (pd_u32)(b) << 8 | (pd_u32)(c) << 16 | (pd_u32)(e) << 24)
#define PD_ORDER_DEFAULT PD_ORDER(PD_BY_PRIORITY, 0, 0, 0)

enum pd_job_state {
	PD_FREE = 0,
	PD_WAITING = 1, /* its start is ahead */
	PD_READY = 2,	/* in its group's queue */
	PD_BLOCKED = 3, /* its task sleeps */
	PD_THROTTLED = 4, /* a budget group above it is exhausted */
	PD_IDLE = 5,	/* a server job whose group has no ready member */
	PD_OPEN = 6,	/* a segment that is available */
};

enum pd_overrun {
	PD_CARRY = 0,
	PD_SKIP = 1,
	PD_BACKGROUND = 2,
	PD_SIGNAL = 3,
};

/* Events, each with the time. */
enum pd_event_kind {
	/* The ends of a job: `job`, `task` (PD_NONE for a server job or segment), `cookie`, `used`,
	 * `remaining`. */
	PD_EV_COMPLETED = 1,
	PD_EV_EXHAUSTED = 2,
	PD_EV_EXPIRED = 3,
	PD_EV_CANCELLED = 4,
	PD_EV_TASK_GONE = 5,
	/* A task woke or fell asleep, or, where it lends, what its jobs execute: `task`. */
	PD_EV_TASK_READY = 6,
	PD_EV_TASK_BLOCKED = 7,
	/* A group got its first eligible member, or lost its last: `task` is the group. */
	PD_EV_GROUP_ACTIVE = 8,
	PD_EV_GROUP_IDLE = 9,
	/* A segment was used up: `job`, `cookie`, `used`, `remaining`; `task` is the node. */
	PD_EV_SEGMENT_EXHAUSTED = 10,
	/* A timer that was asked for: `job` is its id, `cookie` its cookie, `used` its time. */
	PD_EV_TIMER = 11,
	/* `used` events had no room in the ring; `time` is the last one's. */
	PD_EV_LOST = 12,
	/* A reservation released a job: `job`, `task`, `cookie` = release number, `used` = the
	 * release time, `remaining` = its budget. */
	PD_EV_RELEASED = 13,
	/* Releases `cookie` .. `cookie + used - 1` of `task` were never made: pd_advance was called
	 * too late. */
	PD_EV_RELEASES_LOST = 14,
	/* A task with PD_SIGNAL overran. */
	PD_EV_OVERRUN = 15,
	/* A task with PD_BACKGROUND overran: in the ordinary class until its next release. */
	PD_EV_BACKGROUND = 16,
	/* A task's delayed waits reached PD_MAX_DELAYED. */
	PD_EV_DELAYED_SATURATED = 17,
	/* A segment reached its finish: as PD_EV_SEGMENT_EXHAUSTED. */
	PD_EV_SEGMENT_EXPIRED = 18,
	/* The job of a window ended as with PD_EV_EXHAUSTED or PD_EV_EXPIRED, and its release
	 * continues in the next window. */
	PD_EV_WINDOW_EXHAUSTED = 19,
	PD_EV_WINDOW_EXPIRED = 20,
};

struct pd_event {
	pd_u64 time;
	pd_u32 kind;
	pd_u32 task;
	pd_u64 job;
	pd_u64 cookie;
	pd_u64 used;
	pd_u64 remaining;
};

/* Limits, fixed at creation. */
struct pd_limits {
	pd_u32 jobs;	     /* 1 .. 1 << 20 */
	pd_u32 tasks;	     /* 1 .. 1 << 20 */
	pd_u32 reservations; /* 0 .. 1 << 20 */
	pd_u32 groups;	     /* 1 .. 1024; group 0 among them */
	pd_u32 budget_groups; /* 0 .. 1024; nodes are numbered from 1 */
	pd_u32 timers;	     /* 0 .. 1 << 20 */
	pd_u32 depth;	     /* of both trees, 1 .. PD_MAX_DEPTH */
	pd_u32 events;	     /* a power of two */
	pd_u32 records;	     /* a power of two: the trace ring, 32 bytes each */
	pd_u32 cpus;	     /* 1 .. PD_MAX_CPUS */
	pd_u32 windows;	     /* of all reservations together, 0 .. 1 << 20 */
	pd_u32 unused;
};

/* A job's attributes, as an allocator gives them (design, "Job"; docs/model.md has the three
 * kinds of job); the first four in the order of enum pd_attribute. */
struct pd_job_attr {
	pd_u64 start;
	pd_u64 finish;
	pd_u64 budget; /* execution time, ns */
	pd_i64 priority;
	pd_u64 cookie;
	pd_u32 task; /* PD_NONE for server jobs and segments */
	pd_u32 group;
	pd_u32 server;
	pd_u32 budget_group;
	pd_u32 budget_server;
	pd_u32 reserved; /* the dispatcher's own */
};

/* A periodic reservation (design, "Reservation"). */
struct pd_reservation_attr {
	pd_u64 start;	 /* first release */
	pd_u64 period;	 /* at least 1 */
	pd_u64 budget;	 /* 1 .. deadline */
	pd_u64 deadline; /* relative, budget .. period */
	pd_i64 priority; /* of its jobs */
	pd_u64 cookie;	 /* of its jobs, if `own_cookie`; else theirs is the release's number */
	pd_u32 task;	 /* has no other reservation; PD_NONE for server jobs and segments */
	pd_u32 group;
	pd_u32 overrun;	    /* enum pd_overrun */
	pd_u32 wakeup_rule; /* 1: a task that wakes in mid-job, or a served group that becomes
			     * active, is cut to its bandwidth (revised CBS); a group served in
			     * a group other than 0, to what is left of its budget if it had
			     * executed since its release */
	pd_u32 server;	    /* these three: of its jobs */
	pd_u32 budget_group;
	pd_u32 budget_server;
	pd_u32 own_cookie;
};

/* pd_task_done: what the caller's wait_period does. */
enum pd_wait {
	PD_WAIT_RELEASE = 0, /* returns at the next release */
	PD_WAIT_IGNORED = 1, /* it was a delayed one: the task continues at once */
};

#ifndef __bpf__
/* Bytes that a dispatcher with these limits needs; 0 if a limit is out of range. */
PD_API pd_u64 pd_size(const struct pd_limits *limits);
/* Makes one in `memory` (zeroed, 64-byte aligned, pd_size bytes). */
PD_API pd_ref pd_init(void *memory, const struct pd_limits *limits);
/* What the next pd_job_add takes: write all of it, right before that call. */
PD_API struct pd_job_attr *pd_job_draft(pd_ref d);
/* What the next pd_reservation_add takes. */
PD_API struct pd_reservation_attr *pd_reservation_draft(pd_ref d);
/* The oldest event not yet taken, or null. */
PD_API const struct pd_event *pd_event_peek(pd_ref d);
#else
/* Makes dispatcher `d` in its zeroed arena, with the limits that stand in it. */
PD_API int pd_create(pd_ref d);
#endif

/* Timers nearer than this fire now: a job with less remaining is exhausted (RED-Linux, IV-D.1). */
PD_API int pd_set_granularity(pd_ref d, pd_u64 ns);

/* Groups. Group 0 exists from the start. The group's members are sorted by the new ordering. */
PD_API int pd_group_set_order(pd_ref d, pd_u32 group, pd_u32 order);

/* Tasks. A new task is ready. */
PD_API pd_i64 pd_task_add(pd_ref d, pd_u64 now);
PD_API int pd_task_ready(pd_ref d, pd_u32 task, pd_u64 now);
PD_API int pd_task_blocked(pd_ref d, pd_u32 task, pd_u64 now);
/* Has the jobs of `task`, those to come too, execute `to` in its place and be charged for it, as
 * where `task` waits for a lock that `to` holds; PD_NONE: no longer. They are ready while what they
 * execute is, whether `task` sleeps or not. -ELOOP: `to` is `task`, or its jobs execute it. */
PD_API int pd_task_lend(pd_ref d, pd_u32 task, pd_u32 to, pd_u64 now);
/* The latest of the tasks that lend to this one, PD_NONE if none does. */
PD_API pd_u32 pd_task_lender(pd_ref d, pd_u32 task);
#ifndef __bpf__
/* Raises the task, as while it holds a lock with a priority ceiling: in each group that is ordered
 * by `attribute` first, its jobs, those to come too, are placed as if they had at least `ceiling`
 * (PD_BY_PRIORITY: a pd_i64; PD_BY_FINISH: a time), and before those of equal value that are not
 * raised. Another call replaces the ceiling; PD_BY_NOTHING ends it. */
PD_API int pd_task_raise(pd_ref d, pd_u32 task, pd_u32 attribute, pd_u64 ceiling, pd_u64 now);
#endif
/* Ends all its jobs, its reservation and what it lends; the number may be given out again. -EBUSY:
 * another task lends to it. */
PD_API int pd_task_gone(pd_ref d, pd_u32 task, pd_u64 now);
/* wait_period, or a job's end for a task without reservation: enum pd_wait. */
PD_API int pd_task_done(pd_ref d, pd_u32 task, pd_u64 now);

/* Jobs. An id is never given out twice in 2^31 uses of its slot; 0 is no job. */
PD_API pd_i64 pd_job_add(pd_ref d, pd_u64 now);
PD_API int pd_job_cancel(pd_ref d, pd_u64 job, pd_u64 now);
PD_API int pd_job_complete(pd_ref d, pd_u64 job, pd_u64 now);
PD_API pd_u64 pd_job_remaining(pd_ref d, pd_u64 job);
PD_API pd_u64 pd_job_used(pd_ref d, pd_u64 job);
/* enum pd_job_state; PD_FREE when it has ended. */
PD_API int pd_job_standing(pd_ref d, pd_u64 job);
/* What it may execute before a budget on its path or in a chain above it ends (docs/model.md); 0
 * when it has ended. */
PD_API pd_u64 pd_job_allowance(pd_ref d, pd_u64 job);
/* The task that it executes: its own, or the one to which that lends in the end; PD_NONE when it
 * has ended. */
PD_API pd_u32 pd_job_task(pd_ref d, pd_u64 job);
/* The task whose job it is, and whose budget it has. */
PD_API pd_u32 pd_job_owner(pd_ref d, pd_u64 job);

/* The job that a charge of the task would go to, 0 if there is none. */
PD_API pd_u64 pd_task_job(pd_ref d, pd_u32 task);
/* Charges `ran` ns that a task executed: to the best job of it and of those that lend to it, and
 * all on that job's path, or, if they have none, to its reservation as enforcement error. Returns 1
 * if the job's budget is used up. */
PD_API int pd_charge_task(pd_ref d, pd_u32 task, pd_u64 ran, pd_u64 now);
PD_API int pd_charge(pd_ref d, pd_u64 job, pd_u64 ran, pd_u64 now);

/* Everything due at `now`, in the order of design.md, 3. */
PD_API int pd_advance(pd_ref d, pd_u64 now);

/* The job for this CPU, 0 if none; the path to it is kept. */
PD_API pd_u64 pd_select(pd_ref d, pd_u32 cpu, pd_u64 now);
/* The job that would be selected if the `rank` better ones slept; rank 0 is the selected one. */
PD_API pd_u64 pd_runner_up(pd_ref d, pd_u32 cpu, pd_u32 rank);
PD_API pd_u64 pd_path(pd_ref d, pd_u32 cpu, pd_u32 depth);
/* The next time at which something happens by itself: PD_INFINITE if nothing will. The first
 * `ranks` jobs of this CPU may run until then. */
PD_API pd_u64 pd_timer(pd_ref d, pd_u32 cpu, pd_u32 ranks, pd_u64 now);

/* Timers that an allocator asks for: PD_EV_TIMER from the pd_advance at `at` or after. The id
 * is never 0. */
PD_API pd_i64 pd_timer_ask(pd_ref d, pd_u64 at, pd_u64 cookie, pd_u64 now);
PD_API int pd_timer_cancel(pd_ref d, pd_u64 timer, pd_u64 now);

/* Events. */
PD_API int pd_event_pop(pd_ref d);

/* The trace ring (record.h): how many were ever written, and one by number (null: overwritten). */
#ifndef __bpf__
struct pd_record;
PD_API pd_u64 pd_record_count(pd_ref d);
PD_API const struct pd_record *pd_record_at(pd_ref d, pd_u64 number);
#endif

/* Reservations: the standard periodic allocator, in here so that no host needs a round trip for
 * it (RED-Linux, IV-C). */
PD_API pd_i64 pd_reservation_add(pd_ref d, pd_u64 now);
/* Takes period, budget, deadline, priority, overrun, wakeup_rule, cookie, group and windows of the
 * draft, from the next release on. */
PD_API int pd_reservation_change(pd_ref d, pd_u32 reservation, pd_u64 now);
PD_API int pd_reservation_remove(pd_ref d, pd_u32 reservation, pd_u64 now);
/* Releases lost by the wait that returned last, and reset (PD_SKIP, and releases never made). */
PD_API pd_u32 pd_reservation_take_lost(pd_ref d, pd_u32 reservation);
PD_API pd_u64 pd_reservation_job(pd_ref d, pd_u32 reservation);
PD_API pd_u32 pd_reservation_delayed(pd_ref d, pd_u32 reservation);
/* The unsettled enforcement error, ns: executed beyond (+) or short of (-) the budgets. */
PD_API pd_i64 pd_reservation_error(pd_ref d, pd_u32 reservation);
/* What the next release settles of an enforcement error, with its sign; its budget is `budget` less
 * that. For allocators outside, which carry the errors of the jobs that they add. */
PD_API pd_i64 pd_error_settled(pd_u64 budget, pd_i64 error);

#ifndef __bpf__
/* The functions of late_wait.h, for callers in another language. */
PD_API pd_u32 pd_late_waits_after_release(pd_u32 late, pd_u32 waits);
PD_API pd_u32 pd_late_waits_own(pd_u32 late, pd_u32 ended);
PD_API pd_u32 pd_late_waits_is(pd_u32 late, pd_u32 ended);
#endif

/* Windows (the time-driven table): the next pd_reservation_add or _change takes all that were
 * drafted since the last, for a task. `start` counts from the release; `begins`: it is the first
 * of the next row. Rows are for one release each, in turn: row n of m for the releases n, n + m,
 * and so on. */
PD_API int pd_window_add(pd_ref d, pd_u64 start, pd_u64 length, pd_u32 begins, pd_u64 now);
/* Takes back what was drafted, as after a refusal. */
PD_API int pd_window_drop(pd_ref d, pd_u64 now);
