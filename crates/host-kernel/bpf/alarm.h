/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * When to look again: one absolute timer per domain, re-armed and never cancelled, on the domain's own CPU.
 *
 *         timer set        expires             decided    due
 *   ──────────┼────────────────┼──────────────────┼────────┼──────────> time
 *             └─ takes `early` ┴ takes `deciding` ┴─ wait ─┘ return: the kernel switches
 *
 * The callback decides before the due time, for the due time: it selects, requests the switch and
 * sets the timer again. Then it waits until the due time, since no start fires early. The switch
 * follows its return. No other code of the domain runs on the CPU meanwhile, and a note of an
 * interrupt or another CPU makes ops.dispatch decide again, so the decision holds.
 *
 * The timer is set early by the least latency of the recent expiries (RTAI's calibrated latency)
 * and by the duration of a decision.
 * The end of a budget is known only when its job begins to run (`running`); but the alarm that chose the job may go by
 * how long a switch lately took, and then the timer need not be set a second time.
 * It is due early by what the switch from a job takes, and the job is charged up to its stop: the kernel counts execution
 * until the schedule() that follows the callback. What it counts beyond that is charged at the next decision.
 */
#ifndef PUNCTUAL_ALARM_H
#define PUNCTUAL_ALARM_H

/* ns: more than this is no latency of the timer but of something else. */
#define EARLY_MOST 4000ULL
/* A timer that stands so much too early is left alone: the wait costs less than to set it. */
#define ALARM_SLACK 2000ULL
/* Between two looks. */
#define ALARM_LEAST 1000ULL
/* What is due so soon is waited for at once: going and coming back takes longer. Not more often than so. */
#define ALARM_NEAR 4000ULL
#define ALARM_LOOKS 4
#define WAIT_MOST (EARLY_MOST + DECIDING_MOST + ALARM_SLACK)
/* ns for which the timer may refuse to be armed, attempt after attempt: then the scheduler ends. */
#define UNARMED_MOST 1000000000ULL

struct alarm {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PD_DOMAINS);
	__type(key, __u32);
	__type(value, struct alarm);
} alarms SEC(".maps");

/* Returns 0 or a negative error. From 7.x on that may be one of memory: what is armed under the run queue's lock is deferred. */
PD_INLINE int alarm_start(__u32 domain, __u64 at)
{
	__u32 key = IN_DOMAINS(domain);
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &key);

	/* The timer would be pinned to the CPU that arms it. */
	if (elsewhere(domain))
		return -EXDEV;
	if (!alarm || (alarm_config.fails_every && ++DOMAIN(domain)->arms % alarm_config.fails_every == 0))
		return -ENOMEM;
	return (int)bpf_timer_start(&alarm->timer, at, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
}

/* The timer is not armed, and there will be no callback. The kick makes ops.dispatch decide and arm the timer again. This
 * repeats until arming succeeds, for UNARMED_MOST at most. */
PD_INLINE void alarm_unarmed(__u32 domain)
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 now = bpf_ktime_get_ns();
	__u32 cpu = (__u32)domain_cpu(domain);

	c->armed = 0;
	c->arm_failures++;
	if (!c->unarmed)
		c->unarmed = now;
	if (now - c->unarmed > UNARMED_MOST)
		end_scheduler(PUNCTUAL_EXIT_UNARMED | cpu, "the timer of CPU %llu cannot be armed", cpu);
	else
		kick((__s32)cpu);
}

/* Has it go off for what is due. One that is set for an earlier time finds nothing then, and sets itself anew. */
PD_FN int alarm_set(pd_u32 domain)
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 at = c->due - c->early - c->deciding;

	if (alarm_config.by_thread) {
		alarm_thread_set(domain);
		return 0;
	}
	if (c->due == PD_INFINITE || (c->armed && c->armed <= at && at - c->armed <= ALARM_SLACK))
		return 0;
	c->armed = at;
	if (alarm_start(domain, at))
		alarm_unarmed(domain);
	else
		c->unarmed = 0;
	return 0;
}

/* Busy-waits until `at`, and until `end` on the scheduler's clock, which counts budgets. Returns
 * the time. */
PD_INLINE __u64 alarm_wait(__u64 at, __u64 end)
{
	__u64 now = bpf_ktime_get_ns();
	__u64 limit = now + WAIT_MOST;

	pd_while (now < at && now < limit)
		now = bpf_ktime_get_ns();
	pd_while (scx_bpf_now() < end && now < limit)
		now = bpf_ktime_get_ns();
	return now;
}

/* Decides at `now` for `at`, which may be later. Returns whether the running thread continues. */
PD_INLINE bool alarm_decide(__u32 domain, __u64 now, __u64 at)
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 clock = scx_bpf_now();
	__u64 taken = clock + (at - now);
	bool goes_on;

	if (taken < c->end)
		taken = c->end;
	c->seen = at;
	c->offset = (__s64)(now - clock);
	/* At the end of a budget, up to the stop. */
	domain_take_in(domain, at, c->end ? taken + c->stopping : taken);
	domain_choose(domain, at);
	goes_on = !domain_differs(domain, at);
	c->decided = goes_on ? 0 : taken;
	/* The switch follows the return of the callback: it is in a soft interrupt. */
	if (!goes_on)
		kick(domain_cpu(domain));
	domain_set_due(domain, goes_on ? c->taken : taken + c->switching);
	return goes_on;
}

/* The alarm went off, on the domain's CPU. */
PD_INLINE void alarm_look(__u32 domain)
{
	struct punctual_domain *c = DOMAIN(domain);
	__u64 now = bpf_ktime_get_ns();
	__u64 at = 0, end = 0;
	bool goes_on;

	if (c->armed && now > c->armed)
		c->early = pd_min(lately(c->early, now - c->armed), EARLY_MOST);
	c->armed = 0;
	if (c->due > now + WAIT_MOST) {
		alarm_set(domain);
		return;
	}
	c->looks = ALARM_LOOKS;
	do {
		now = alarm_wait(at, end);
		end = c->end;
		at = now < c->due ? c->due : now;
		goes_on = alarm_decide(domain, now, at);
		c->looks--;
	} while (goes_on && c->looks && c->due < at + ALARM_NEAR && pd_can_loop);
	/* Never so near that there is nothing but alarms. */
	if (c->due < at + ALARM_LEAST)
		c->due = at + ALARM_LEAST;
	alarm_set(domain);
	record_deciding(c, bpf_ktime_get_ns() - now);
	alarm_wait(at, end);
}

/* Not with interrupts off: a timer that is set then is set by way of an interrupt (7.3). In this soft interrupt nothing
 * else of the domain runs on its CPU but notes. */
static int on_alarm(void *map, __u32 *key, struct alarm *alarm)
{
	/* Without this check the records would include releases after the end of the run. */
	if (!READ_ONCE(has_ended))
		alarm_look(*key);
	return 0;
}

/* From a program that may sleep. */
PD_INLINE int alarm_create(__u32 domain)
{
	__u32 key = IN_DOMAINS(domain);
	struct alarm *alarm;
	int failed;

	if (alarm_config.by_thread)
		return 0;
	alarm = bpf_map_lookup_elem(&alarms, &key);
	if (!alarm)
		return -EINVAL;
	failed = (int)bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC);
	return failed ? failed : (int)bpf_timer_set_callback(&alarm->timer, on_alarm);
}

#endif
