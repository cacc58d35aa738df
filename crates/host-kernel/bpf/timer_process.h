/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The timer where the verifier refuses bpf_timer (PREEMPT_RT): a process per domain, SCHED_FIFO
 * 99 on the domain's CPU (src/timer_process.rs), that sleeps until the time which this program
 * returned last.
 *
 *      sleeps to         on the CPU            decided                 c->next
 *   ──────┼──────────────────┼────────────────────┼───────────────────────┼──────────> time
 *         └─ takes `lead` ───┴─ takes `deciding` ─┴─ wait, interrupts on ─┘ sleeps: dispatch
 *
 *   decides, sleeps: dispatch        job begins                  sleeps to     job stopped
 *   ────────┼────────────────────────────┼───────────────────────────┼──────────────┼────> time
 *           └─────── takes `start` ──────┘        its allowance      └─ takes `stop`─┘
 *
 * Its wake-up preempts the job, and when it sleeps the kernel calls ops.dispatch: no kick is
 * needed. It wakes early by the recent duration of a wake-up and a decision, decides for the
 * release and waits until it (timer.h). For the end of a budget it uses the least recent
 * durations of the switches to and from a thread; the enforcement error carries the rest. Every
 * switch is measured, so both are known before the first release. When another thread begins to
 * run and its allowance ends earlier, a signal wakes the process, unless that gains less than the
 * signal costs.
 */
#pragma once

/* SIGUSR1; its handler does nothing. */
#define TIMER_SIGNAL 10
/* ns. The process busy-waits for the next event at most so long. */
#define PROCESS_WAIT 20000ULL
/* ns. A longer wake-up or switch has another cause. */
#define PROCESS_TAKES_MOST 15000ULL
/* ns by which `lead` grows at once. */
#define PROCESS_STEP 1000ULL
/* ns. A signal that gains less is not sent: it goes through a kernel thread. For the end of a
 * turn it is sent only if that would be late by two more turns. */
#define PROCESS_GAIN 8000ULL
/* ns. The process does not sleep for so short a time. */
#define PROCESS_NAP 5000ULL
#define PROCESS_DECISIONS 4U
/* PROCESS_NAP doubled so often is a turn or more. */
#define PROCESS_AHEAD_MOST 8U
/* ns. The process wakes so often in any case; a callback that finds it so late ends the
 * scheduler. */
#define PROCESS_REST 1000000000ULL
#define PROCESS_LATE 100000000ULL
/* ns. So much execution of the process in a window ends the scheduler too: a real-time process
 * must not occupy the CPU. One turn takes PROCESS_TURN at most; more has another cause, such as a
 * hypervisor. */
#define PROCESS_TURN 200000ULL
#define PROCESS_WINDOW 100000000ULL
#define PROCESS_SHARE (PROCESS_WINDOW / 2)

/* Written on the domain's CPU; and by timer_process_switched on a remote one, where a measurement
 * that is lost or taken twice changes a prediction by some microseconds. */
struct punctual_timer_process {
	__u32 pid;
	__u32 signalled; /* and has not woken since */
	__u64 wakes; /* when it wakes by itself, CLOCK_MONOTONIC; 0: it is awake */
	__u64 lead;  /* ns from that time to its program */
	__u64 start; /* ns from a decision to the beginning of the selected thread */
	__u64 stop;  /* ns from `wakes` until the job that it preempts has stopped */
	__u64 refused; /* `clock` of the thread for which the signal was refused; 0: it was not */
	__u64 decided; /* when it decided last, scheduler's clock; 0: a thread began since */
	__u64 window;
	__u64 executed; /* by the process until now */
	__u64 of_window; /* and in this window */
	__u32 choice; /* the last one */
	__u32 ahead; /* times in a row that it woke before the selected thread had begun */
} timer_processes[PD_DOMAINS];

#define TIMER_PROCESS(domain) (&timer_processes[IN_DOMAINS(domain)])

PD_INLINE void timer_process_lost(__u32 domain) __any_state
{
	end_scheduler(PUNCTUAL_EXIT_TIMER_GONE, domain_cpu(domain),
		      "the timer process of CPU %llu was ended or stopped");
}

