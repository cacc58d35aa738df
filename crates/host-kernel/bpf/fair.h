/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Best-effort tasks: threads that are no members of a task share what jobs leave, on all CPUs, in
 * proportion to weight (nice).
 *
 * Each has a virtual time: its execution divided by its weight. The least runs next, for a turn.
 * One queue is shared by all CPUs; threads that may run on one CPU only wait in that CPU's own.
 * Both are in order of virtual time, and a CPU takes the lesser first of the two:
 *
 *      shared:      v=7 (any CPU)   v=9 (CPUs 0, 1)   ...    CPU c runs  min(7, 4 + shift of c)
 *      own of c:    v=4 (kworker)   v=12 ...
 *
 * Each queue has a clock of its own, since bound threads may get more or less than those that can
 * migrate. A CPU's `shift` converts one to the other, and follows when they drift apart: neither
 * queue's first is ahead of the other's by more than a few turns.
 *
 *            wakes: never more than a credit behind the clock
 *      asleep ────────────────────────────────────> queued <─┐ turn over: its virtual time
 *        ^                                            │      │ turn ended by a job or higher class:
 *        │                                            v      │ its place from the turn's begin, and
 *        └──────────────────────────────────────── running ──┘ what is left of the turn
 *
 * A thread that wakes and is behind the running one by more than a threshold preempts it, and
 * ends its turn.
 *
 * A member is here too while it cannot run with its task (member.h). fair_clock is written by all
 * CPUs without a common lock: a lost update leaves it behind until the next thread begins to run,
 * and threads that wake meanwhile begin that much earlier.
 */
#pragma once

#include "fair_time.h"

#define FAIR_SHARED 1ULL
#define FAIR_OWN(cpu) (1ULL << 32 | (__u32)(cpu))

/* ns: less is not worth a switch of its own. */
#define FAIR_REST 300000ULL
/* Virtual ns behind the running thread at which a waking one preempts it. */
#define FAIR_PREEMPT 1000000ULL
#define FAIR_NEVER (~0ULL >> 1)
/* Entries of a queue that are searched at a time. */
#define FAIR_DEPTH 64
/* ns of waiting after which virtual time does not matter; and jiffies between searches for such a
 * thread. */
#define FAIR_PATIENCE 10000000000ULL
#define FAIR_SEARCH 25

/* A CPU's best-effort thread, and its own queue. Written under its run queue's lock; other CPUs
 * read it without, to choose the thread to preempt: a wrong guess costs one needless kick, or one
 * that is missed until the next wake-up. */
struct fair_cpu {
	__u64 began;	/* the runner's virtual time when its turn began */
	__u64 time;	/* and when `executed` was taken */
	__u64 executed; /* its execution by the kernel's count, ns */
	__u64 since;	/* scx_bpf_now() then */
	__s64 given;	/* of its turn, then, ns */
	__u64 clock;	/* of the own queue */
	__u64 shift;	/* the own queue's time + shift = the shared one's */
	__u64 searched; /* jiffies */
	__u64 left;	/* of the turn of the thread that is put back */
	__u32 rate;   /* the runner's; 0: no best-effort thread runs */
	__u32 back;   /* pid of the thread that is put back: its ops.enqueue is no wake-up */
	__u32 first;  /* rate of the first in the queue that was searched last */
	__u32 claims; /* pid of the thread for which this CPU was found idle */
	__u32 looked; /* a loop's count: in memory, where the verifier does not track it */
	__u8 own;     /* the runner is of the own queue */
	__u8 kicked;  /* a preemption of it was requested */
	__u8 over;    /* its turn is over whatever is left */
	__u8 yielded; /* it called sched_yield */
	__u8 past;    /* a thread was inserted past the queues */
} __attribute__((aligned(128)));

struct fair_cpu fair_cpus[MOST_CPUS];
/* Of the shared queue; not 0, which is the time of a new task. */
__u64 fair_clock = 1ULL << 40;
__u32 fair_several; /* the number of CPUs, if more than one */
/* When fair_init was called: the length of a jiffy is derived from it. */
__u64 fair_begin, fair_begin_jiffies;

#define FAIR_CPU(cpu) (&fair_cpus[(__u32)(cpu) & (MOST_CPUS - 1)])

/* It can run on its CPU only. (The kernel's call of this program may count as one disabled
 * migration of `current`.) */
static inline bool fair_bound(struct task_struct *p) __rq_locked
{
	return fair_several &&
	       (p->nr_cpus_allowed == 1 || p->migration_disabled > 1 ||
		(p->migration_disabled && p->pid != (__s32)bpf_get_current_pid_tgid()));
}

/* The runner's virtual time, by the shared queue's clock; approximate when read on another CPU. */
static inline __u64 fair_now(struct fair_cpu *c) __rq_locked
{
	__s64 ran = (__s64)(scx_bpf_now() - c->since);

	return c->time + (ran > 0 ? fair_virtual(ran, c->rate) : 0) + (c->own ? c->shift : 0);
}

