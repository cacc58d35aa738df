/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * What user space asks of the scheduler and is answered; src/abi.rs has the same. Each struct is the context of the
 * test-run program of its name, without padding. A program's own return value is 0, or a negative error where it says so.
 *
 * The dispatcher of a domain is called on the domain's CPU only, to which the caller is pinned.
 *
 * Error numbers beside the dispatcher's own (punctual_dispatcher.h); nothing was done then:
 *   -EXDEV        called on a CPU that is not the domain's
 *   -ESRCH        no thread with that number, or an exiting or a kernel thread
 *   -EOPNOTSUPP   its class (SCHED_FIFO, SCHED_RR, SCHED_DEADLINE) is above every sched_ext scheduler
 *   -ENOMEM       no memory for its storage
 */
#ifndef PUNCTUAL_ORDERS_H
#define PUNCTUAL_ORDERS_H

/* Below any enforcement error, ns: an answer below 0 is a refusal. */
#define PUNCTUAL_LEAST_ERROR (-(1LL << 62))

/* punctual_create: makes a domain. Before the scheduler is attached; the answer is the program's return value. */
struct punctual_create {
	pd_u32 domain;
	pd_u32 cpu;
	pd_u32 hears; /* 1: the doorbell rings when a decision left new events */
	pd_u32 unused;
	struct pd_limits limits;
	pd_u64 granularity; /* ns */
};

/* What of an order is asked. In brackets what is read beside `domain`. */
enum punctual_what {
	PUNCTUAL_JOB_ADD = 2,	/* [job] */
	PUNCTUAL_JOB_CANCEL = 3, /* [id] */
	PUNCTUAL_RESERVATION_ADD = 6, /* [reservation] */
	PUNCTUAL_RESERVATION_CHANGE = 7, /* [number, reservation] */
	PUNCTUAL_RESERVATION_REMOVE = 8, /* [number] */
	PUNCTUAL_WINDOW_ADD = 10, /* [time = start, cookie = length, number = it begins a row] */
	PUNCTUAL_WINDOW_DROP = 11, /* those that were added and that no reservation took */
	/* queries */
	PUNCTUAL_REMAINING = 16, /* [id] */
	PUNCTUAL_USED = 17,	 /* [id] */
	PUNCTUAL_STANDING = 18,	 /* [id] */
	PUNCTUAL_JOB_OF = 19,	 /* [number = reservation] */
	PUNCTUAL_DELAYED = 20,	 /* [number = reservation] */
	PUNCTUAL_ENFORCEMENT_ERROR = 21, /* [number = reservation] less PUNCTUAL_LEAST_ERROR */
	/* members */
	PUNCTUAL_TASK_ADD = 32,	 /* its number; asleep until a thread of it is runnable */
	PUNCTUAL_TASK_GONE = 33, /* [number] its threads go to the others */
	PUNCTUAL_JOIN = 34,	 /* [number = task, value = a thread, id = enum punctual_member_flag] */
	PUNCTUAL_LEAVE = 35,	 /* [value = a thread] */
	PUNCTUAL_SET_ORDER = 36, /* [number = group, value = its order] */
	PUNCTUAL_TIMER_ASK = 37, /* [time, cookie] */
	PUNCTUAL_TIMER_CANCEL = 38, /* [id] */
	PUNCTUAL_OVER = 39, /* [number = task, id = enum punctual_over]; so many waits are late now, 0 if it left none */
	/* timers */
	PUNCTUAL_TIMER_CREATE = 48, /* once for each domain, after punctual_create, on any CPU */
	PUNCTUAL_TIMER_TURN = 49, /* by the timer process (PREEMPT_RT); out: time = when it is to come again, ns */
};

/* What a release leaves that an allocator made, and that was over without the task's wait. */
enum punctual_over {
	PUNCTUAL_LATE = 1,	    /* its wait, which is ignored when it comes */
	PUNCTUAL_IN_BACKGROUND = 2, /* the task goes on there until its next job */
};

/* Of a thread; its children inherit them. */
enum punctual_member_flag {
	PUNCTUAL_COOPERATES = 1, /* its sched_yield ends its job */
	PUNCTUAL_ALLOCATOR = 2,	 /* before all jobs, with a budget of its own; `number` is not read */
};

/* punctual_order: one program for all, because the verifier goes through the dispatcher once for each program that calls it. */
struct punctual_order {
	pd_u32 domain;
	pd_u32 what;
	pd_i64 result; /* out: the dispatcher's answer, or a refusal from above */
	pd_u64 now;    /* out: the instant at which it was done */
	pd_u64 id;
	pd_u64 time;
	pd_u64 cookie;
	pd_u32 number;
	pd_u32 value;
	union {
		struct pd_job_attr job;
		struct pd_reservation_attr reservation;
	};
};

/* punctual_look: takes events away, and says where the rest and the records are. */
struct punctual_look {
	pd_u32 domain;
	pd_u32 pop;	/* so many events */
	pd_u64 records; /* out, all of these: addresses in the arena's mapping */
	pd_u64 events;
	pd_u64 record_count;
	pd_u64 event_head;
	pd_u64 event_tail;
	pd_u64 event_lost;
	pd_u64 throttled; /* times that the others' share was taken from jobs */
	pd_u64 arm_failures; /* times that the timer could not be armed */
	pd_u64 next;	  /* when something happens by itself */
	pd_u64 head;	  /* where event_head stands, which grows at each event */
};

/* What rings the doorbell (ring buffer `doorbell`): a domain has new events. */
struct punctual_bell {
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
#define PUNCTUAL_EXIT_ALARM_GONE 0x51000000ULL	/* the process that serves for the timer died, or was stopped */
#define PUNCTUAL_EXIT_ALARM_STORM 0x52000000ULL /* or eats the CPU */
#define PUNCTUAL_EXIT_UNARMED 0x53000000ULL	/* the kernel refuses to arm a timer */
#define PUNCTUAL_EXIT_CORE_SCHEDULING 0x54000000ULL /* a sibling selects for the domain's CPU */

/* Host records in the trace ring, beside the dispatcher's. No inputs: a replay passes over kinds 96 to 127. */
enum punctual_record_kind {
	PUNCTUAL_REC_RUNNING = 96, /* small = task, time = when it began to run, a = thread */
	PUNCTUAL_REC_STOPPED = 97, /* small = task, a = executed by the kernel's count, b = thread */
};

#endif
