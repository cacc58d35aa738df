/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Decisions: what was executed is charged, the notes are applied, and the dispatcher selects
 * (domain.h). */
#pragma once

/* ns between polls for best-effort tasks, while jobs have used their share and none is queued. */
#define CAP_LOOK 1000000ULL
/* ns. An allocator has answered an event by then, and the job of its answer has begun: most take a
 * quarter of it. */
#define ALLOCATOR_ANSWERS 100000ULL
/* ns. Allocators have a tenth of each window. */
#define ALLOCATOR_WINDOW 10000000ULL
#define ALLOCATOR_SHARE (ALLOCATOR_WINDOW / 10)

/*
 * Accounts what the task's thread has executed so far, to be charged.
 *
 * Pairs with itself on a remote CPU (ops.stopping there, a decision here): each exchange adds the
 * difference to the one before it, so that the sum is right in any order. One that counted by a
 * `clock` that is out of date charges too much or too little; the next call corrects that, or, if
 * the thread was requeued meanwhile, there is an error of that interval's length.
 */
PD_INLINE void domain_account(__u32 domain, __u32 task, __u64 executed) __any_state
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 before = __sync_lock_test_and_set(&c->charged, executed);

	__sync_fetch_and_add(&TASK_OF(domain, task)->uncharged, (__s64)(executed - before));
}

/* Where there is neither a job nor a reservation to charge, it is kept for the next job. */
PD_INLINE void domain_charge(__u32 domain, __u32 task, pd_u64 now) __on_domain
{
	__s64 ran = (__s64)__sync_lock_test_and_set(&TASK_OF(domain, task)->uncharged, 0);
	pd_ref d = PD_AT(domain);

	if (ran > 0 && (PD_TASK(d, task)->reservation != PD_NONE || pd_task_job(d, task))) {
		DOMAIN(domain)->of_jobs += ran;
		pd_charge_task(d, task, ran, now);
	} else if (ran) {
		__sync_fetch_and_add(&TASK_OF(domain, task)->uncharged, ran);
	}
}

PD_FN int domain_background(pd_u32 domain, pd_u32 task, pd_u32 on) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	struct punctual_task *t = TASK_OF(domain, task);

	/* Threads of a suspended task execute there only, on their way into the freezer. */
	on |= t->suspended;
	if (t->background == on)
		return 0;
	t->background = on;
	c->background_tasks[task / 64 % TASK_WORDS] ^= 1ULL << (task % 64);
	if (!on) {
		c->backgrounds--;
		return 0;
	}
	/* A lead over best-effort tasks stays; a lag is limited to one turn. */
	if (!c->backgrounds++ && c->background_time + BACKGROUND_SLICE < c->fair_time)
		c->background_time = c->fair_time - BACKGROUND_SLICE;
	return 0;
}

/*
 * The kernel sends it in an irq_work. With PREEMPT_RT a thread of the kernel executes those, in one
 * list with lazy ones, which wait for the tick; and an interrupt has the thread woken only for the
 * first of the list. Each process that exits leaves a lazy one, behind which the signal would wait
 * for up to a tick. The interrupt of a kick has it woken as well.
 */
PD_INLINE int send_signal(__u32 domain, struct task_struct *p, int signal,
			  enum pid_type type) __on_domain
{
	int failed = bpf_send_signal_task(p, signal, type, 0);

	if (!failed && timer_config.by_thread)
		scx_bpf_kick_cpu(domain_cpu(domain), 0);
	return failed;
}

/* Sends the task the overrun signal. */
PD_FN int domain_signal(pd_u32 domain, pd_u32 task) __on_domain
{
	struct punctual_task *t = TASK_OF(domain, task);
	struct task_struct *p = bpf_task_from_pid((__s32)t->leader);
	struct member *m;
	int failed = 0;

	t->signal = 0;
	if (!p)
		return 0;
	/* The first process may have ended, and its number been given to another one. */
	m = bpf_task_storage_get(&members, p, 0, 0);
	if (m && m->domain == domain && m->task == task && m->generation == t->generation)
		failed = send_signal(domain, p, SIGXCPU,
				     m->flags & PUNCTUAL_ALONE ? PIDTYPE_PID : PIDTYPE_TGID);
	bpf_task_release(p);
	/* A kernel thread cannot send one (-EPERM), and another may be pending (-EBUSY): the note
	 * makes the next decision try again. */
	if (failed == -EPERM || failed == -EBUSY) {
		t->signal = 1;
		note(domain, task);
	}
	return 0;
}