/* From ops.exit_task, on any CPU: the process's number does not change once it is set. */
PD_INLINE void timer_process_exited(struct task_struct *p) __rq_locked
{
	__u32 domain = 0;

	if (!timer_config.by_thread || !(p->flags & PF_EXITING))
		return;
	pd_while (domain < PD_DOMAINS) {
		if (TIMER_PROCESS(domain)->pid == (__u32)p->pid)
			timer_process_lost(domain);
		domain++;
	}
}

/* From ops.dispatch: ends the scheduler if the process does not wake any more. */
PD_INLINE void timer_process_check(__u32 domain, __u64 now) __rq_locked
{
	__u64 wakes = TIMER_PROCESS(domain)->wakes;

	if (timer_config.by_thread && wakes && now > wakes + PROCESS_LATE)
		timer_process_lost(domain);
}

/* From ops.running, of any thread: what the switch from the process took. */
PD_INLINE void timer_process_switched(__u32 domain) __rq_locked
{
	struct punctual_timer_process *t = TIMER_PROCESS(domain);
	__u64 took = DOMAIN(domain)->clock - t->decided;

	if (!timer_config.by_thread)
		return;
	if (t->decided && took < PROCESS_TAKES_MOST)
		t->start = recent_least(t->start, took);
	t->decided = 0;
}

/* Wakes it in time for the next event (timer_arm). */
PD_INLINE void timer_process_arm(__u32 domain) __on_domain
{
	struct punctual_timer_process *t = TIMER_PROCESS(domain);
	struct punctual_domain *c = DOMAIN(domain);
	__u64 early = c->end ? t->stop : t->lead + c->deciding;
	__u64 gain = c->next_event == c->turn_end ? 2 * TURN : PROCESS_GAIN;
	struct task_struct *p;

	if (t->signalled || c->next_event == PD_INFINITE ||
	    c->next_event - early + gain >= t->wakes)
		return;
	p = bpf_task_from_pid((__s32)t->pid);
	if (!p)
		return;
	if (!send_signal(domain, p, TIMER_SIGNAL, PIDTYPE_PID)) {
		t->signalled = 1;
		t->wakes = pd_min(t->wakes, bpf_ktime_get_ns());
	} else if (t->refused != c->clock) {
		/* Refused because `current` has no memory: in ops.running that is still the
		 * previous thread, which may be the idle thread, a kernel thread or an exiting
		 * one. In the dispatch after the kick it is the job. Once for each beginning: a
		 * refusal for another cause would repeat for ever. */
		t->refused = c->clock;
		kick(domain_cpu(domain));
	}
	bpf_task_release(p);
}

/* It runs, and has preempted a thread. */
PD_INLINE void timer_process_woke(__u32 domain, __u64 now) __in_process
{
	struct punctual_timer_process *t = TIMER_PROCESS(domain);
	struct punctual_domain *c = DOMAIN(domain);

	if (t->wakes && !t->signalled && now >= t->wakes) {
		__u64 took = pd_min(now - t->wakes, PROCESS_TAKES_MOST);

		/* Rises at once, falls slowly: a late wake-up costs more than a wait. */
		if (took > t->lead)
			t->lead = t->lead ? pd_min(took, t->lead + PROCESS_STEP) : took;
		else
			t->lead -= (t->lead - took) >> 5;
		/* An interrupt's other work may have made it longer. */
		took = c->stopped + c->offset - t->wakes;
		if (took < PROCESS_TAKES_MOST)
			t->stop = recent_least(t->stop, took);
	}
	if (t->decided && t->choice != PD_NONE)
		t->ahead = pd_min(t->ahead + 1, PROCESS_AHEAD_MOST);
	else
		t->ahead = 0;
	t->signalled = 0;
	t->wakes = 0;
	t->decided = 0;
}

/* Whether it executed too much in this window. */
PD_INLINE bool timer_process_exceeds(struct punctual_timer_process *t, __u64 now) __in_process
{
	struct task_struct *p = bpf_get_current_task_btf();
	__u64 took = p->se.sum_exec_runtime - t->executed;

	t->executed += took;
	if (now - t->window > PROCESS_WINDOW) {
		t->window = now;
		t->of_window = 0;
		return false;
	}
	t->of_window += pd_min(took, PROCESS_TURN);
	return t->of_window > PROCESS_SHARE;
}

