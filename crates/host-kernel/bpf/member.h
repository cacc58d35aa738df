/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Which threads belong to which task. A task is a process with all its threads and children:
 * membership is inherited at fork, kept over exec, and left at exit. A task is ready while one of
 * its threads is runnable where its jobs run.
 *
 *            enqueue (counted)                    job selected
 *   asleep ───────────────────> in its task's queue ─────────> running ──┐ an attribute changes:
 *      ^                              ^  stopping, slice 0       │ │  ^──┘ quiescent, running
 *      │                              └──────────────────────────┘ │
 *      └────────────────────────────────────────────────────────────┘ quiescent for a sleep
 *
 * The kernel dequeues a thread to change an attribute of it and enqueues it again: ops.quiescent
 * without SCX_DEQ_SLEEP. It stays counted, or a decision in between (on another CPU, without the
 * run queue's lock) would find it asleep. A running one goes back to the local queue without
 * ops.enqueue. ops.disable is for one that leaves the class for a real-time one; ops.running
 * counts it again when it is back.
 *
 * On a remote CPU the dispatcher cannot be called. So all callbacks leave notes: atomic counts, a
 * bit for the task, and one for that bit's word. The next decision on the domain's CPU applies the
 * state that it finds then (decide.h): a thread that woke and slept in between needs no queue.
 */
#pragma once

/* Of each domain. */
#define PUNCTUAL_TASKS PD_ARENA_TASKS
#define TASK_WORDS (PUNCTUAL_TASKS / 64)
#define TASK_QUEUE(domain, task) (0x10000ULL + (__u64)(domain) * PUNCTUAL_TASKS + (task))
#define ALLOCATOR_QUEUE(domain) (0x1000ULL + (domain))
/* ns of execution in a turn of one of a task's threads. */
#define TURN 1000000ULL
/* ns. After so long a wait a turn is short: many threads on a small budget would else wait until
 * the kernel's watchdog ends the scheduler. */
#define TURN_WAIT 5000000000ULL
#define TURN_SHORT 20000ULL
/* Every slice is finite: at its end the kernel's tick calls ops.dispatch, even if the timer was
 * missed. This one is from ops.enqueue to ops.running, which sets the one that counts (run.h). */
#define QUEUED_SLICE TURN

/* The queue into which a thread was last put. */
enum member_place {
	BEST_EFFORT = 0,
	WITH_TASK = 1,
	WITH_ALLOCATORS = 2,
};

struct member {
	__u32 domain;
	__u32 task;
	__u32 generation; /* of the task's number */
	__u32 flags;	  /* enum punctual_member_flag */
	__u32 left;	  /* it is not a member any more */
	__u32 place;
	__u32 counted;	/* among its task's runnable threads */
	__u32 put_back; /* the enqueue that follows is no wake-up */
	__u64 turn;	/* executed of it */
	__u64 waits;	/* since when it waits for one, scheduler's clock */
	__u64 recorded;	/* its execution time + 1 at the record that it runs; 0: none */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct member);
} members SEC(".maps");

/* Notes about a task: written in any state on any CPU, each field by an atomic operation or as one
 * store. */
struct punctual_task {
	__u32 runnable;	  /* threads in its queue or running from there */
	__u32 members;	  /* threads */
	__u32 generation; /* uses of this number */
	__u32 done;	  /* yields of those that cooperate */
	__u32 gone;	  /* its last thread left */
	__u32 leader;	  /* process or single thread that gets its signal */
	__u32 signal;	  /* it is to be sent */
	__u32 background; /* until its next release; or until its last threads have run */
	__s64 uncharged;  /* executed and not yet charged, ns; negative: too much was charged */
	__u32 waiter;	  /* a thread that fell asleep as it waited for a lock (lock.h); 0: none */
	__u32 lends_to;	  /* a task + 1, by a command; 0: none */
	__u32 awaits;	  /* its next release, before which no other task's job executes it */
	__u32 suspended;  /* by a command: not ready, whatever its threads do */
	/* Where an allocator makes its jobs (late_wait.h). */
	__u32 waits;	  /* it has waited for a release */
	__u32 delayed;	  /* waits that are due from releases gone by */
	__u32 over;	  /* its latest release, as far as is known */
	__u32 early;	  /* it has waited, and its allocator has not yet answered that job's end */
};