/* Its number may be given out again; threads that are still in its queue run in the background. */
PD_FN int domain_gone(pd_u32 domain, pd_u32 task, int refused) __on_domain
{
	struct punctual_task *t = TASK_OF(domain, task);

	/* Its last thread left after domain_lend, and others lend to it still. */
	if (refused) {
		t->gone = 1;
		note(domain, task);
		return 0;
	}
	t->generation++;
	t->members = 0;
	t->done = 0;
	t->signal = 0;
	t->uncharged = 0;
	t->waiter = 0;
	t->lends_to = 0;
	t->suspended = 0;
	if (t->runnable)
		domain_background(domain, task, 1);
	return 0;
}

/* A release of a suspended task ends at once. */
PD_INLINE void domain_cancel_release(__u32 domain, __u32 task, pd_u64 now) __on_domain
{
	pd_ref d = PD_AT(domain);
	__u32 r = PD_TASK(d, task)->reservation;

	if (r != PD_NONE)
		pd_job_cancel(d, pd_reservation_job(d, r), now);
}

/* Applies the present state of a task that has a note. */
PD_INLINE void domain_update_task(__u32 domain, __u32 task, pd_u64 now) __on_domain
{
	struct punctual_task *t = TASK_OF(domain, task);
	pd_ref d = PD_AT(domain);
	struct punctual_domain *c = DOMAIN(domain);

	domain_charge(domain, task, now);
	if (t->signal)
		domain_signal(domain, task);
	c->done = __sync_lock_test_and_set(&t->done, 0);
	pd_while (c->done) {
		/* A task that waits does not continue in the background. */
		if (pd_task_done(d, task, now) == PD_WAIT_RELEASE) {
			domain_background(domain, task, 0);
			t->awaits = 1;
		}
		c->done--;
	}
	if (__sync_lock_test_and_set(&t->gone, 0)) {
		domain_gone(domain, task, pd_task_gone(d, task, now));
	} else if (t->runnable && !t->suspended) {
		pd_task_ready(d, task, now);
	} else {
		pd_task_blocked(d, task, now);
		if (t->suspended)
			domain_cancel_release(domain, task, now);
	}
}

/* Finds the next task that lends or waits for a lock, or did until now, and what changes for it;
 * false after the last. */
PD_FN bool domain_next_lender(pd_u32 domain) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	struct punctual_task *t;

	pd_while (!c->bits) {
		if (!c->words)
			return false;
		c->word = ffs64(c->words) % TASK_WORDS;
		c->words &= c->words - 1;
		c->bits = c->lenders[c->word];
		if (!c->bits)
			c->lender_words &= ~(1ULL << c->word);
	}
	c->lender = c->word * 64 + ffs64(c->bits);
	t = TASK_OF(domain, c->lender);
	c->woke = t->runnable && !t->suspended;
	if (t->lends_to && TASK_OF(domain, t->lends_to - 1)->gone)
		t->lends_to = 0;
	c->borrower = t->lends_to - 1;
	if (!t->lends_to && !c->woke)
		c->borrower = lock_holder(domain, c->lender);
	if (!t->lends_to && (c->woke || !t->waiter))
		c->lenders[c->word % TASK_WORDS] &= ~(c->bits & -c->bits);
	c->bits &= c->bits - 1;
	/* Its sched_yield would return before its release; or it is suspended. */
	t = TASK_OF(domain, c->borrower);
	if (c->borrower != PD_NONE && (t->done || t->awaits || t->suspended))
		c->borrower = PD_NONE;
	return true;
}

/* All tasks that lend or wait for locks, each time: a lock may have passed to another holder. A
 * task lends before it is found to sleep, and ceases to after it is found to be ready: its jobs
 * stay eligible. */
