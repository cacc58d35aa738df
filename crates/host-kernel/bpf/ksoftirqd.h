/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * ksoftirqd executes the soft interrupts that are left of a round before a switch, or of one that
 * took too long. A domain's timer is a soft interrupt. It may be among them, and would wait for
 * that thread, which as a best-effort one would wait for the job that the timer is to end.
 *
 * So on a domain's CPU the thread runs before jobs, for a quarter of the time at most. When it
 * was stopped or has used its share, a job's slice is minimal: the kernel calls ops.dispatch at
 * each switch and tick. A decision there may find that the timer is overdue (run.h), and sends
 * the CPU an interrupt, at whose end the soft ones are executed: until then a timer that is armed
 * again does not expire either.
 */
#pragma once

#define SOFTIRQS_WINDOW 10000000ULL
#define SOFTIRQS_SHARE (SOFTIRQS_WINDOW / 4)
extern struct task_struct *ksoftirqd __ksym;

struct softirqs {
	__u64 window;	/* CLOCK_MONOTONIC */
	__u64 executed; /* its execution time then */
	__u64 waits;	/* it was stopped, or has no share left */
} softirqs[PD_DOMAINS];

/* The slice of a job that could have this one: minimal where the timer may wait. */
PD_INLINE __u64 softirqs_slice(__u32 domain, __u64 slice) __rq_locked
{
	return softirqs[IN_DOMAINS(domain)].waits ? 1 : slice;
}

/* From ops.enqueue. Whether the thread is put before all others. */
PD_INLINE bool softirqs_enqueue(struct task_struct *p, __u64 enq_flags) __rq_locked
{
	__s32 cpu = scx_bpf_task_cpu(p);
	__u32 domain = domain_on(cpu);
	struct task_struct **thread;
	struct softirqs *s;
	__u64 now;

	if (domain == PD_NONE || timer_config.by_thread)
		return false;
	thread = bpf_per_cpu_ptr(&ksoftirqd, cpu);
	if (!thread || *thread != p)
		return false;
	s = &softirqs[IN_DOMAINS(domain)];
	now = bpf_ktime_get_ns();
	if (now - s->window >= SOFTIRQS_WINDOW) {
		s->window = now;
		s->executed = p->se.sum_exec_runtime;
	}
	s->waits = !(enq_flags & SCX_ENQ_WAKEUP);
	if (p->se.sum_exec_runtime - s->executed >= SOFTIRQS_SHARE) {
		s->waits = 1;
		return false;
	}
	if (!s->waits)
		enq_flags |= SCX_ENQ_HEAD | SCX_ENQ_PREEMPT;
	insert(p, SCX_DSQ_LOCAL, FAIR_TURN, enq_flags);
	return true;
}
