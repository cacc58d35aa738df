/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * A domain: a dispatcher and its CPU. The dispatcher is called on that CPU only, and never nested
 * there: from ops.dispatch (run queue's lock held, interrupts off), from the timer's callback (in
 * a soft interrupt) or the timer process (interrupts off), and from commands (interrupts off).
 * ops.dispatch does not interrupt a soft interrupt, and commands are executed by tasks, so there
 * is no lock.
 *
 *        what was executed ┐
 *   notes of all callbacks ┤
 *                          v
 *        domain_update(now) ── domain_select(now) ──> choice, allowance, next
 *                                                          │
 *            timer, command: not the running one? ── kick ─┤
 *                                                          v
 *                        ops.dispatch: from that task's queue, or best-effort tasks (fair.h)
 *
 * What a thread executed is the kernel's own count (sum_exec_runtime), which is complete when it
 * stops; while it runs, the clock since it began is added. What was charged too much or too
 * little meanwhile is held until the next charge, so that in the long run what is charged is what
 * the kernel counted, to the nanosecond.
 *
 * Races. What is on the CPU (the first part of struct punctual_domain) is written by ops.running
 * and ops.stopping, under the run queue's lock: on the domain's CPU, and on another one that
 * changes an attribute of the running thread. The timer callback, commands and the timer process
 * read it on the domain's CPU without that lock. On this CPU they cannot come between two such
 * writes, on another one they can: each reads `task` once, and where it uses a value that is out
 * of date says why that is safe. The decision and what follows is written on the domain's CPU
 * only; other CPUs read it to guess, and their kick makes the dispatcher decide again.
 */
#ifndef PUNCTUAL_DOMAIN_H
#define PUNCTUAL_DOMAIN_H

/* ns. Jobs leave a twentieth of each window to best-effort tasks. */
#define CAP_WINDOW 100000000ULL
#define CAP_SHARE (CAP_WINDOW / 20 * 19)
/* ns between polls for best-effort tasks, while jobs have used their share and none is queued. */
#define CAP_LOOK 1000000ULL
/* ns. Allocators have a tenth of each window. */
#define ALLOCATOR_WINDOW 10000000ULL
#define ALLOCATOR_SHARE (ALLOCATOR_WINDOW / 10)
/* ns between readings of the two clocks at one instant; beyond it they drifted apart. */
#define OFFSET_MOST 20000ULL
/* A turn in the background, ns. */
#define BACKGROUND_SLICE 3000000ULL

struct punctual_domain {
	/* What is on the CPU. */
	__u32 task;	  /* whose thread runs from its queue, else PD_NONE */
	__u32 by_job;	  /* by its job; 0: in the background */
	__u32 by_allocator; /* an allocator's thread runs */
	__u32 fair_runs;	  /* anybody else runs */
	__u64 clock;	  /* the scheduler's clock from which the kernel counts its execution */
	__u64 base;	  /* its execution time then */
	__u64 charged;	  /* its execution time that was charged */
	__u64 stopped;	  /* the scheduler's clock when the last one had stopped */
	__u64 turn_end;	  /* its turn's end, CLOCK_MONOTONIC; PD_INFINITE for none */
	/* The decision. */
	__u32 choice;	 /* the task to run, PD_NONE for none */
	__u32 fresh;	 /* no ops.dispatch has executed it yet */
	__u32 tail;	 /* a task that executed after its charge, PD_NONE for none */
	__u32 throttled;	 /* the choice waits for best-effort tasks */
	__u64 allowance; /* what the choice may execute from then on */
	__u64 next;	 /* when something happens by itself but for its end */
	__u64 taken;	 /* the scheduler's clock up to which all is charged */
	/* The timer. */
	__u32 decisions_left;  /* of this callback of the timer */
	__u32 unused;
	__u64 decided_for;   /* the time of the timer's last decision, CLOCK_MONOTONIC */
	__u64 next_event;    /* when to decide next, CLOCK_MONOTONIC */
	__u64 end;    /* when to preempt the job, scheduler's clock; 0: not the next event */
	__u64 expires;  /* when the timer expires; 0: it has, or could not be armed */
	__u64 unarmed; /* since when it cannot be armed, CLOCK_MONOTONIC; 0: it can */
	__u64 arm_failures;
	__u32 arms;    /* counted for fails_every (timer_process.h) */
	__u32 dispatches; /* counted for remote_every (timer_process.h) */
	__u64 early;  /* its least recent latency, ns */
	__u64 deciding; /* duration of a decision, ns: the maximum of the recent ones */
	__u64 switching; /* ns from a decision to the beginning of what it selected */
	__u64 stopping;	 /* ns from a decision until the preempted thread has stopped */
	__u64 decided;	 /* when the timer requested a switch, scheduler's clock; 0: it did not */
	__s64 offset;	 /* CLOCK_MONOTONIC less the scheduler's clock */
	/* Shares. */
	__u64 window;
	__u64 of_jobs;
	__u64 throttles;
	__u64 allocators_window;
	__u64 of_allocators;
	/* Events. */
	__u64 overrun_pos; /* records */
	__u64 event_pos;   /* events */
	__u32 handles_overruns;  /* a reservation has an overrun policy that we execute */
	__u32 asks_policies;  /* allocators in user space wait for the doorbell */
	/* Tasks in the background. */
	__u32 backgrounds;
	__u32 background; /* the last one that was served */
	__u64 background_time;
	__u64 fair_time;
	__u64 background_tasks[TASK_WORDS];
} domains[PD_DOMAINS];

#define DOMAIN(domain) (&domains[IN_DOMAINS(domain)])

/* ns. The maximum of `deciding`: an interrupt may have made a decision longer. */
#define DECIDING_MOST 4000ULL

/* The least of recent values: a larger one raises it by a 64th of the difference. */
PD_INLINE __u64 recent_least(__u64 least, __u64 decided_for)
{
	return !least || decided_for < least ? decided_for : least + ((decided_for - least) >> 6);
}

/* Records the duration of a decision. The maximum decays: a late decision costs more than a wait.
 * */
PD_INLINE void record_deciding(struct punctual_domain *c, __u64 took)
{
	if (took > c->deciding)
		c->deciding = pd_min(took, DECIDING_MOST);
	else
		c->deciding -= (c->deciding - took) >> 6;
}

/*
 * Accounts what the task's thread has executed so far, to be charged.
 *
 * Pairs with itself on another CPU (ops.stopping there, under the run queue's lock; the timer's
 * callback here): each exchange adds the difference to the one before it, so that the sum is right
 * in any order. One that counted by a `clock` that is out of date charges too much or too little;
 * the next call corrects that, or, if the thread was requeued meanwhile, there is an error of that
 * interval's length.
 */
PD_INLINE void domain_account(__u32 domain, __u32 task, __u64 executed)
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 before = __sync_lock_test_and_set(&c->charged, executed);

	__sync_fetch_and_add(&TASK_OF(domain, task)->uncharged, (__s64)(executed - before));
}

