/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Waits for the next release, of tasks whose jobs an allocator in user space makes, one by one,
 * by the rule of dispatcher/late_wait.h. A wait is answered at once, in ops.yield; the allocator's
 * command on the job's end comes some microseconds later, with interrupts off on the same CPU. So
 * neither comes within the other:
 *
 *   job added ──> in flight ──> completed by the task's wait: over
 *                    │
 *                    └─> exhausted, expired ──> allocator: over (one wait is late), or another job
 *                             │                 of the same release
 *                             └─ a wait meanwhile is early: it was that release's own, and ends
 *                                that job
 */
#pragma once

/* A new task of that number. */
PD_INLINE void wait_begins(struct punctual_task *t) __irqs_off
{
	t->waits = 0;
	t->delayed = 0;
	t->over = 1;
	t->early = 0;
}

/* The task waits. Whether that is a late wait: it is ignored, and the task continues. */
PD_INLINE bool wait_is_late(__u32 domain, __u32 task) __rq_locked
{
	struct punctual_task *t = TASK_OF(domain, task);
	pd_task_p u = PD_TASK(PD_AT(domain), task);
	bool in_flight = u->first_job != PD_NONE;

	if (u->reservation != PD_NONE)
		return false;
	t->waits = 1;
	/* Without a job the latest release has overrun itself, and this may be its own wait. */
	if (pd_late_is(t->delayed, !in_flight && t->over)) {
		t->delayed--;
		return true;
	}
	t->delayed = 0;
	t->early = !in_flight && !t->over;
	t->over |= in_flight;
	return false;
}

/* An allocator's job of the task was added. */
PD_FN int wait_job_added(pd_u32 domain, pd_u32 task, pd_u64 now) __irqs_off
{
	struct punctual_task *t = TASK_OF(domain, task);

	domain_background(domain, task, 0);
	t->over = 0;
	if (t->early)
		pd_task_done(PD_AT(domain), task, now);
	t->early = 0;
	return 0;
}

/* A release has ended, and not by the task's wait. How many waits are late, if this added one;
 * else 0. */
PD_INLINE pd_i64 wait_release_ended(__u32 domain, __u32 task, __u64 flags) __irqs_off
{
	struct punctual_task *t = TASK_OF(domain, task);
	__u32 before = t->delayed;

	if (flags & PUNCTUAL_IN_BACKGROUND && !t->early)
		domain_background(domain, task, 1);
	t->delayed = pd_late_after_release(before, flags & PUNCTUAL_LATE && t->waits && !t->early);
	t->over = 1;
	t->early = 0;
	return t->delayed == before ? 0 : t->delayed;
}
