/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Locks: a task that waits for a lock lends its jobs to the task that holds it (docs/model.md,
 * "Lending").
 *
 * The locks are those whose holder the kernel knows, its rt_mutexes: mutexes in user space that
 * inherit priority (FUTEX_LOCK_PI, PTHREAD_PRIO_INHERIT), between threads and processes alike; and
 * with PREEMPT_RT most of the kernel's own.
 *
 *   waiter: pi_blocked_on is set ── ops.quiescent: its number is noted ── decision: lends
 *   holder: unlocks: top waiter is woken ── decision: that one lends to none, others to it
 *
 * A lie in a futex costs the liar only: the budget that it lends is its own.
 */
#pragma once

/* Each decision looks to which task this one lends, until that is none. */
PD_INLINE void lender_note(__u32 domain, __u32 task) __on_domain
{
	struct punctual_domain *c = DOMAIN(domain);
	__u32 word = task / 64 % TASK_WORDS;

	c->lenders[word] |= 1ULL << (task % 64);
	c->lender_words |= 1ULL << word;
}

/* From ops.quiescent: a thread falls asleep. A task's are on the domain's CPU then. */
PD_INLINE void lock_note_waiter(struct task_struct *p, struct member *m) __rq_locked
{
	struct punctual_task *t = TASK_OF(m->domain, m->task);

	if (m->place != WITH_TASK)
		return;
	if (p->pi_blocked_on)
		t->waiter = (__u32)p->pid;
	/* Or another thread of the task waits for a lock. */
	if (t->waiter)
		lender_note(m->domain, m->task);
}

/*
 * The number of the thread that holds the lock for which this one waits, 0 for none. Between two
 * holders a lock is the top waiter's, which was woken to take it.
 *
 * Read without the lock's own lock. The waiter is on the waiting thread's stack, and may be gone:
 * then this reads something else there, and the caller looks up a number that may be any.
 */
PD_INLINE __u32 lock_owner(struct task_struct *p) __any_state
{
	struct rt_mutex_base *lock = BPF_CORE_READ(p, pi_blocked_on, lock);
	/* The lowest bit says that there are waiters. */
	__u64 owner = (__u64)BPF_CORE_READ(lock, owner) & ~1ULL;
	__u64 top;

	if (lock && !owner) {
		top = (__u64)BPF_CORE_READ(lock, waiters.rb_leftmost) -
		      bpf_core_field_offset(struct rt_mutex_waiter, tree.entry);
		owner = (__u64)BPF_CORE_READ((struct rt_mutex_waiter *)top, task);
	}
	return (__u32)BPF_CORE_READ((struct task_struct *)owner, pid);
}

/* The task of this domain to which a thread belongs, PD_NONE for none. */
PD_INLINE __u32 lock_task(__u32 domain, struct task_struct *p) __any_state
{
	struct member *m = member_of(p);

	if (!m || m->left || m->domain != domain || m->flags & PUNCTUAL_ALLOCATOR ||
	    m->generation != TASK_OF(domain, m->task)->generation)
		return PD_NONE;
	return m->task % PUNCTUAL_TASKS;
}

/* The task that holds the lock for which this one waits, which sleeps; PD_NONE for none. Of several
 * of its threads that wait for locks, the one that began last counts. */
PD_FN pd_u32 lock_holder(pd_u32 domain, pd_u32 task) __on_domain
{
	struct punctual_task *t = TASK_OF(domain, task);
	struct task_struct *p = t->waiter ? bpf_task_from_pid((__s32)t->waiter) : 0;
	__u32 owner = 0, holder = PD_NONE;

	if (p) {
		/* Its number may have been given to another thread. */
		if (lock_task(domain, p) == task)
			owner = lock_owner(p);
		bpf_task_release(p);
	}
	if (!owner)
		t->waiter = 0;
	p = owner ? bpf_task_from_pid((__s32)owner) : 0;
	if (p) {
		holder = lock_task(domain, p);
		bpf_task_release(p);
	}
	return holder == task ? PD_NONE : holder;
}
