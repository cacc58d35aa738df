/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The alarm where the verifier refuses bpf_timer (PREEMPT_RT): a process per domain, SCHED_FIFO 99 on the domain's CPU
 * (src/alarm_thread.rs), that sleeps to the time which this program named last.
 *
 *      sleeps to         on the CPU            decided                 c->next
 *   ──────┼──────────────────┼────────────────────┼───────────────────────┼──────────> time
 *         └─ takes `lead` ───┴─ takes `deciding` ─┴─ wait, interrupts on ─┘ sleeps: dispatch
 *
 *   decides, sleeps: dispatch        job begins                  sleeps to     job stopped, within its granularity
 *   ────────┼────────────────────────────┼───────────────────────────┼──────────────┼────> time
 *           └─────── takes `start` ──────┘        its allowance      └─ takes `stop`─┘
 *
 * Its waking is what takes a job off the CPU, and its sleeping what has the kernel ask ops.dispatch: no kick is needed.
 * Nothing is late that can be known beforehand: it wakes early by the recent duration of a wake-up and a decision, decides
 * for the release and waits until it (alarm.h). For the end of a budget it goes by the least that the switches to and from
 * a thread lately took; the dispatcher carries the rest. Every switch counts, so both are known before the first release.
 * What cannot be known, that somebody else begins to run and will end earlier, is told it by a signal, unless it gains
 * less than the signal costs.
 *
 * All of this is called on the domain's CPU, where nobody else runs while the process does.
 */
#ifndef PUNCTUAL_ALARM_THREAD_H
#define PUNCTUAL_ALARM_THREAD_H

/* Set before load (src/probe.rs). */
const volatile struct {
	__u32 by_thread;
	__u32 fails_every; /* for tests: so many-th time the timer cannot be armed; 0: never */
	__u32 remote_every; /* for tests: so many-th ops.dispatch counts as called on a remote CPU; 0: never */
} alarm_config SEC(".rodata.alarm") = {};

/* SIGUSR1, which it handles by doing nothing. */
#define ALARM_SIGNAL 10
/* ns. The process waits at most so long for what is due, awake. */
#define THREAD_WAIT 20000ULL
/* What a wake-up or a switch takes at most; more is something else's doing. */
#define THREAD_TAKES_MOST 15000ULL
/* So much of a difference is taken in at once. */
#define THREAD_STEP 1000ULL
/* By signal it comes so much earlier at least, or it is not sent: a signal goes by way of a kernel thread. For the end of
 * a turn it is sent only if that would be late by two more. */
#define THREAD_GAIN 8000ULL
/* It is not slept for so short a time. */
#define THREAD_NAP 5000ULL
#define THREAD_TURNS 4U
#define THREAD_AHEAD_MOST 16U
/* It comes once in a while in any case, and whoever sees that it is so late ends the scheduler. */
#define THREAD_REST 1000000000ULL
#define THREAD_LATE 100000000ULL
/* So much execution of the process in a window ends it too: nobody real-time is to eat a CPU. One turn takes THREAD_TURN at
 * most; more is something else's doing, as of a hypervisor that had the CPU meanwhile. */
#define THREAD_TURN 200000ULL
#define THREAD_WINDOW 100000000ULL
#define THREAD_SHARE (THREAD_WINDOW / 2)

/* Not static, as the others. */
struct punctual_alarm_thread {
	__u32 pid;
	__u32 told;   /* by a signal, to come before its time */
	__u64 back;   /* when it comes by itself, CLOCK_MONOTONIC; 0: it was not there yet */
	__u64 lead;   /* from that time to its program */
	__u64 start; /* from a decision to the beginning of the chosen thread */
	__u64 stop;   /* from that time until the job which it interrupts has stopped */
	__u64 refused; /* the scheduler's clock when the one began for whom the signal was refused; 0: it was not */
	__u64 decided; /* when it decided last, scheduler's clock; 0: somebody began since */
	__u64 window;
	__u64 executed; /* by the process until now */
	__u64 of_window; /* and in this window */
	__u32 choice; /* the last one */
	__u32 ahead;  /* so often in a row it came before the chosen one had begun */
} alarm_threads[PD_DOMAINS];