/* From ops.init. 0 or a negative error. */
static inline __s32 fair_init(void) __may_sleep
{
	__u32 cpus = scx_bpf_nr_cpu_ids();
	__s32 failed = scx_bpf_create_dsq(FAIR_SHARED, -1);

	if (cpus > MOST_CPUS)
		return -E2BIG;
	fair_begin = bpf_ktime_get_ns();
	fair_begin_jiffies = bpf_jiffies64();
	/* Counted in memory, where the verifier does not track the value. */
	fair_several = 0;
	pd_while (cpus > 1 && fair_several < cpus && !failed) {
		FAIR_CPU(fair_several)->clock = fair_clock;
		failed = scx_bpf_create_dsq(FAIR_OWN(fair_several), -1);
		fair_several++;
	}
	return failed;
}

/* The virtual time of the first in a queue that can run on the CPU, FAIR_NEVER for none; its rate
 * is noted. */
PD_FN __u64 fair_first(__u64 queue, __s32 cpu) __rq_locked
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	__u64 time = FAIR_NEVER;

	FAIR_CPU(cpu)->looked = 0;
	bpf_iter_scx_dsq_new(&it, queue, 0);
	while (FAIR_CPU(cpu)->looked++ < FAIR_DEPTH && (p = bpf_iter_scx_dsq_next(&it))) {
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr)) {
			time = p->scx.dsq_vtime;
			FAIR_CPU(cpu)->first = fair_rate(p);
			break;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return time;
}

/* Moves the shift so that neither queue's first is further ahead of the other's than by turns of
 * its own. */
static inline void fair_lay(struct fair_cpu *c, __u64 shared, __u32 shared_rate, __u64 own,
			    __u32 own_rate) __rq_locked
{
	__s64 ahead = (__s64)(own + c->shift - shared);
	__s64 most = FAIR_AHEAD * fair_virtual(FAIR_TURN, own_rate);
	__s64 least = FAIR_AHEAD * fair_virtual(FAIR_TURN, shared_rate);

	if (ahead > most)
		c->shift -= ahead - most;
	else if (ahead < -least)
		c->shift += -least - ahead;
}

/* A thread that has waited for seconds gets a turn, whatever its virtual time: the kernel's
 * watchdog would end the scheduler for a weight that is served less often. */