PD_FN int domain_lend(pd_u32 domain, pd_u64 now) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	pd_ref d = PD_AT(domain);

	c->words = c->lender_words;
	c->bits = 0;
	pd_while (domain_next_lender(domain)) {
		if (c->woke)
			pd_task_ready(d, c->lender, now);
		/* Refused: a deadlock, or a holder that is out of date. */
		if (pd_task_lend(d, c->lender, c->borrower, now))
			pd_task_lend(d, c->lender, PD_NONE, now);
	}
	return 0;
}

PD_FN int domain_charge_executed(pd_u32 domain, pd_u64 now, pd_u64 clock) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	/* Pairs with run_ends on a remote CPU. If that writes PD_NONE after this, it accounts what
	 * the thread executed until then itself (domain_account), to the same task. */
	__u32 task = READ_ONCE(c->task);
	__u32 tail = __sync_lock_test_and_set(&c->tail, PD_NONE);

	c->taken = clock;
	/* One that another CPU leaves after this exchange is charged at the next decision. */
	if (tail != PD_NONE)
		domain_charge(domain, tail, now);
	if (task != PD_NONE && c->by_job) {
		domain_account(domain, task, c->base + (c->taken - c->clock));
		domain_charge(domain, task, now);
	}
	return 0;
}

/* The next task that has a note, PD_NONE after the last. */
PD_FN pd_u32 domain_next_note(pd_u32 domain) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	__u32 task;

	pd_while (!c->bits) {
		if (!c->words)
			return PD_NONE;
		c->word = ffs64(c->words) % TASK_WORDS;
		c->words &= c->words - 1;
		c->bits = __sync_lock_test_and_set(&notes[IN_DOMAINS(domain)].tasks[c->word], 0);
	}
	task = c->word * 64 + ffs64(c->bits);
	c->bits &= c->bits - 1;
	return task;
}

PD_FN int domain_apply_notes(pd_u32 domain, pd_u64 now) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	__u32 task;

	c->words = __sync_lock_test_and_set(&notes[IN_DOMAINS(domain)].words, 0);
	c->bits = 0;
	pd_while ((task = domain_next_note(domain)) != PD_NONE)
		domain_update_task(domain, task, now);
	return 0;
}

/* First part of a decision: charges what was executed, and applies the notes. `clock` is the
 * scheduler's clock at `now`. */
PD_INLINE void domain_update(__u32 domain, pd_u64 now, __u64 clock) __on_domain
{
	domain_charge_executed(domain, now, clock);
	if (DOMAIN(domain)->lender_words)
		domain_lend(domain, now);
	if (notes[IN_DOMAINS(domain)].words)
		domain_apply_notes(domain, now);
}

/* Signals and the background of overruns, and releases of suspended tasks, which the next decision
 * cancels. Read from the records, which are there even when the ring of events is full. */
PD_FN int domain_follow_records(pd_u32 domain) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	pd_ref d = PD_AT(domain);

	pd_while (c->followed < PD(d)->record_count) {
		pd_record_p r = PD_RECORD(d, c->followed & PD(d)->record_mask);
		__u32 task = r->small;
		__u32 kind = r->kind;

		c->followed++;
		if (kind == PD_REC_EVENT + PD_EV_OVERRUN) {
			domain_signal(domain, task);
		} else if (kind == PD_REC_EVENT + PD_EV_BACKGROUND && task < PUNCTUAL_TASKS) {
			domain_background(domain, task, 1);
		} else if (kind == PD_REC_EVENT + PD_EV_RELEASED && task < PUNCTUAL_TASKS) {
			domain_background(domain, task, 0);
			if (TASK_OF(domain, task)->suspended)
				note(domain, task);
		}
	}
	return 0;
}

/* What is left to the allocators in this window, or in the one that begins now, ns. */
PD_INLINE __u64 domain_allocator_left(struct punctual_domain *c, __u64 now) __any_state
{
	if (now - c->allocators_window >= ALLOCATOR_WINDOW)
		return ALLOCATOR_SHARE;
	return ALLOCATOR_SHARE - pd_min(c->of_allocators, ALLOCATOR_SHARE);
}

/* Whether an allocator's thread runs before the jobs. Read on any CPU while the domain's writes it:
 * with a window that is out of date a thread is once put into the wrong one of two queues, both of
 * which are served. */
PD_INLINE bool domain_allocates(__u32 domain) __rq_locked
{
	return domain_allocator_left(DOMAIN(domain), bpf_ktime_get_ns()) > 0;
}