#define ALARM_THREAD(domain) (&alarm_threads[IN_DOMAINS(domain)])

PD_INLINE void alarm_thread_missed(__u32 domain)
{
	__u32 cpu = (__u32)domain_cpu(domain);

	end_scheduler(PUNCTUAL_EXIT_ALARM_GONE | cpu, "the alarm process of CPU %llu was ended or stopped", cpu);
}

/* From ops.exit_task. */
PD_INLINE void alarm_thread_gone(struct task_struct *p)
{
	__u32 domain = 0;

	if (!alarm_config.by_thread || !(p->flags & PF_EXITING))
		return;
	pd_while (domain < PD_DOMAINS) {
		if (ALARM_THREAD(domain)->pid == (__u32)p->pid)
			alarm_thread_missed(domain);
		domain++;
	}
}

/* From ops.dispatch: whether it is still there. */
PD_INLINE void alarm_thread_look(__u32 domain, __u64 now)
{
	__u64 back = ALARM_THREAD(domain)->back;

	if (alarm_config.by_thread && back && now > back + THREAD_LATE)
		alarm_thread_missed(domain);
}

/* From ops.running, of any thread: what the switch from the process took. */
PD_INLINE void alarm_thread_began(__u32 domain)
{
	struct punctual_alarm_thread *t = ALARM_THREAD(domain);
	__u64 took = DOMAIN(domain)->clock - t->decided;

	if (!alarm_config.by_thread)
		return;
	if (t->decided && took < THREAD_TAKES_MOST)
		t->start = lately(t->start, took);
	t->decided = 0;
}

/* Has it come in time for what is due (alarm_set). */
PD_INLINE void alarm_thread_set(__u32 domain)
{
	struct punctual_alarm_thread *t = ALARM_THREAD(domain);
	struct punctual_domain *c = DOMAIN(domain);
	__u64 early = c->end ? t->stop : t->lead + c->deciding;
	__u64 gain = c->due == c->turn_end ? 2 * TURN : THREAD_GAIN;
	struct task_struct *p;

	if (t->told || c->due == PD_INFINITE || c->due - early + gain >= t->back)
		return;
	p = bpf_task_from_pid((__s32)t->pid);
	if (!p)
		return;
	if (!bpf_send_signal_task(p, ALARM_SIGNAL, PIDTYPE_PID, 0)) {
		t->told = 1;
		t->back = pd_min(t->back, bpf_ktime_get_ns());
	} else if (t->refused != c->clock) {
		/* Refused on behalf of a thread without memory: ops.running is called while the kernel still takes the one before
		 * for the current one, which may be the idle thread, a kernel's, or one that ended. In the dispatch that
		 * the kick brings it is the job. Once for each beginning: a refusal for another cause would have it kicked for ever. */
		t->refused = c->clock;
		kick(domain_cpu(domain));
	}
	bpf_task_release(p);
}

/* It is on the CPU, and took a job or somebody else off it. */
PD_INLINE void alarm_thread_came(__u32 domain, __u64 now)
{
	struct punctual_alarm_thread *t = ALARM_THREAD(domain);
	struct punctual_domain *c = DOMAIN(domain);

	if (t->back && !t->told && now >= t->back) {
		__u64 took = pd_min(now - t->back, THREAD_TAKES_MOST);

		/* To come too late is worse than to wait. */
		if (took > t->lead)
			t->lead = t->lead ? pd_min(took, t->lead + THREAD_STEP) : took;
		else
			t->lead -= (t->lead - took) >> 5;
		/* An interrupt's other work may have made it longer. */
		took = c->stopped + c->offset - t->back;
		if (took < THREAD_TAKES_MOST)
			t->stop = lately(t->stop, took);
	}
	t->ahead = t->decided && t->choice != PD_NONE ? pd_min(t->ahead + 1, THREAD_AHEAD_MOST) : 0;
	t->told = 0;
	t->back = 0;
	t->decided = 0;
}