/* When it has to wake: for the dispatcher's next event, for the end of the selected job if that
 * begins to run now, or for that of a turn. */
PD_FN pd_u64 timer_process_next(pd_u32 domain, pd_u64 now) __irqs_off
{
	struct punctual_timer_process *t = TIMER_PROCESS(domain);
	struct punctual_domain *c = DOMAIN(domain);
	__u64 next = pd_min(c->next, now + PROCESS_REST) - t->lead - c->deciding;
	__u64 begins = now + t->start;
	bool turns = notes[IN_DOMAINS(domain)].allocators;

	if (domain_selected(c) != PD_NONE) {
		struct punctual_task *task = TASK_OF(domain, c->choice);
		__u64 ends = begins + pd_min(c->allowance, PROCESS_REST) - task->uncharged -
			     t->stop;

		/* The job has to begin first: a process that need not sleep continues, before all
		 * other tasks. Where the job does not begin (behind a SCHED_FIFO program), the
		 * sleep doubles up to a turn; a job that begins meanwhile signals the process. */
		__u64 least = begins + pd_min((PROCESS_NAP << t->ahead) - PROCESS_NAP, TURN);

		next = pd_min(next, (__s64)(ends - least) > 0 ? ends : least);
		turns |= task->runnable > 1;
	}
	/* A job that an allocator answers with needs no signal then. */
	if (c->answered > now)
		next = pd_min(next, c->answered);
	return turns ? pd_min(next, begins + TURN) : next;
}

/* Decides for c->next if that is near, else for now; then waits until that time. Returns when the
 * process has to run again. */
PD_INLINE __u64 timer_process_decide(__u32 domain) __in_process
{
	struct punctual_timer_process *t = TIMER_PROCESS(domain);
	struct punctual_domain *c = DOMAIN(domain);
	unsigned long irq;
	__u64 now, at, ready, clock;

	bpf_local_irq_save(&irq);
	now = bpf_ktime_get_ns();
	clock = scx_bpf_now();
	at = c->next > now && c->next <= now + PROCESS_WAIT ? c->next : now;
	c->offset = (__s64)(now - clock);
	domain_update(domain, at, clock + (at - now));
	domain_select(domain, at, 1);
	c->decided = 0;
	domain_set_next_event(domain, c->taken);
	/* The switch takes as long after a wait as without one. */
	ready = bpf_ktime_get_ns();
	if (ready < at)
		ready = at;
	t->decided = ready - c->offset;
	t->choice = c->choice;
	t->wakes = timer_process_next(domain, ready);
	bpf_local_irq_restore(&irq);
	record_deciding(c, bpf_ktime_get_ns() - now);
	pd_while (at > bpf_ktime_get_ns()) {
	}
	return t->wakes;
}

/* Returns when the process has to run again, or an error, at which it ends. */
PD_INLINE pd_i64 timer_process_run(__u32 domain) __in_process
{
	struct punctual_domain *c = DOMAIN(domain);
	struct punctual_timer_process *t = TIMER_PROCESS(domain);
	__u32 decisions = PROCESS_DECISIONS, zero = 0;
	struct punctual_exit *over = bpf_map_lookup_elem(&exit_info, &zero);
	__u64 now, again, wakes;

	if (!over || over->kind)
		return -ENOENT;
	if (domain_on((__s32)bpf_get_smp_processor_id()) != domain)
		return -EXDEV;
	t->pid = (__u32)bpf_get_current_pid_tgid();
	now = bpf_ktime_get_ns();
	timer_process_woke(domain, now);
	if (timer_process_exceeds(t, now)) {
		end_scheduler(PUNCTUAL_EXIT_TIMER_STORM, domain_cpu(domain),
			      "the timer process of CPU %llu was woken too often");
		return -EBUSY;
	}
	do {
		wakes = timer_process_decide(domain);
		decisions--;
		again = bpf_ktime_get_ns() + t->lead + c->deciding + PROCESS_NAP;
	} while (decisions && c->next < again && pd_can_loop);
	return (pd_i64)wakes;
}