/* Whether a best-effort task runs or is queued. */
PD_INLINE bool domain_fair_queued(__u32 domain) __on_domain
{
	return DOMAIN(domain)->fair_runs || fair_nr_queued(domain_cpu(domain));
}

/* Leaves best-effort tasks their share. Admission relies on this: a window is never shorter than
 * CAP_WINDOW, jobs are held back at its end only, and after CAP_SHARE of it at the earliest
 * (crates/analysis/src/cap.rs). */
PD_INLINE void domain_cap(__u32 domain, pd_u64 now) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	__u32 was = c->throttled;

	c->throttled = 0;
	if (now - c->window >= CAP_WINDOW) {
		c->window = now;
		c->of_jobs = 0;
	}
	if (c->choice == PD_NONE)
		return;
	if (c->of_jobs < CAP_SHARE) {
		c->allowance = pd_min(c->allowance, CAP_SHARE - c->of_jobs);
	} else if (domain_fair_queued(domain)) {
		c->throttled = 1;
		c->throttles += !was;
		c->next = pd_min(c->next, c->window + CAP_WINDOW);
	} else {
		c->next = pd_min(c->next, now + CAP_LOOK);
	}
}

/* Not inline: its variables would be on the stack below the dispatcher's deepest calls, which takes
 * all 512 bytes. */
PD_FN int domain_bad_choice(pd_u32 domain) __on_domain
{
	scheduler_error("domain %llu selected a job without a task", domain);
	return 0;
}

/* Second part of a decision: handle expired events, and select the task to run. Allocators learn of
 * new events, but for the one whose command this is (`rings` 0): it looks for them next. */
PD_FN int domain_select(pd_u32 domain, pd_u64 now, pd_u32 rings) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	pd_ref d = PD_AT(domain);
	pd_u64 job;

	pd_advance(d, now);
	job = pd_select(d, 0, now);
	c->next = pd_timer(d, 0, 0, now);
	c->choice = PD_NONE;
	c->allowance = PD_INFINITE;
	if (job) {
		pd_job_p j = PD_JOB(d, (pd_u32)job);

		c->choice = PD_TASK(d, j->attr.task)->executes;
		if (c->choice >= PUNCTUAL_TASKS)
			domain_bad_choice(domain);
		c->allowance = j->flags == PD_PLAIN ? j->attr.budget : pd_job_allowance(d, job);
	}
	domain_cap(domain, now);
	c->fresh = 1;
	if (c->follows_records)
		domain_follow_records(domain);
	if (c->asks_policies && c->event_pos != PD(d)->event_head) {
		c->event_pos = PD(d)->event_head;
		c->answered = now + ALLOCATOR_ANSWERS;
		if (rings)
			doorbell_ring(domain);
	}
	return 0;
}

/* Whether another thread than the running one is to run. */
PD_FN bool domain_differs(pd_u32 domain, pd_u64 now) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	__u32 task = domain_selected(c);
	/* Pairs with run_begins on a remote CPU. If that changes it after this, the answer is out
	 * of date, and the requeued thread's ops.running there kicks this CPU: ops.dispatch
	 * compares again under the run queue's lock. */
	__u32 runs = READ_ONCE(c->task);

	if (now >= c->turn_end)
		return true;
	if (c->by_allocator)
		return false;
	if (notes[IN_DOMAINS(domain)].allocators)
		return true;
	if (task == PD_NONE)
		return runs != PD_NONE && c->by_job;
	return runs != task || !c->by_job;
}

/* When to decide next, if the selected task executes from `from` (scheduler's clock) on. A turn
 * that is over needs no event: ops.dispatch was requested already. */
PD_FN int domain_set_next_event(pd_u32 domain, pd_u64 from) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 ends = PD_INFINITE;

	c->next_event = c->turn_end <= c->decided_for ? c->next : pd_min(c->next, c->turn_end);
	c->end = 0;
	if (domain_selected(c) == PD_NONE)
		return 0;
	ends = pd_later(from, c->allowance);
	if (ends != PD_INFINITE)
		ends -= c->stopping;
	if (ends != PD_INFINITE && ends + c->offset < c->next_event) {
		c->next_event = ends + c->offset;
		c->end = ends;
	}
	return 0;
}
