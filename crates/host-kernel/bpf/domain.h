/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * A domain: a dispatcher and its CPU. The dispatcher is called on that CPU only, and never nested
 * there (__on_domain), so there is no lock.
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
 * and ops.stopping under the run queue's lock, also on a remote CPU that changes an attribute of
 * the running thread. Decisions read it on the domain's CPU, and not all of them hold that lock.
 * A remote CPU may write it meanwhile: each decision reads `task` once, and where it uses a value
 * that is out of date says why that is safe. The decision and what follows is written on the
 * domain's CPU only; other CPUs read it to guess, and their kick makes the dispatcher decide
 * again.
 */
#pragma once

/* Set before load (src/probe.rs). */
const volatile struct {
	__u32 by_thread; /* by a process (timer_process.h) */
	__u32 fails_every; /* for tests: so many-th time the timer cannot be armed; 0: never */
	__u32 remote_every; /* for tests: so many-th ops.dispatch counts as remote; 0: never */
} timer_config SEC(".rodata.timer") = {};

/* ns between readings of the two clocks at one instant; beyond it they drifted apart. */
#define OFFSET_MOST 20000ULL
/* A turn in the background, ns. */
#define BACKGROUND_SLICE 3000000ULL

struct punctual_domain {
	/* What is on the CPU. */
	__u32 task;	    /* whose thread runs from its queue, else PD_NONE */
	__u32 by_job;	    /* by its job; 0: in the background */
	__u32 by_allocator; /* an allocator's thread runs */
	__u32 fair_runs;    /* a best-effort thread runs */
	__u64 clock;	    /* the scheduler's clock from which the kernel counts its execution */
	__u64 base;	    /* its execution time then */
	__u64 charged;	    /* its execution time that was charged */
	__u64 stopped;	    /* the scheduler's clock when the last one had stopped */
	__u64 turn_end;	    /* its turn's end, CLOCK_MONOTONIC; PD_INFINITE for none */
	/* The decision. */
	__u32 choice;	 /* the task to run, PD_NONE for none */
	__u32 fresh;	 /* no ops.dispatch has executed it yet */
	__u32 tail;	 /* a task that executed after its charge, PD_NONE for none */
	__u32 throttled; /* the choice waits for best-effort tasks */
	__u64 allowance; /* what the choice may execute from then on */
	__u64 next;	 /* when something happens by itself but for its end */
	__u64 taken;	 /* the scheduler's clock up to which all is charged */
	/* Notes that are being applied. In memory, where the verifier does not track them: it would
	 * go through the loops for each value. */
	__u64 words, bits;
	__u32 word, done;
	/* The timer. */
	__u32 decisions_left; /* of this callback */
	__u32 arms;	    /* counted for fails_every (timer_process.h) */
	__u32 dispatches;   /* counted for remote_every (timer_process.h) */
	__u64 decided_for;  /* the time of the timer's last decision, CLOCK_MONOTONIC */
	__u64 next_event;   /* when to decide next, CLOCK_MONOTONIC */
	__u64 end;	    /* when to preempt the job, scheduler's clock; 0: not the next event */
	__u64 wait_end;	    /* `end` as of the decision before */
	__u64 expires;	    /* when the timer expires; 0: it has, or could not be armed */
	__u64 unarmed;	    /* since when it cannot be armed, CLOCK_MONOTONIC; 0: it can */
	__u64 arm_failures;
	__u64 early;	 /* its least recent latency, ns */
	__u64 deciding;	 /* duration of a decision, ns: the maximum of the recent ones */
	__u64 switching; /* ns from a decision to the beginning of what it selected */
	__u64 stopping;	 /* ns from a decision until the preempted thread has stopped */
	__u64 decided;	 /* when the timer requested a switch, scheduler's clock; 0: it did not */
	__s64 offset;	 /* CLOCK_MONOTONIC less the scheduler's clock */
	/* Shares: the beginning of a window, and what was executed in it. */
	__u64 window, of_jobs, throttles;
	__u64 allocators_window, of_allocators;
	/* Events. */
	__u64 followed;	       /* records */
	__u64 event_pos;       /* events */
	__u64 answered;	       /* by when allocators have answered them, CLOCK_MONOTONIC */
	__u32 follows_records; /* for the overruns and releases that are acted on here */
	__u32 asks_policies;   /* allocators in user space wait for the doorbell */
	/* Tasks in the background. */
	__u32 backgrounds;
	__u32 background; /* the last one that was served */
	__u64 background_time, fair_time;
	__u64 background_tasks[TASK_WORDS];
	/* Tasks that lend, or wait for locks; and which of these words are not 0 (lock.h). */
	__u64 lender_words;
	__u64 lenders[TASK_WORDS];
	/* The one of them that is looked at: whether it woke, and to which task it lends. */
	__u32 lender, woke, borrower;
} domains[PD_DOMAINS];

#define DOMAIN(domain) (&domains[IN_DOMAINS(domain)])

/* ns. The maximum of `deciding`: an interrupt may have made a decision longer. */
#define DECIDING_MOST 4000ULL

/* The task that is to run, PD_NONE for none or where it waits for best-effort tasks. */
PD_INLINE __u32 domain_selected(struct punctual_domain *c) __any_state
{
	return c->throttled ? PD_NONE : c->choice;
}

/* The least of recent values: a larger one raises it by a 64th of the difference. */
PD_INLINE __u64 recent_least(__u64 least, __u64 recent)
{
	return !least || recent < least ? recent : least + ((recent - least) >> 6);
}

/* The maximum rises at once and decays slowly: a late decision costs more than a wait. */
PD_INLINE void record_deciding(struct punctual_domain *c, __u64 took) __on_domain
{
	if (took > c->deciding)
		c->deciding = pd_min(took, DECIDING_MOST);
	else
		c->deciding -= (c->deciding - took) >> 6;
}
