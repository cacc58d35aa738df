/* SPDX-License-Identifier: MIT */
/*
 * The trace ring: every input and every decision, 32 bytes each, newest over oldest. The same
 * inputs in the same order make the same decisions (design, invariant 6), so a recorded run can
 * be replayed.
 */
#pragma once

#include "platform.h"

/* Inputs: `time` is the call's `now`; `a`, `b` and `small` are its arguments. */
enum pd_record_kind {
	PD_REC_GRANULARITY = 1,	    /* a = ns */
	PD_REC_ORDER = 2,	    /* small = group, a = order */
	PD_REC_TASK_ADD = 3,	    /* small = the number it got */
	PD_REC_TASK_READY = 4,	    /* small = task */
	PD_REC_TASK_BLOCKED = 5,    /* small = task */
	PD_REC_TASK_GONE = 6,	    /* small = task */
	PD_REC_TASK_DONE = 7,	    /* small = task */
	PD_REC_CHARGE_TASK = 8,	    /* small = task, a = ns */
	PD_REC_CHARGE = 9,	    /* a = job, b = ns */
	PD_REC_JOB_CANCEL = 10,	    /* a = job */
	PD_REC_JOB_COMPLETE = 11,   /* a = job */
	PD_REC_ADVANCE = 12,	    /* only where something was due */
	PD_REC_TAKE_LOST = 13,	    /* small = reservation, a = the answer */
	PD_REC_RESERVATION_REMOVE = 14, /* small = reservation */
	PD_REC_TIMER_ASK = 15,	    /* a = at, b = cookie */
	PD_REC_TIMER_CANCEL = 16,   /* a = timer */
	PD_REC_WINDOW_ADD = 17,	    /* small = begins, a = start, b = length */
	PD_REC_WINDOW_DROP = 18,
	PD_REC_TASK_LEND = 19, /* small = task, a = the one that it lends to, PD_NONE for none */
	/* Additions take several records: the call, then what it was given (a job's third only if
	 * it is not all zero). */
	PD_REC_JOB_ADD = 20,	       /* small = task, a = start, b = finish */
	PD_REC_JOB_ADD_2 = 21,	       /* time = budget, a = priority, b = cookie, small = group */
	PD_REC_JOB_ADD_3 = 22,	       /* time = server, a = budget_group, b = budget_server */
	PD_REC_RESERVATION_ADD = 23,   /* small = task, a = start, b = period */
	PD_REC_RESERVATION_ADD_2 = 24, /* time = budget, a = deadline, b = priority, small = group */
	/* time = cookie, a = wakeup_rule, b = overrun, small = own_cookie */
	PD_REC_RESERVATION_ADD_3 = 25,
	/* small = windows that it takes */
	PD_REC_RESERVATION_ADD_4 = 26, /* time = server, a = budget_group, b = budget_server */
	/* The same four follow, for a change (ADD's start, task and servers mean nothing). */
	PD_REC_RESERVATION_CHANGE = 27, /* small = reservation */
	PD_REC_TASK_RAISE = 28,	/* small = task, a = ceiling, b = attribute; 0: none */
	/* Decisions. */
	PD_REC_SELECTED = 64,  /* small = CPU, a = job; only when it changes */
	PD_REC_EVENT = 128,    /* + enum pd_event_kind; small = task, a = job, b = used */
};

struct pd_record {
	pd_u64 time;
	pd_u64 a;
	pd_u64 b;
	pd_u32 small;
	pd_u32 kind;
};