/* Not static: the compiler would split the structures, and drop their type information. */
struct punctual_task tasks[PD_DOMAINS][PUNCTUAL_TASKS];
struct punctual_notes {
	__u64 words; /* bit i: tasks[i] is not 0 */
	__u64 tasks[TASK_WORDS];
	__u32 allocators; /* in their queue */
	__u32 deciding;	  /* the timer's callback is active: it kicks for them at its end */
} notes[PD_DOMAINS];

_Static_assert((PUNCTUAL_TASKS & (PUNCTUAL_TASKS - 1)) == 0, "task numbers are masked");

/* Whether a thread ever joined a task. */
__u32 has_members;

#define TASK_OF(domain, task) (&tasks[IN_DOMAINS(domain)][(task) & (PUNCTUAL_TASKS - 1)])

/* ffs by de Bruijn's sequence: BPF has no instruction for it, and the compiler's way is long. */
const __u8 ffs_table[64] = {
	0, 1, 48, 2, 57, 49, 28, 3, 61, 58, 50, 42, 38, 29, 17, 4,
	62, 55, 59, 36, 53, 51, 43, 22, 45, 39, 33, 30, 24, 18, 12, 5,
	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21, 44, 32, 23, 11,
	46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9, 13, 8, 7, 6,
};

PD_INLINE __u32 ffs64(__u64 bits)
{
	return ffs_table[(bits & -bits) * 0x03f79d71b4cb0a89ULL >> 58];
}

/* The value before, fully ordered: when the result is not used, the compiler takes a form that
 * orders nothing (arm64). */
#define fetch_or(at, bits)                                     \
	({                                                     \
		__u64 fetched = __sync_fetch_and_or(at, bits); \
		asm volatile("" ::"r"(fetched));               \
	})

/* The state is written before, the task's bit next, and the bit's word last. Pairs with
 * domain_update, which exchanges the word, then the bits, and then reads the state: a bit that it
 * misses has its word set again. */
PD_INLINE void note(__u32 domain, __u32 task) __any_state
{
	struct punctual_notes *n = &notes[IN_DOMAINS(domain)];
	__u32 word = task / 64 % TASK_WORDS;

	fetch_or(&n->tasks[word], 1ULL << (task % 64));
	fetch_or(&n->words, 1ULL << word);
}

