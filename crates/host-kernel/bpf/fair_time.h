/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The virtual time of best-effort tasks: execution divided by weight, and how much of a lead or a
 * lag they keep over sleep. It is in p->scx.dsq_vtime, by which their queues are ordered.
 */
#pragma once

/* ns. The kernel's tick ends a turn. */
#define FAIR_TURN 3000000ULL
/* Virtual ns that a sleeping thread keeps of what it did not use; a CPU's own kernel threads keep
 * more. So a thread that slept long preempts at once, and threads that wake each other all the
 * time leave each other whole turns. */
#define FAIR_CREDIT 4000000ULL
#define FAIR_CREDIT_KERNEL 20000000ULL
/* Turns by which a thread is ahead of its queue's clock at most. */
#define FAIR_AHEAD 4
/* Virtual ns between the first places of new threads, and the largest number of such gaps. In the
 * steady state, busy threads are spread over one time slice of virtual time. If new threads all
 * began at the clock, a thread that is ahead of it by a microsecond would wait for the first time
 * slice of each of them. */
#define FAIR_NEW_GAP (FAIR_TURN / 256)
#define FAIR_NEW_MOST 256U

/* Virtual per real time, times 2^20, by nice value from -20: a quarter more per step (sched(7)).
 * SCHED_IDLE has a weight of 3 where nice 0 has 1,024. */
const __u32 fair_rates[64] = {
	12089,	 15112,	   18889,    23612,    29515,	 36893,	   46117,    57646,
	72058,	 90072,	   112590,   140737,   175922,	 219902,   274878,   343597,
	429497,	 536871,   671089,   838861,   1048576,	 1310720,  1638400,  2048000,
	2560000, 3200000,  4000000,  5000000,  6250000,	 7812500,  9765625,  12207031,
	15258789, 19073486, 23841858, 29802322, 37252903, 46566129, 58207661, 72759576,
};
#define FAIR_RATE_IDLE 357913941U

static inline bool fair_before(__u64 a, __u64 b)
{
	return (__s64)(a - b) < 0;
}

static inline __u32 fair_rate(struct task_struct *p) __rq_locked
{
	if (p->policy == SCHED_IDLE)
		return FAIR_RATE_IDLE;
	return fair_rates[(__u32)(p->static_prio - MAX_RT_PRIO) & 63];
}

static inline __u64 fair_virtual(__u64 executed, __u32 rate)
{
	return (executed & 0xffffffff) * rate >> 20;
}

/* Where p stands against its queue's clock: what it comes with, within what it may keep. */
static inline __u64 fair_place(struct task_struct *p, __u64 clock, __u32 rate,
			       bool own) __rq_locked
{
	__u64 time = p->scx.dsq_vtime;
	__u64 credit = own && p->flags & PF_KTHREAD ? FAIR_CREDIT_KERNEL : FAIR_CREDIT;

	if (!time)
		return clock;
	if (fair_before(time, clock - credit))
		return clock - credit;
	clock += FAIR_AHEAD * fair_virtual(FAIR_TURN, rate);
	return fair_before(clock, time) ? clock : time;
}