/* Where there is neither a job nor a reservation to charge, it is kept for the next job. */
PD_INLINE void domain_charge(__u32 domain, __u32 task, pd_u64 now)
{
	__s64 ran = (__s64)__sync_lock_test_and_set(&TASK_OF(domain, task)->uncharged, 0);
	pd_ref d = PD_AT(domain);
	__u32 job = PD_TASK(d, task)->first_job;

	if (ran > 0 && (PD_TASK(d, task)->reservation != PD_NONE ||
			(job != PD_NONE && PD_JOB(d, job)->state != PD_WAITING))) {
		DOMAIN(domain)->of_jobs += ran;
		pd_charge_task(d, task, ran, now);
	} else if (ran) {
		__sync_fetch_and_add(&TASK_OF(domain, task)->uncharged, ran);
	}
}

PD_FN int domain_background(pd_u32 domain, pd_u32 task, pd_u32 on)
{
	struct punctual_domain *c = DOMAIN(domain);
	struct punctual_task *t = TASK_OF(domain, task);

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

PD_FN int domain_signal(pd_u32 domain, pd_u32 task)
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
		failed = bpf_send_signal_task(p, SIGXCPU, PIDTYPE_TGID, 0);
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
PD_FN int domain_gone(pd_u32 domain, pd_u32 task)
{
	struct punctual_task *t = TASK_OF(domain, task);

	t->generation++;
	t->members = 0;
	t->done = 0;
	t->signal = 0;
	t->uncharged = 0;
	if (t->runnable)
		domain_background(domain, task, 1);
	return 0;
}

/* Applies the present state of a task that has a note. */
PD_INLINE void domain_update_task(__u32 domain, __u32 task, pd_u64 now)
{
	struct punctual_task *t = TASK_OF(domain, task);
	pd_ref d = PD_AT(domain);
	__u32 done;

	domain_charge(domain, task, now);
	if (t->signal)
		domain_signal(domain, task);
	done = __sync_lock_test_and_set(&t->done, 0);
	pd_while (done) {
		/* A task that waits does not continue in the background. */
		if (pd_task_done(d, task, now) == PD_WAIT_RELEASE)
			domain_background(domain, task, 0);
		done--;
	}
	if (__sync_lock_test_and_set(&t->gone, 0)) {
		pd_task_gone(d, task, now);
		domain_gone(domain, task);
	} else if (t->runnable) {
		pd_task_ready(d, task, now);
	} else {
		pd_task_blocked(d, task, now);
	}
}

/* First part of a decision: charges what was executed, and applies the notes. `clock` is the
 * scheduler's clock at `now`. On the domain's CPU, in one of the states above. */
PD_FN int domain_update(pd_u32 domain, pd_u64 now, pd_u64 clock)
{
	struct punctual_domain *c = DOMAIN(domain);
	struct punctual_notes *n = &notes[IN_DOMAINS(domain)];
	/* Once: ops.stopping on another CPU may write PD_NONE here at any time. If it does after
	 * this, it has charged or will charge what the thread executed until then itself
	 * (domain_account), to the same task. */
	__u32 task = READ_ONCE(c->task);
	__u32 tail = __sync_lock_test_and_set(&c->tail, PD_NONE);
	__u64 words;

	c->taken = clock;
	/* One that another CPU leaves after this exchange is charged at the next decision. */
	if (tail != PD_NONE)
		domain_charge(domain, tail, now);
	if (task != PD_NONE && c->by_job) {
		domain_account(domain, task, c->base + (c->taken - c->clock));
		domain_charge(domain, task, now);
	}
	if (!n->words)
		return 0;
	words = __sync_lock_test_and_set(&n->words, 0);
	pd_while (words) {
		__u32 word = ffs64(words) % TASK_WORDS;
		__u64 bits = __sync_lock_test_and_set(&n->tasks[word], 0);

		words &= words - 1;
		pd_while (bits) {
			domain_update_task(domain, word * 64 + ffs64(bits), now);
			bits &= bits - 1;
		}
	}
	return 0;
}

/* Overruns: signals and the background. Read from the records, which are there even when the ring
 * of events is full. */
PD_FN int domain_handle_overruns(pd_u32 domain)
{
	struct punctual_domain *c = DOMAIN(domain);
	pd_ref d = PD_AT(domain);

	pd_while (c->overrun_pos < PD(d)->record_count) {
		pd_record_p r = PD_RECORD(d, c->overrun_pos & PD(d)->record_mask);
		__u32 task = r->small;
		__u32 kind = r->kind;

		c->overrun_pos++;
		if (kind == PD_REC_EVENT + PD_EV_OVERRUN) {
			domain_signal(domain, task);
		} else if (kind == PD_REC_EVENT + PD_EV_BACKGROUND && task < PUNCTUAL_TASKS) {
			domain_background(domain, task, 1);
		} else if (kind == PD_REC_EVENT + PD_EV_RELEASED && task < PUNCTUAL_TASKS) {
			domain_background(domain, task, 0);
		}
	}
	return 0;
}

/* Whether an allocator's thread runs before the jobs. Called on any CPU, without a lock: with a
 * window that is out of date a thread is once put into the wrong one of two queues, both of which
 * are served. */
PD_INLINE bool domain_allocates(__u32 domain)
{
	struct punctual_domain *c = DOMAIN(domain);

	return c->of_allocators < ALLOCATOR_SHARE ||
	       bpf_ktime_get_ns() - c->allocators_window >= ALLOCATOR_WINDOW;
}

/* Whether a best-effort task runs or is queued. Called on the domain's CPU. */
PD_INLINE bool domain_fair_queued(__u32 domain)
{
	return DOMAIN(domain)->fair_runs || fair_nr_queued(domain_cpu(domain));
}

PD_INLINE void domain_cap(__u32 domain, pd_u64 now)
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
PD_FN int domain_bad_choice(pd_u32 domain)
{
	scheduler_error("domain %llu selected a job without a task", domain);
	return 0;
}

/* Second part of a decision: what is due, and what is to run. In the states of domain_update. */
PD_FN int domain_select(pd_u32 domain, pd_u64 now)
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

		c->choice = j->attr.task;
		if (c->choice >= PUNCTUAL_TASKS)
			domain_bad_choice(domain);
		c->allowance = j->marks == PD_PLAIN ? j->attr.budget : pd_job_allowance(d, job);
	}
	domain_cap(domain, now);
	c->fresh = 1;
	if (c->handles_overruns)
		domain_handle_overruns(domain);
	if (c->asks_policies && c->event_pos != PD(d)->event_head) {
		c->event_pos = PD(d)->event_head;
		doorbell_ring(domain);
	}
	return 0;
}

/* Whether another thread than the running one is to run. On the domain's CPU, without the run
 * queue's lock. */
PD_INLINE bool domain_differs(__u32 domain, pd_u64 now)
{
	struct punctual_domain *c = DOMAIN(domain);
	__u32 task = c->throttled ? PD_NONE : c->choice;
	/* If another CPU changes it after this, the answer is out of date: the requeued thread's
	 * ops.running there kicks this CPU, and ops.dispatch compares again under the run queue's
	 * lock. */
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
PD_FN int domain_set_next_event(pd_u32 domain, pd_u64 from)
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 ends = PD_INFINITE;

	c->next_event = c->turn_end <= c->decided_for ? c->next : pd_min(c->next, c->turn_end);
	c->end = 0;
	if (c->choice == PD_NONE || c->throttled)
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

#endif
