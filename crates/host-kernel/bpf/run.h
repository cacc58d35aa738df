/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The threads of a domain's CPU. The kernel asks for the next thread while the previous one is
 * still current (`dispatch`), then stops that one and starts the next:
 *
 *   dispatch(prev) ── stopping(prev) ── enqueue(prev), if it is still runnable ── running(next)
 *
 * and when the previous one continues, it calls none of the last three.
 *
 * `dispatch` is called on the domain's CPU; `running` and `stopping` also on a remote one that
 * changes an attribute of the running thread. What only the domain's CPU may do (records, the
 * timer) is left out there, and the kick makes it up. What both may write (`switching`, `stopping`,
 * `decided`) are measurements: one that is lost changes a prediction by some microseconds.
 */
#pragma once

/* The next schedule() keeps the run queue's clock, and does not count what was executed until
 * then. A macro in the kernel, which BTF does not have. */
#define RQCF_REQ_SKIP 1U

/* Whether a dispatch has left that request behind: on a CPU that was idle, from 7.x on. It is
 * meant for a schedule() that directly follows an update of the clock, but was made within one. */
PD_INLINE bool clock_stands(void) __rq_locked
{
	struct rq *rq = bpf_ksym_exists(scx_bpf_locked_rq) ? scx_bpf_locked_rq() : 0;

	return rq && (rq->clock_update_flags & RQCF_REQ_SKIP);
}

/* ns. A slice ends so long after the next event: the timer is to be the first to act on it, not a
 * tick. */
#define SLICE_MARGIN 20000ULL
/* For an event that is far away. */
#define SLICE_MOST 100000000ULL

/* ns. Maximum time from where the kernel counts execution to ops.running. */
#define BEGIN_MOST 20000ULL
/* ns. A longer time from the timer's decision to the switch has another cause. */
#define SWITCH_MOST 8000ULL

/* Records are written on the domain's CPU only; what another CPU's callback leaves out is in the
 * next record of the thread. */
PD_INLINE void run_record(__u32 domain, struct member *m, struct task_struct *p, __u64 executed,
			  __u64 now, bool stopped) __rq_locked
{
	if (on_remote_cpu(domain))
		return;
	if (!stopped && !m->recorded) {
		pd_record(PD_AT(domain), PUNCTUAL_REC_RUNNING, m->task, now, (__u32)p->pid, 0);
		m->recorded = executed + 1;
	} else if (stopped && m->recorded) {
		pd_record(PD_AT(domain), PUNCTUAL_REC_STOPPED, m->task, now,
			  executed + 1 - m->recorded, (__u32)p->pid);
		m->recorded = 0;
	}
}

/* The slice of a job's thread: until the next event. If the timer is missed, the kernel's tick
 * calls ops.dispatch. After domain_set_next_event; `now` is CLOCK_MONOTONIC. */
PD_FN pd_u64 run_slice(pd_u32 domain, pd_u64 now) __rq_locked
{
	__u64 next_event = DOMAIN(domain)->next_event;
	__u64 left = next_event > now ? pd_min(next_event - now, SLICE_MOST) : 0;

	return softirqs_slice(domain, left + SLICE_MARGIN);
}

/* Sets the timer, and the slice of the thread that executes until then: from `from` (scheduler's
 * clock), or PD_INFINITE for one that is charged to no job. */
PD_INLINE void run_until_event(__u32 domain, struct task_struct *p, __u64 from,
			       __u64 now) __on_domain __rq_locked
{
	domain_set_next_event(domain, from);
	set_slice(p, run_slice(domain, now));
	timer_arm(domain);
}

/* An allocator's thread began. Its budget ends as a turn does. */
PD_INLINE void run_allocator(__u32 domain, struct task_struct *p, struct member *m) __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 now = bpf_ktime_get_ns();

	if (__sync_lock_test_and_set(&m->counted, 0))
		__sync_fetch_and_sub(&notes[IN_DOMAINS(domain)].allocators, 1);
	if (now - c->allocators_window >= ALLOCATOR_WINDOW) {
		c->allocators_window = now;
		c->of_allocators = 0;
	}
	c->by_allocator = 1;
	c->turn_end = now + domain_allocator_left(c, now);
	if (on_remote_cpu(domain)) {
		set_slice(p, QUEUED_SLICE);
		kick(domain_cpu(domain));
	} else {
		run_until_event(domain, p, PD_INFINITE, now);
	}
}