PD_INLINE void kick(__s32 cpu) __any_state
{
	scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

PD_INLINE struct member *member_of(struct task_struct *p) __any_state
{
	return has_members ? bpf_task_storage_get(&members, p, 0, 0) : 0;
}

/* Counts a thread among its task's runnable ones. The first makes the task ready, the second
 * makes the first take turns: returns whether it is one of these. */
PD_INLINE bool member_count(struct member *m) __rq_locked
{
	if (__sync_lock_test_and_set(&m->counted, 1))
		return false;
	if (__sync_fetch_and_add(&TASK_OF(m->domain, m->task)->runnable, 1) > 1)
		return false;
	note(m->domain, m->task);
	return true;
}

/* The reverse, also from commands, which do not hold the thread's lock. `counted` is exchanged here
 * and in member_count: a thread is counted once, whichever of two CPUs comes first. */
PD_INLINE void member_uncount(struct member *m) __any_state
{
	if (!__sync_lock_test_and_set(&m->counted, 0))
		return;
	if (m->flags & PUNCTUAL_ALLOCATOR) {
		__sync_fetch_and_sub(&notes[IN_DOMAINS(m->domain)].allocators, 1);
		return;
	}
	if (__sync_fetch_and_sub(&TASK_OF(m->domain, m->task)->runnable, 1) == 1)
		note(m->domain, m->task);
}

PD_INLINE void member_leave(struct member *m) __any_state
{
	struct punctual_task *t = TASK_OF(m->domain, m->task);

	member_uncount(m);
	if (__sync_lock_test_and_set(&m->left, 1) || m->flags & PUNCTUAL_ALLOCATOR ||
	    m->generation != t->generation)
		return;
	if (__sync_fetch_and_sub(&t->members, 1) != 1)
		return;
	t->gone = 1;
	note(m->domain, m->task);
}

/* Where a thread belongs. Exiting threads, kernel threads, and those that may not run on the
 * domain's CPU are not with their task. */
PD_INLINE __u32 member_place(struct task_struct *p, struct member *m) __rq_locked
{
	if (m->left)
		return BEST_EFFORT;
	if (p->flags & (PF_EXITING | PF_KTHREAD)) {
		member_leave(m);
		return BEST_EFFORT;
	}
	if (!bpf_cpumask_test_cpu((__u32)domain_cpu(m->domain), p->cpus_ptr))
		return BEST_EFFORT;
	if (m->flags & PUNCTUAL_ALLOCATOR)
		return WITH_ALLOCATORS;
	if (m->generation != TASK_OF(m->domain, m->task)->generation) {
		m->left = 1;
		return BEST_EFFORT;
	}
	return WITH_TASK;
}

/* It runs as a best-effort thread, and could be with its task: it became a member while it ran,
 * or its affinity changed. It must not continue, even on an idle CPU. */
PD_INLINE bool member_misplaced(struct task_struct *p, struct member *m) __rq_locked
{
	return m && m->place == BEST_EFFORT && !m->left && !(m->flags & PUNCTUAL_ALLOCATOR) &&
	       !(p->flags & (PF_EXITING | PF_KTHREAD)) &&
	       bpf_cpumask_test_cpu((__u32)domain_cpu(m->domain), p->cpus_ptr);
}

/* A thread is put into its task's queue: at the head if it did not end its turn. */
PD_INLINE void member_enqueue(struct task_struct *p, struct member *m, bool put_back,
			      __u64 enq_flags) __rq_locked
{
	if (put_back && m->turn < TURN) {
		enq_flags |= SCX_ENQ_HEAD;
	} else {
		m->turn = 0;
		m->waits = scx_bpf_now();
	}
	insert(p, TASK_QUEUE(m->domain, m->task), QUEUED_SLICE, enq_flags);
	if (member_count(m))
		kick(domain_cpu(m->domain));
}

PD_INLINE void allocator_enqueue(struct task_struct *p, struct member *m, bool put_back,
				 __u64 enq_flags) __rq_locked
{
	insert(p, ALLOCATOR_QUEUE(m->domain), QUEUED_SLICE, enq_flags);
	if (m->counted)
		return;
	m->counted = 1;
	__sync_fetch_and_add(&notes[IN_DOMAINS(m->domain)].allocators, 1);
	/* A kick for a thread that was just stopped would stop it again. The timer's callback rings
	 * the doorbell, and an interrupt of it wakes the thread. */
	if (!put_back && (on_remote_cpu(m->domain) || !notes[IN_DOMAINS(m->domain)].deciding))
		kick(domain_cpu(m->domain));
}

/* A new thread or process belongs to its parent's task, unless that is a single thread. */
PD_INLINE __s32 member_fork(struct task_struct *child) __may_sleep
{
	struct member *m = member_of(bpf_get_current_task_btf());
	struct member born = {};

	if (!m || m->left || m->flags & PUNCTUAL_ALONE ||
	    m->generation != TASK_OF(m->domain, m->task)->generation)
		return 0;
	born.domain = m->domain;
	born.task = m->task;
	born.generation = m->generation;
	born.flags = m->flags;
	if (!bpf_task_storage_get(&members, child, &born, BPF_LOCAL_STORAGE_GET_F_CREATE))
		return -ENOMEM; /* the fork fails */
	if (!(born.flags & PUNCTUAL_ALLOCATOR))
		__sync_fetch_and_add(&TASK_OF(born.domain, born.task)->members, 1);
	return 0;
}
