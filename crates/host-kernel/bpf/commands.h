/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Commands of user space to the scheduler; src/abi.rs has the same. Each struct is the context of
 * the test-run program of its name, whose return value is 0, or a negative error where it says so.
 *
 * The dispatcher of a domain is called on the domain's CPU only, to which the caller is pinned.
 *
 * Error numbers beside the dispatcher's own (punctual_dispatcher.h); nothing was done then:
 *   -EXDEV        called on a CPU that is not the domain's
 *   -ESRCH        no thread with that number, or an exiting or a kernel thread
 *   -EOPNOTSUPP   its class is above sched_ext: SCHED_FIFO, SCHED_RR or SCHED_DEADLINE
 *   -ENOMEM       no memory for its storage
 */
#pragma once

/* punctual_create: makes a domain, before the scheduler is attached; returns 0 or an error. */
struct punctual_create {
	pd_u32 domain;
	pd_u32 cpu;
	pd_u32 asks_policies; /* 1: write to the doorbell when a decision left new events */
	pd_u32 unused;
	struct pd_limits limits;
	pd_u64 granularity; /* ns */
};

/* Which member of the union in struct punctual_command is the argument; in brackets, if any. A
 * command whose result is not described returns 0. */
enum punctual_command_kind {
	PUNCTUAL_JOB_ADD = 2,		 /* [job]: its id */
	PUNCTUAL_JOB_CANCEL = 3,	 /* [job_id] */
	PUNCTUAL_RESERVATION_ADD = 6,	 /* [reservation_add]: its number */
	PUNCTUAL_RESERVATION_CHANGE = 7, /* [reservation_change] */
	PUNCTUAL_RESERVATION_REMOVE = 8, /* [reservation] */
	PUNCTUAL_WINDOW_ADD = 10,	 /* [window] */
	PUNCTUAL_WINDOW_DROP = 11,	 /* those that were added and that no reservation took */
	/* Queries. */
	PUNCTUAL_JOB_STATE = 16,	  /* [job_state], which has more: enum pd_job_state */
	PUNCTUAL_RESERVATION_JOB = 19,	  /* [reservation]: its job's id, 0 for none */
	PUNCTUAL_RESERVATION_DELAYED = 20, /* [reservation]: waits */
	PUNCTUAL_RESERVATION_ERROR = 21,  /* [reservation_error], which has the answer */
	/* Those of punctual_task_command. Tasks and their threads. */
	PUNCTUAL_TASK_ADD = 32,	    /* its number; blocked until a thread of it is runnable */
	PUNCTUAL_TASK_RETIRE = 33,  /* [task]: its threads are best-effort ones from here on */
	PUNCTUAL_TASK_JOIN = 34,    /* [join] */
	PUNCTUAL_GROUP_ORDER = 36,  /* [group] */
	PUNCTUAL_TIMER_ADD = 37,    /* [timer]: its id */
	PUNCTUAL_TIMER_CANCEL = 38, /* [timer_id] */
	PUNCTUAL_RELEASE_END = 39,  /* [release_end]: late waits now, 0 if this added none */
	PUNCTUAL_TASK_LEND = 40,    /* [lend] */
	PUNCTUAL_TASK_SUSPEND = 41, /* [suspend]: its releases that its thread has not seen */
	/* What wakes the domain. */
	PUNCTUAL_TIMER_CREATE = 48,  /* once for each domain, after punctual_create, on any CPU */
	PUNCTUAL_TIMER_PROCESS = 49, /* by the timer process: when it has to run again, ns */
};

/* A release that an allocator made ended without the task's wait. */
enum punctual_release_flag {
	PUNCTUAL_LATE = 1,	    /* its wait is ignored when it comes */
	PUNCTUAL_IN_BACKGROUND = 2, /* the task continues in the background until its next job */
};

/* Of a thread; its children inherit them. */
enum punctual_member_flag {
	PUNCTUAL_COOPERATES = 1, /* its sched_yield ends its job */
	PUNCTUAL_ALLOCATOR = 2,	 /* before all jobs, with a budget of its own; `task` is not read */
	PUNCTUAL_ALONE = 4,	 /* its children are not members */
};