/* A task's thread began, from its queue. */
PD_INLINE void run_member(__u32 domain, struct task_struct *p, struct member *m,
			  __u64 now) __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);
	struct punctual_task *t = TASK_OF(domain, m->task);

	member_count(m);
	c->charged = c->base;
	t->awaits = 0;
	/* One that is in the background may execute the job of a task that lends to it. */
	c->by_job = !t->background || domain_selected(c) == m->task;
	/* Last: a reader without the lock that sees this task counts from the base set above. */
	WRITE_ONCE(c->task, m->task);
	if (!m->turn && c->clock - m->waits > TURN_WAIT)
		m->turn = TURN - TURN_SHORT;
	if (t->runnable > 1)
		c->turn_end = now + (TURN - pd_min(m->turn, TURN));
	if (!c->by_job) {
		set_slice(p, BACKGROUND_SLICE);
		return;
	}
	run_record(domain, m, p, c->base, now, false);
	/* It is not selected any more; or another CPU changed an attribute of it while it runs: a
	 * timer armed there would expire there. */
	if (domain_selected(c) != m->task || on_remote_cpu(domain)) {
		set_slice(p, QUEUED_SLICE);
		kick(domain_cpu(domain));
		return;
	}
	if (now - c->clock - c->offset > OFFSET_MOST)
		c->offset = (__s64)(now - c->clock);
	run_until_event(domain, p, c->clock - t->uncharged, now);
}

/* A best-effort thread began. */
PD_INLINE void run_fair(__u32 domain, struct task_struct *p) __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);

	c->fair_runs = 1;
	if (fair_running(p, c->clock) &&
	    (domain_selected(c) != PD_NONE || notes[IN_DOMAINS(domain)].words))
		kick(domain_cpu(domain));
}

/* Whether the switch at `clock` follows a decision of the timer's callback. */
PD_INLINE bool run_was_requested(struct punctual_domain *c, __u64 clock) __rq_locked
{
	return c->decided && clock - c->decided < SWITCH_MOST;
}

/* The scheduler's clock from which the kernel counts the execution of a thread that begins: the
 * beginning of schedule(). A kernel that subtracts the time of interrupts counts by another
 * clock, far behind this one: then the time now. */
PD_INLINE __u64 run_counted_from(struct task_struct *p) __rq_locked
{
	__u64 now = scx_bpf_now();
	__u64 began = p->se.exec_start;

	return now - began < BEGIN_MOST ? began : now;
}

/* From ops.running. */
PD_INLINE void run_begins(__u32 domain, struct task_struct *p) __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);
	struct member *m = member_of(p);
	__u64 now = m ? bpf_ktime_get_ns() : 0;

	/* An early schedule(), which changes nothing, uses the request up. */
	if (clock_stands())
		scx_bpf_kick_cpu(domain_cpu(domain), 0);
	c->clock = run_counted_from(p);
	c->base = p->se.sum_exec_runtime;
	if (run_was_requested(c, c->clock))
		c->switching = recent_least(c->switching, c->clock - c->decided);
	c->decided = 0;
	timer_process_switched(domain);
	if (!m || m->place == BEST_EFFORT) {
		run_fair(domain, p);
	} else if (m->place == WITH_ALLOCATORS) {
		run_allocator(domain, p, m);
	} else {
		run_member(domain, p, m, now);
	}
}

/* A job's execution ends here; what the thread does next is not its job's. */
PD_INLINE void run_job_stopped(__u32 domain, struct task_struct *p, struct member *m,
			       __u64 executed) __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);

	domain_account(domain, c->task, executed);
	/* Charged at the next decision. Pairs with the exchange in domain_update: where that takes
	 * the tail between these two lines, the tail is set for the decision after that. */
	if (c->tail == PD_NONE)
		c->tail = c->task;
	else if (c->tail != c->task)
		note(domain, c->task);
	run_record(domain, m, p, executed, bpf_ktime_get_ns(), true);
}

/* From ops.stopping. */
PD_INLINE void run_ends(__u32 domain, struct task_struct *p, bool runnable) __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 executed = p->se.sum_exec_runtime;
	struct member *m = c->fair_runs ? 0 : member_of(p);

	c->stopped = c->clock + (executed - c->base);
	if (c->fair_runs) {
		fair_stopping(p, runnable);
		if (c->backgrounds)
			c->fair_time += (executed - c->base) /
					(1 + fair_nr_queued(domain_cpu(domain)));
	} else if (c->by_allocator) {
		c->of_allocators += executed - c->base;
	} else if (m && c->task != PD_NONE) {
		m->turn += executed - c->base;
		if (run_was_requested(c, c->stopped))
			c->stopping = recent_least(c->stopping, c->stopped - c->decided);
		if (c->by_job)
			run_job_stopped(domain, p, m, executed);
		else
			c->background_time += executed - c->charged;
	}
	WRITE_ONCE(c->task, PD_NONE);
	c->by_allocator = 0;
	c->fair_runs = 0;
	c->turn_end = PD_INFINITE;
	if (!runnable)
		return;
	if (m)
		m->put_back = 1;
	/* With a slice left, a thread is put back at the head of the local queue, past the
	 * dispatcher. */
	set_slice(p, 0);
}

/* The running thread's task is selected again. */
PD_INLINE void run_on(__u32 domain, struct task_struct *p, struct member *m,
		      __u64 now) __on_domain __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 executed = c->base + (c->taken - c->clock);

	TASK_OF(domain, c->task)->awaits = 0;
	if (!c->by_job) {
		c->by_job = 1;
		c->charged = executed;
		run_record(domain, m, p, executed, now, false);
	}
	if (now >= c->turn_end) {
		m->turn = 0;
		c->turn_end = PD_INFINITE;
	}
	if (c->turn_end == PD_INFINITE && TASK_OF(domain, c->task)->runnable > 1)
		c->turn_end = now + TURN;
	run_until_event(domain, p, c->taken, now);
}

