/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Everybody else: whoever is no member of a task shares what jobs leave, on all CPUs. So far in one queue, in turns.
 *
 * A member comes here too while it cannot be where its jobs run (member.h). Callbacks run with interrupts off; none may
 * call the dispatcher.
 */
#ifndef PUNCTUAL_FAIR_H
#define PUNCTUAL_FAIR_H

#define FAIR_QUEUE 1ULL
#define FAIR_SLICE 3000000ULL

/* From ops.init, which may sleep. 0 or a negative error. */
static inline __s32 fair_init(void)
{
	return scx_bpf_create_dsq(FAIR_QUEUE, -1);
}

/* From ops.enable: p comes to sched_ext. */
static inline void fair_enable(struct task_struct *p)
{
}

/* From ops.select_cpu. */
static inline __s32 fair_select_cpu(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	return prev_cpu;
}

/* From ops.enqueue. What follows a fair_stopping(p, true) is no wake-up, and must not kick. */
static inline void fair_enqueue(struct task_struct *p, __u64 enq_flags)
{
	insert(p, FAIR_QUEUE, FAIR_SLICE, enq_flags);
}

/* From ops.dispatch, when no job is to run on this CPU. `prev` is the one that ran if it is not a member's and is still
 * runnable, else NULL. Whether the CPU got somebody, or prev goes on. */
static inline bool fair_dispatch(__s32 cpu, struct task_struct *prev)
{
	if (move_to_local(FAIR_QUEUE))
		return true;
	if (!prev)
		return false;
	set_slice(prev, FAIR_SLICE);
	return true;
}

/* Whether somebody waits who could run on this CPU. */
static inline bool fair_waits(__s32 cpu)
{
	return scx_bpf_dsq_nr_queued(FAIR_QUEUE) > 0;
}

/* From ops.running and ops.stopping. If it is still runnable its slice is set to 0 after this. */
static inline void fair_running(struct task_struct *p)
{
}

static inline void fair_stopping(struct task_struct *p, bool runnable)
{
}

#endif