/* Whether it was too much that it executed of late. */
PD_INLINE bool alarm_thread_storms(struct punctual_alarm_thread *t, __u64 now)
{
	struct task_struct *p = bpf_get_current_task_btf();
	__u64 took = p->se.sum_exec_runtime - t->executed;

	t->executed += took;
	if (now - t->window > THREAD_WINDOW) {
		t->window = now;
		t->of_window = 0;
		return false;
	}
	t->of_window += pd_min(took, THREAD_TURN);
	return t->of_window > THREAD_SHARE;
}

/* When it is to come again: for what happens by itself, for the end of the chosen job if that begins to run now, or of
 * a turn. */
PD_FN pd_u64 alarm_thread_next(pd_u32 domain, pd_u64 now)
{
	struct punctual_alarm_thread *t = ALARM_THREAD(domain);
	struct punctual_domain *c = DOMAIN(domain);
	__u64 next = pd_min(c->next, now + THREAD_REST) - t->lead - c->deciding;
	__u64 begins = now + t->start;
	bool turns = notes[IN_DOMAINS(domain)].allocators;

	if (c->choice != PD_NONE && !c->capped) {
		struct punctual_task *task = TASK_OF(domain, c->choice);
		__u64 ends = begins + pd_min(c->allowance, THREAD_REST) - task->uncharged - t->stop;

		/* It is to have begun, at least: who would wake before he sleeps goes on, and before all others. */
		__u64 least = begins + t->ahead * THREAD_NAP;

		next = pd_min(next, (__s64)(ends - least) > 0 ? ends : least);
		turns |= task->runnable > 1;
	}
	return turns ? pd_min(next, begins + TURN) : next;
}

/* Decides for c->next if that is near, else for now; then waits until that time. Returns when the
 * process has to run again. */
PD_INLINE __u64 alarm_thread_decide(__u32 domain)
{
	struct punctual_alarm_thread *t = ALARM_THREAD(domain);
	struct punctual_domain *c = DOMAIN(domain);
	unsigned long irq;
	__u64 now, at, ready, clock;

	bpf_local_irq_save(&irq);
	now = bpf_ktime_get_ns();
	clock = scx_bpf_now();
	at = c->next > now && c->next <= now + THREAD_WAIT ? c->next : now;
	c->offset = (__s64)(now - clock);
	domain_take_in(domain, at, clock + (at - now));
	domain_choose(domain, at);
	c->decided = 0;
	domain_set_due(domain, c->taken);
	/* The switch takes as long after a wait as without one. */
	ready = bpf_ktime_get_ns();
	if (ready < at)
		ready = at;
	t->decided = ready - c->offset;
	t->choice = c->choice;
	t->back = alarm_thread_next(domain, ready);
	bpf_local_irq_restore(&irq);
	record_deciding(c, bpf_ktime_get_ns() - now);
	pd_while (at > bpf_ktime_get_ns()) {
	}
	return t->back;
}

/* Returns 0, or a refusal with which the process ends. */
PD_INLINE pd_i64 alarm_thread_turn(struct punctual_order *order)
{
	struct punctual_domain *c = DOMAIN(order->domain);
	struct punctual_alarm_thread *t = ALARM_THREAD(order->domain);
	__u32 domain = order->domain, turns = THREAD_TURNS, zero = 0;
	struct punctual_exit *over = bpf_map_lookup_elem(&exit_info, &zero);
	__u64 now, again;

	if (domain >= PD_DOMAINS || !over || over->kind)
		return -ENOENT;
	if (domain_on((__s32)bpf_get_smp_processor_id()) != domain)
		return -EXDEV;
	t->pid = (__u32)bpf_get_current_pid_tgid();
	now = bpf_ktime_get_ns();
	alarm_thread_came(domain, now);
	if (alarm_thread_storms(t, now)) {
		end_scheduler(PUNCTUAL_EXIT_ALARM_STORM | (__u32)domain_cpu(domain),
			      "the alarm process of CPU %llu was woken too often", (__u32)domain_cpu(domain));
		return -EBUSY;
	}
	do {
		order->time = alarm_thread_decide(domain);
		turns--;
		again = bpf_ktime_get_ns() + t->lead + c->deciding + THREAD_NAP;
	} while (turns && c->next < again && pd_can_loop);
	return 0;
}

#endif