/* The next task in the background, round-robin; PD_NONE for none. */
PD_FN pd_u32 run_next_background(pd_u32 domain) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	__u32 word = c->background / 64;
	__u64 later = c->background_tasks[word % TASK_WORDS] & (~1ULL << (c->background % 64));
	__u32 words = TASK_WORDS;

	pd_while (!later && words) {
		word++;
		later = c->background_tasks[word % TASK_WORDS];
		words--;
	}
	return later ? word % TASK_WORDS * 64 + ffs64(later) : PD_NONE;
}

/* A thread that continues in the background, turn after turn, is not stopped in between. */
PD_FN int run_count_background(pd_u32 domain) __on_domain __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 executed = c->base + (scx_bpf_now() - c->clock);

	c->background_time += executed - c->charged;
	c->charged = executed;
	return 0;
}

/* All tasks in the background together share as one more best-effort task. */
PD_INLINE bool run_background(__u32 domain, struct task_struct *prev,
			      struct member *m) __on_domain __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);
	__u32 task;

	if (m && !c->by_job)
		run_count_background(domain);
	if (c->background_time > c->fair_time && domain_fair_queued(domain))
		return false;
	task = run_next_background(domain);
	if (task == PD_NONE)
		return false;
	c->background = task;
	if (move_to_local(TASK_QUEUE(domain, task)))
		return true;
	if (prev && m && c->task == task) {
		if (c->by_job)
			run_job_stopped(domain, prev, m, c->base + (scx_bpf_now() - c->clock));
		c->by_job = 0;
		set_slice(prev, BACKGROUND_SLICE);
		return true;
	}
	/* It sleeps, and accumulates no credit; or all threads that were left of it have run. */
	c->background_time = c->fair_time;
	if (!TASK_OF(domain, task)->members)
		domain_background(domain, task, 0);
	return false;
}

/* The allowance of the chosen task is exhausted without a decision since: the tick ended its
 * slice, and a higher class preempted it before this ops.dispatch. */
PD_INLINE bool run_exhausted(struct punctual_domain *c, __u32 domain) __on_domain
{
	return c->choice != PD_NONE && c->task == PD_NONE && c->allowance != PD_INFINITE &&
	       TASK_OF(domain, c->choice)->uncharged >= (__s64)c->allowance;
}

/* Whether this ops.dispatch makes a new decision. */
PD_FN int run_decides(pd_u32 domain, pd_u64 now) __on_domain __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);

	/* A timer that could not be armed is armed after a decision. */
	if (notes[IN_DOMAINS(domain)].words || now >= c->next || c->unarmed)
		return 1;
	return !c->fresh && ((c->task != PD_NONE && c->by_job) || run_exhausted(c, domain));
}

/* From ops.dispatch. */
PD_INLINE void run_dispatch(__u32 domain, __s32 cpu,
			    struct task_struct *prev) __on_domain __rq_locked
{
	struct punctual_domain *c = DOMAIN(domain);
	struct member *m = prev && c->task != PD_NONE ? member_of(prev) : 0;
	struct punctual_notes *n = &notes[IN_DOMAINS(domain)];
	__u64 now = bpf_ktime_get_ns();
	bool decides = run_decides(domain, now);
	__u32 task;

	timer_process_check(domain, now);
	/* Its soft interrupt was deferred (ksoftirqd.h). */
	if (c->expires && now >= c->expires)
		scx_bpf_kick_cpu(cpu, 0);
	if (decides) {
		__u64 clock = scx_bpf_now();

		/* The timer's decision has charged the execution until this schedule(). */
		domain_update(domain, now, run_was_requested(c, clock) ? c->taken : clock);
		domain_select(domain, now, 1);
		c->decided = 0;
	}
	c->fresh = 0;
	if (n->allocators && move_to_local(ALLOCATOR_QUEUE(domain)))
		return;
	/* The kick was for the timer process only (timer_process_arm). */
	if (prev && c->by_allocator && now < c->turn_end) {
		run_until_event(domain, prev, PD_INFINITE, now);
		return;
	}
	task = domain_selected(c);
	if (task != PD_NONE) {
		bool runs = prev && m && c->task == task;

		if ((!runs || now >= c->turn_end) && move_to_local(TASK_QUEUE(domain, task)))
			return;
		if (runs) {
			run_on(domain, prev, m, now);
			return;
		}
	}
	if (!c->backgrounds || !run_background(domain, prev, m))
		fair_dispatch(cpu, prev && c->fair_runs &&
					   !member_misplaced(prev, member_of(prev)) ?
					   prev :
					   0);
	if (decides) {
		domain_set_next_event(domain, c->taken);
		timer_arm(domain);
	}
}