/* punctual_command, punctual_task_command: two programs for all, because the verifier goes through
 * the dispatcher once for each program that calls it. */
struct punctual_command {
	pd_u32 domain;
	pd_u32 unused;
	pd_i64 result; /* out: see above; or a negative error */
	pd_u64 now;    /* out: when it was executed, CLOCK_MONOTONIC */
	pd_u32 kind;   /* enum punctual_command_kind */
	union {
		struct pd_job_attr job;
		pd_u64 job_id;
		struct {
			pd_u64 used;	  /* out: ns */
			pd_u64 remaining; /* out: ns */
			pd_u64 job;
		} job_state;
		struct pd_reservation_attr reservation_add;
		struct {
			struct pd_reservation_attr to;
			pd_u32 reservation;
		} reservation_change;
		pd_u32 reservation;
		pd_u32 task;
		struct {
			pd_i64 error; /* out: ns */
			pd_u32 reservation;
		} reservation_error;
		struct {
			pd_u64 start; /* from the release, ns */
			pd_u64 length;
			pd_u32 begins; /* 1: the first one of a row */
		} window;
		struct {
			pd_u32 task;
			pd_u32 thread;
			pd_u32 flags; /* enum punctual_member_flag */
		} join;
		struct {
			pd_u32 group;
			pd_u32 order;
		} group;
		struct {
			pd_u64 at;
			pd_u64 cookie;
		} timer;
		pd_u64 timer_id;
		struct {
			pd_u32 task;
			pd_u32 flags; /* enum punctual_release_flag */
		} release_end;
		struct {
			pd_u32 task;
			pd_u32 to; /* PD_NONE: to none any more */
		} lend;
		struct {
			pd_u32 task;
			pd_u32 on; /* 0: it is ready again while a thread of it is runnable */
		} suspend;
	};
};

/* punctual_poll: gives back the room of events that were read, and says where the rest are. */
struct punctual_poll {
	pd_u32 domain;
	pd_u32 pop;	/* so many events */
	pd_u64 records; /* out, all of these: addresses in the arena's mapping */
	pd_u64 events;
	pd_u64 record_count;
	pd_u64 event_tail;
	pd_u64 throttles;    /* times that jobs were held back for best-effort tasks */
	pd_u64 arm_failures; /* times that the timer could not be armed */
	pd_u64 head;	     /* the address of the number of events ever written */
};

/* A message of ring buffer `doorbell`: a domain has new events. */
struct punctual_doorbell {
	pd_u32 domain;
	pd_u32 unused;
};

/* How the scheduler ended: the one value of array map `exit_info`. */
#define PUNCTUAL_EXIT_REASON 128
#define PUNCTUAL_EXIT_MESSAGE 1024
struct punctual_exit {
	pd_i64 code; /* scx_bpf_exit's, or the kernel's */
	pd_u32 kind; /* enum scx_exit_kind; 0 while it lives */
	pd_u32 unused;
	char reason[PUNCTUAL_EXIT_REASON];
	char message[PUNCTUAL_EXIT_MESSAGE];
};

/* The codes with which the scheduler ends itself; the low half is a CPU. */
#define PUNCTUAL_EXIT_CPU_GONE 0x50000000ULL	/* a domain's CPU went offline */
#define PUNCTUAL_EXIT_TIMER_GONE 0x51000000ULL /* the timer process died or was stopped */
#define PUNCTUAL_EXIT_TIMER_STORM 0x52000000ULL /* or took over half of the CPU */
#define PUNCTUAL_EXIT_UNARMED 0x53000000ULL	/* the kernel refuses to arm a timer */
#define PUNCTUAL_EXIT_CORE_SCHEDULING 0x54000000ULL /* a sibling selects for the domain's CPU */

/* Host records in the trace ring, beside the dispatcher's. A replay skips kinds 96 to 127. */
enum punctual_record_kind {
	PUNCTUAL_REC_RUNNING = 96, /* small = task, time = when it began to run, a = thread */
	PUNCTUAL_REC_STOPPED = 97, /* small = task, a = executed, kernel's count, b = thread */
};
