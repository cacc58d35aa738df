/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Best-effort threads that wake or are put back: which queue they wait in, or whether they
 * preempt (fair.h).
 *
 *   an idle CPU may take it ───────────────────> that CPU's local queue, or a kick
 *   behind the runner by more than a threshold > its turn is over: this CPU's local queue
 *   the same, but a job may be released soon ──> the queue, and a kick: a decision comes between
 *   else ──────────────────────────────────────> the queue
 *
 * Past the queues there is neither an interrupt nor a decision between the wake-up and the
 * switch, which saves a sixth of the latency. The switch follows as soon as the kernel permits
 * preemption. If a job is released just then, run.h stops the thread as it begins.
 */
#pragma once

/* CPUs that a wake-up tries to preempt when a job has its own. */
#define FAIR_LOOKS 4
/* ns before a domain's next event within which all threads are queued. */
#define FAIR_NEAR 100000ULL

/* From ops.select_cpu. On a domain's CPU the thread is queued: a release would be behind it in
 * the local queue. */
static inline __s32 fair_select_cpu(struct task_struct *p, __s32 prev_cpu,
				    __u64 wake_flags) __waking
{
	bool idle = false;
	__s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &idle);

	if (idle && domain_on(cpu) == PD_NONE)
		insert(p, SCX_DSQ_LOCAL, FAIR_TURN, 0);
	else if (idle)
		FAIR_CPU(cpu)->claims = p->pid;
	return cpu;
}

/* Whether the runner on this CPU is so far ahead of `time`, by the shared queue's clock, that it
 * may be preempted. */
static inline bool fair_ahead(struct fair_cpu *c, __u64 time) __rq_locked
{
	return c->rate && fair_before(time + FAIR_PREEMPT, fair_now(c));
}

/* Preempts the runner on this CPU, if it is so far ahead. */
static inline bool fair_preempt(__s32 cpu, __u64 time) __rq_locked
{
	struct fair_cpu *c = FAIR_CPU(cpu);

	if (!fair_ahead(c, time))
		return false;
	if (!c->kicked) {
		c->kicked = 1;
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
	}
	return true;
}

/* For a thread in the shared queue whose own CPU runs no best-effort thread. */
static inline void fair_preempt_other(struct task_struct *p, __s32 cpu, __u64 time) __rq_locked
{
	__u32 looks = 0;

	pd_while (looks < FAIR_LOOKS && looks < fair_several) {
		if (++cpu >= (__s32)fair_several)
			cpu = 0;
		if (bpf_cpumask_test_cpu(cpu, p->cpus_ptr) && fair_preempt(cpu, time))
			return;
		looks++;
	}
}

/* Wakes an idle CPU for it; whether there is one. */
static inline bool fair_kick_idle(struct task_struct *p) __rq_locked
{
	__s32 cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);

	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return cpu >= 0;
}

/* Whether this CPU's dispatcher has no decision to make for a while. Read on any CPU, as a guess:
 * pairs with run_fair, which makes the dispatcher decide when the thread begins to run, if the
 * decision changed after it was read. */
static inline bool fair_unasked(__s32 cpu) __rq_locked
{
	__u32 domain = domain_on(cpu);
	struct punctual_domain *d = DOMAIN(domain);
	struct punctual_notes *n = &notes[IN_DOMAINS(domain)];

	if (domain == PD_NONE)
		return true;
	return domain_selected(d) == PD_NONE && !n->words && !n->allocators &&
	       d->next_event > scx_bpf_now() + d->offset + FAIR_NEAR;
}

/* From ops.enqueue, for one that fair_stopping(p, true) stopped: no wake-up, and its own CPU is
 * not kicked. */
static inline void fair_put_back(struct task_struct *p, struct fair_cpu *c, __u64 queue,
				 __u64 time, __u64 enq_flags) __rq_locked
{
	c->back = 0;
	insert_vtime(p, queue, c->left, time, enq_flags);
	if (queue == FAIR_SHARED && fair_several)
		fair_kick_idle(p);
}

/* Virtual ns after its queue's clock at which a new thread begins: one gap for each thread that
 * is queued. */
static inline __u64 fair_new_offset(__u64 queue) __rq_locked
{
	__u32 queued = (__u32)scx_bpf_dsq_nr_queued(queue);

	return (queued < FAIR_NEW_MOST ? queued : FAIR_NEW_MOST) * FAIR_NEW_GAP;
}

/* From ops.enqueue. */
static inline void fair_enqueue(struct task_struct *p, __u64 enq_flags) __rq_locked
{
	__s32 cpu = scx_bpf_task_cpu(p);
	struct fair_cpu *c = FAIR_CPU(cpu);
	bool own = fair_bound(p), wakes, here;
	__u64 time = fair_place(p, own ? c->clock : fair_clock, fair_rate(p), own);
	__u64 queue = own ? FAIR_OWN(cpu) : FAIR_SHARED;
	__u64 shared;

	if (!p->scx.dsq_vtime)
		time += fair_new_offset(queue);
	shared = own ? time + c->shift : time;
	if (c->back == (__u32)p->pid) {
		fair_put_back(p, c, queue, time, enq_flags);
		return;
	}
	/* A thread that exits is soon gone by itself. Under PREEMPT_RT it holds a lock that its
	 * parent needs next, which would wait for turns of all others. */
	wakes = enq_flags & SCX_ENQ_WAKEUP && p->policy != SCHED_BATCH &&
		p->policy != SCHED_IDLE && !(bpf_get_current_task_btf()->flags & PF_EXITING);
	/* ops.select_cpu has just looked for an idle CPU. */
	here = own || !fair_several || enq_flags & SCX_ENQ_CPU_SELECTED;
	if (wakes && here && !c->kicked && fair_ahead(c, shared) && fair_unasked(cpu)) {
		c->kicked = 1;
		c->over = 1;
		c->past = 1;
		insert(p, SCX_DSQ_LOCAL, FAIR_TURN,
		       enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	insert_vtime(p, queue, FAIR_TURN, time, enq_flags);
	if (c->claims == (__u32)p->pid) {
		/* ops.select_cpu found an idle CPU, which the kernel wakes. */
		c->claims = 0;
		return;
	}
	if (!here && fair_kick_idle(p))
		return;
	if (wakes && !fair_preempt(cpu, shared) && !own && fair_several && !c->rate)
		fair_preempt_other(p, cpu, shared);
}
