/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * A domain's timer: absolute, armed again and never cancelled, on the domain's own CPU.
 *
 *         timer armed      expires             decided    next_event
 *   ──────────┼────────────────┼──────────────────┼────────┼──────────> time
 *             └─ takes `early` ┴ takes `deciding` ┴─ wait ─┘ return: the kernel switches
 *
 * The callback decides before next_event, for next_event: it selects, requests the switch and
 * arms the timer again. Then it waits until next_event, since no start fires early. The switch
 * follows its return. No other code of the domain runs on the CPU meanwhile, and a note of an
 * interrupt or another CPU makes ops.dispatch decide again, so the decision holds.
 *
 * The timer is armed early by the least latency of the recent expiries (RTAI's calibrated
 * latency) and by the duration of a decision. The end of a budget is known only when its job
 * begins to run (`running`); but the callback that selected the job may use the recent duration
 * of a switch, and then the timer need not be armed a second time. It fires early by what the
 * switch from a job takes, and the job is charged up to its stop: the kernel counts execution
 * until the schedule() that follows the callback. What it counts beyond that is charged at the
 * next decision.
 */
#pragma once

/* ns: a longer latency has another cause than the timer. */
#define EARLY_MOST 4000ULL
/* ns. A timer that expires so much too early is left as it is: the wait costs less than arming. */
#define TIMER_SLACK 2000ULL
/* ns. The same for the end of an allocator's budget, which the callback has armed before it ran. */
#define ALLOCATOR_SLACK 20000ULL
/* ns between two expiries. */
#define TIMER_LEAST 1000ULL
/* ns. The callback waits for an event so near: to return and expire again takes longer. */
#define TIMER_NEAR 4000ULL
/* Decisions of one callback. */
#define TIMER_DECISIONS 4
#define WAIT_MOST (EARLY_MOST + DECIDING_MOST + TIMER_SLACK)
/* ns. When every attempt to arm the timer has failed for so long, the scheduler ends. */
#define UNARMED_MOST 1000000000ULL

struct domain_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PD_DOMAINS);
	__type(key, __u32);
	__type(value, struct domain_timer);
} timers SEC(".maps");

/* Returns 0 or a negative error. From 7.x on that may be -ENOMEM: arming under the run queue's
 * lock is deferred through an allocation. */
PD_INLINE int timer_start(__u32 domain, __u64 at) __on_domain
{
	__u32 key = IN_DOMAINS(domain);
	struct domain_timer *t = bpf_map_lookup_elem(&timers, &key);

	/* The timer would be pinned to the CPU that arms it. */
	if (on_remote_cpu(domain))
		return -EXDEV;
	if (!t)
		return -ENOMEM;
	if (timer_config.fails_every && ++DOMAIN(domain)->arms % timer_config.fails_every == 0)
		return -ENOMEM;
	return (int)bpf_timer_start(&t->timer, at, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
}

/* The timer is not armed, and there will be no callback. The kick makes ops.dispatch decide and
 * arm the timer again. This repeats until arming succeeds, for UNARMED_MOST at most. */
PD_INLINE void timer_retry(__u32 domain) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 now = bpf_ktime_get_ns();
	__s32 cpu = domain_cpu(domain);

	c->expires = 0;
	c->arm_failures++;
	if (!c->unarmed)
		c->unarmed = now;
	if (now - c->unarmed > UNARMED_MOST)
		end_scheduler(PUNCTUAL_EXIT_UNARMED, cpu, "the timer of CPU %llu cannot be armed");
	else
		kick(cpu);
}

/* Arms the timer for the next event. An earlier expiry that is still pending is harmless: the
 * callback finds nothing due, and arms the timer again. */
PD_FN int timer_arm(pd_u32 domain) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 at = c->next_event - c->early - c->deciding;
	__u64 slack = c->by_allocator ? ALLOCATOR_SLACK : TIMER_SLACK;

	if (timer_config.by_thread) {
		timer_process_arm(domain);
		return 0;
	}
	if (c->next_event == PD_INFINITE ||
	    (c->expires && c->expires <= at && at - c->expires <= slack))
		return 0;
	c->expires = at;
	if (timer_start(domain, at))
		timer_retry(domain);
	else
		c->unarmed = 0;
	return 0;
}