static inline bool fair_unstarve(__u64 queue, __s32 cpu) __rq_locked
{
	__u64 jiffies = bpf_jiffies64();
	__u64 age = bpf_ktime_get_ns() - fair_begin;
	__u64 limit;
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool found = false;

	if (age < FAIR_PATIENCE)
		return false;
	limit = (jiffies - fair_begin_jiffies) * 1000 / (age / (FAIR_PATIENCE / 1000));
	FAIR_CPU(cpu)->looked = 0;
	/* From the end: they are late by virtual time. */
	bpf_iter_scx_dsq_new(&it, queue, SCX_DSQ_ITER_REV);
	while (!found && FAIR_CPU(cpu)->looked++ < FAIR_DEPTH && (p = bpf_iter_scx_dsq_next(&it))) {
		if (jiffies - p->scx.runnable_at > limit && bpf_cpumask_test_cpu(cpu, p->cpus_ptr))
			found = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return found;
}

/* A turn begins at this virtual time of the runner's queue, whose clock follows, also if the runner
 * had the turn before: the place of a thread that stops is limited by the clock, and it would not
 * be charged all that it executed in turns without a switch. */
static inline void fair_begin_turn(struct fair_cpu *c, __u64 time) __rq_locked
{
	__u64 *clock = c->own ? &c->clock : &fair_clock;

	c->began = time;
	if (fair_before(*clock, time))
		*clock = time;
}

/* Whether `first` runs before the runner, which is still runnable. Then the runner's turn is
 * over. */
static inline bool fair_gives_way(struct fair_cpu *c, struct task_struct *prev,
				  __u64 first) __rq_locked
{
	__u64 ran = scx_bpf_now() - c->since;
	__u64 time = fair_now(c);
	__s64 left = c->given - (__s64)ran;

	if (first != FAIR_NEVER &&
	    (c->yielded ||
	     fair_before(left > (__s64)FAIR_REST ? first + FAIR_PREEMPT : first, time))) {
		c->over = 1;
		return true;
	}
	c->kicked = 0;
	c->yielded = 0;
	if (left <= (__s64)FAIR_REST) {
		/* Another turn, without a switch. */
		left = FAIR_TURN;
		c->given = left + (__s64)ran;
		fair_begin_turn(c, time - (c->own ? c->shift : 0));
	}
	set_slice(prev, left);
	return false;
}

/* Queued threads that could run on this CPU; approximate if some may run on a few CPUs only. */
static inline __u32 fair_nr_queued(__s32 cpu) __any_state
{
	__s32 own = fair_several ? scx_bpf_dsq_nr_queued(FAIR_OWN(cpu)) : 0;
	__s32 shared = scx_bpf_dsq_nr_queued(FAIR_SHARED);

	return (own > 0 ? own : 0) + (shared > 0 ? shared : 0);
}

/* From time to time. Whether a thread that has waited for long got this CPU. */
PD_FN bool fair_search(__s32 cpu) __rq_locked
{
	struct fair_cpu *c = FAIR_CPU(cpu);

	if (fair_unstarve(FAIR_SHARED, cpu) ||
	    (fair_several && fair_unstarve(FAIR_OWN(cpu), cpu))) {
		c->over = 1;
		return true;
	}
	c->searched = bpf_jiffies64();
	return false;
}

/* From ops.dispatch, when no job is to run on this CPU. `prev` is the thread that ran, if it is a
 * best-effort one and still runnable, else NULL. Whether the CPU got a thread, or prev runs on. */
PD_FN bool fair_dispatch(__s32 cpu,
			 struct task_struct *prev __arg_trusted __arg_nullable) __rq_locked
{
	struct fair_cpu *c = FAIR_CPU(cpu);
	__u64 shared = FAIR_NEVER, own = FAIR_NEVER;
	__u32 rate;
	bool both = fair_several && scx_bpf_dsq_nr_queued(FAIR_OWN(cpu)) > 0;

	if (bpf_jiffies64() - c->searched >= FAIR_SEARCH && fair_search(cpu))
		return true;
	/* The CPU that sent the kick has compared already. */
	if (!both && (!prev || c->kicked)) {
		if (move_to_local(FAIR_SHARED)) {
			c->over = 1;
			return true;
		}
		if (!prev)
			return false;
	}
	shared = fair_first(FAIR_SHARED, cpu);
	rate = c->first;
	if (both)
		own = fair_first(FAIR_OWN(cpu), cpu);
	if (own != FAIR_NEVER) {
		if (shared != FAIR_NEVER)
			fair_lay(c, shared, rate, own, c->first);
		own += c->shift;
	}
	/* A bound thread that runs is the first of its queue. If only waiting threads were
	 * compared, the shift would stay as it was before that queue was empty, and a lone bound
	 * thread would keep the CPU for as long as the shared clock has advanced since. */
	if (prev && c->own && own == FAIR_NEVER && shared != FAIR_NEVER)
		fair_lay(c, shared, rate, fair_now(c) - c->shift, c->rate);
	both = own != FAIR_NEVER && (shared == FAIR_NEVER || fair_before(own, shared));
	if (prev && !fair_gives_way(c, prev, both ? own : shared))
		return true;
	return move_to_local(both ? FAIR_OWN(cpu) : FAIR_SHARED);
}

/* From ops.yield. */
static inline void fair_yield(void) __rq_locked
{
	FAIR_CPU(bpf_get_smp_processor_id())->yielded = 1;
}

/* From ops.running, at scx_bpf_now(); on another CPU if that changes an affinity. Whether the
 * thread was inserted past the queues. */
static inline bool fair_running(struct task_struct *p, __u64 now) __rq_locked
{
	struct fair_cpu *c = FAIR_CPU(scx_bpf_task_cpu(p));
	__u64 given = p->scx.slice;
	bool own = fair_bound(p);
	__u32 rate = fair_rate(p);
	__u64 began = fair_place(p, own ? c->clock : fair_clock, rate, own);
	bool past = c->past;

	c->own = own;
	fair_begin_turn(c, began);
	c->given = given < FAIR_TURN ? given : FAIR_TURN;
	c->time = began + fair_virtual(FAIR_TURN - c->given, rate);
	c->executed = p->se.sum_exec_runtime;
	c->since = now;
	c->back = 0;
	c->kicked = 0;
	c->over = 0;
	c->yielded = 0;
	c->past = 0;
	c->rate = rate;
	return past;
}

/* From ops.stopping. If it is still runnable its slice is set to 0 after this. */
static inline void fair_stopping(struct task_struct *p, bool runnable) __rq_locked
{
	struct fair_cpu *c = FAIR_CPU(scx_bpf_task_cpu(p));
	__u64 ran = p->se.sum_exec_runtime - c->executed;
	__s64 left = c->given - (__s64)ran;

	c->back = runnable ? p->pid : 0;
	if (runnable && !c->over && left > (__s64)FAIR_REST) {
		c->left = left;
		set_vtime(p, c->began);
	} else {
		c->left = FAIR_TURN;
		set_vtime(p, c->time + fair_virtual(ran, c->rate));
	}
	c->rate = 0;
}