/* Busy-waits until `at`, and until `end` on the scheduler's clock, which counts budgets. Returns
 * the time. */
PD_FN pd_u64 timer_wait(pd_u64 at, pd_u64 end) __softirq
{
	__u64 now = bpf_ktime_get_ns();
	__u64 limit = now + WAIT_MOST;

	pd_while (now < at && now < limit)
		now = bpf_ktime_get_ns();
	pd_while (scx_bpf_now() < end && now < limit)
		now = bpf_ktime_get_ns();
	return now;
}

/* Decides at `now` for `decided_for`, which may be later. */
PD_INLINE void timer_decide(__u32 domain, __u64 now) __softirq
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 at = c->decided_for;
	__u64 clock = scx_bpf_now();
	__u64 taken = clock + (at - now);
	bool goes_on;

	if (taken < c->end)
		taken = c->end;
	c->offset = (__s64)(now - clock);
	/* At the end of a budget, up to the stop. */
	domain_update(domain, at, c->end ? taken + c->stopping : taken);
	domain_select(domain, at, 1);
	goes_on = !domain_differs(domain, at);
	c->decided = goes_on ? 0 : taken;
	/* The switch follows the return of the callback. */
	if (!goes_on)
		kick(domain_cpu(domain));
	domain_set_next_event(domain, goes_on ? c->taken : taken + c->switching);
}

PD_INLINE void timer_expired(__u32 domain) __softirq
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 now = bpf_ktime_get_ns();

	if (c->expires && now > c->expires)
		c->early = pd_min(recent_least(c->early, now - c->expires), EARLY_MOST);
	c->expires = 0;
	if (c->next_event > now + WAIT_MOST) {
		timer_arm(domain);
		return;
	}
	/* The loop's state is in memory, where the verifier does not track it. */
	c->decisions_left = TIMER_DECISIONS;
	c->decided_for = 0;
	c->wait_end = 0;
	do {
		now = timer_wait(c->decided_for, c->wait_end);
		c->wait_end = c->end;
		c->decided_for = now < c->next_event ? c->next_event : now;
		timer_decide(domain, now);
		c->decisions_left--;
		PD_BARRIER();
	} while (!c->decided && c->decisions_left &&
		 c->next_event < c->decided_for + TIMER_NEAR && pd_can_loop);
	/* Or the CPU would do nothing but expiries. */
	if (c->next_event < c->decided_for + TIMER_LEAST)
		c->next_event = c->decided_for + TIMER_LEAST;
	/* For an allocator that runs next: armed in ops.running, under the run queue's lock, it
	 * costs more. */
	if (notes[IN_DOMAINS(domain)].allocators)
		c->next_event = pd_min(c->next_event, now + domain_allocator_left(c, now));
	timer_arm(domain);
	record_deciding(c, bpf_ktime_get_ns() - now);
	timer_wait(c->decided_for, c->wait_end);
}

/* Interrupts stay on: a timer that is armed with interrupts off is armed through an interrupt
 * (7.3). In this soft interrupt the CPU runs no other code of the domain than callbacks that
 * leave notes. */
static int timer_callback(void *map, __u32 *key, struct domain_timer *t) __softirq
{
	struct punctual_notes *n = &notes[IN_DOMAINS(*key)];
	struct punctual_domain *c = DOMAIN(*key);

	/* Without this check the records would include releases after the end of the run. */
	if (READ_ONCE(has_ended))
		return 0;
	c->decided = 0;
	WRITE_ONCE(n->deciding, 1);
	timer_expired(*key);
	WRITE_ONCE(n->deciding, 0);
	/* One that woke after the decision. */
	if (READ_ONCE(n->allocators) && !c->decided)
		kick(domain_cpu(*key));
	return 0;
}

/* bpf_timer_init allocates. */
PD_INLINE int timer_create(__u32 domain) __may_sleep
{
	__u32 key = IN_DOMAINS(domain);
	struct domain_timer *t;
	int failed;

	if (timer_config.by_thread)
		return 0;
	t = bpf_map_lookup_elem(&timers, &key);
	if (!t)
		return -EINVAL;
	failed = (int)bpf_timer_init(&t->timer, &timers, CLOCK_MONOTONIC);
	return failed ? failed : (int)bpf_timer_set_callback(&t->timer, timer_callback);
}
