/* SPDX-License-Identifier: MIT */
/*
 * punctual_policy.h - a scheduling policy for Punctual in a shared object.
 *
 * The shared object exports one symbol, punctual_policy. A task set names the file:
 *
 *     policy = { plugin = "./mine.so" }
 *
 * and the policy then decides in the simulator, on the user host and on the kernel host. A policy
 * whose jobs all have fixed priorities is a function:
 *
 *     #include "punctual_policy.h"
 *
 *     static int64_t shortest_first(const struct punctual_attributes *of)
 *     {
 *             return -(int64_t)of->budget;
 *     }
 *
 *     const struct punctual_policy punctual_policy = {
 *             PUNCTUAL_POLICY,
 *             .name = "shortest",
 *             .title = "shortest budget first",
 *             .priority = shortest_first,
 *     };
 *
 *     cc -shared -fPIC -o shortest.so shortest.c
 *
 * One that decides at events has `handle`. All times are ns of CLOCK_MONOTONIC, all lengths ns. No
 * call of this interface allocates, locks or makes a system call, and `handle` should not either:
 * it is called where nothing may wait, and one that takes more than 10 ms twice is stopped.
 */
#ifndef PUNCTUAL_POLICY_H
#define PUNCTUAL_POLICY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. Another one is refused. */
#define PUNCTUAL_POLICY_VERSION 1

/* A finish that never comes. */
#define PUNCTUAL_NEVER UINT64_MAX

/* A task or a server, as the task set has it. */
struct punctual_attributes {
	uint64_t offset;   /* of the first release, from the start of the run */
	uint64_t period;   /* the time between releases */
	uint64_t deadline; /* from each release */
	uint64_t budget;   /* the execution time of each release */
	int64_t priority;
};

/* A member of the policy's group: a task, or the server of a group in it. */
struct punctual_member {
	struct punctual_attributes of;
	uint32_t index; /* below punctual_setup.members: the place of what the policy keeps of it */
	uint32_t group; /* 0: the top */
};

/* A release in flight; between two, the latest one. */
struct punctual_release {
	uint64_t number; /* from 0 */
	uint64_t at;     /* when it was due */
	uint64_t deadline;
	uint64_t left; /* its remaining budget, as of the last job that ended */
	uint32_t part; /* how many jobs were made of it so far */
};

/* A job: what of its attributes the policy decides. */
struct punctual_job {
	uint64_t start;   /* not eligible before */
	uint64_t finish;  /* not eligible at or after it; or PUNCTUAL_NEVER */
	uint64_t budget;  /* at most what is left of the release */
	int64_t priority; /* the larger one first */
};

enum punctual_event_kind {
	PUNCTUAL_RELEASED = 1, /* its first job is expected in return, or a timer; else it is lost */
	PUNCTUAL_JOB_ENDED,    /* `end`, `used`, `remaining`: over, unless another job is added */
	PUNCTUAL_READY,        /* the task woke up in mid-job; the group became active */
	PUNCTUAL_BLOCKED,      /* the task fell asleep in mid-job; the group became idle */
	PUNCTUAL_TIMER,        /* the one that the policy set */
	PUNCTUAL_LOST,         /* events of this member may have been lost */
};

enum punctual_end {
	PUNCTUAL_COMPLETED = 1,
	PUNCTUAL_EXHAUSTED,
	PUNCTUAL_EXPIRED,
	PUNCTUAL_CANCELLED,
	PUNCTUAL_TASK_GONE,
};

struct punctual_event {
	uint32_t kind; /* enum punctual_event_kind; later versions have more */
	uint32_t end;  /* enum punctual_end; 0: no job ended */
	uint64_t used;
	uint64_t remaining;
};

/* What calls return: 0, or one of these. */
enum punctual_refusal {
	PUNCTUAL_FULL = -1,    /* a limit of the dispatcher is reached */
	PUNCTUAL_NOTHING = -2, /* no release, or no job, is in flight */
	PUNCTUAL_INVALID = -3, /* a value is out of its range, such as a budget of 0 */
	PUNCTUAL_BUSY = -4,    /* a job is in flight already */
	PUNCTUAL_NOT_HERE = -5, /* outside of `handle`, or in another thread: the policy is stopped */
};

/*
 * The member of an event, at its instant. Valid in the call of `handle` that gets it, in its
 * thread.
 */
struct punctual_context {
	const struct punctual_calls *calls;
};

/* Called through the functions below. */
struct punctual_calls {
	uint32_t size;
	uint64_t (*now)(struct punctual_context *);
	int (*member)(struct punctual_context *, struct punctual_member *);
	int (*release)(struct punctual_context *, struct punctual_release *);
	int (*add_job)(struct punctual_context *, const struct punctual_job *);
	int (*replace_job)(struct punctual_context *, const struct punctual_job *);
	int (*cancel_job)(struct punctual_context *);
	uint64_t (*remaining)(struct punctual_context *);
	uint64_t (*used)(struct punctual_context *);
	uint64_t (*executed)(struct punctual_context *, uint32_t);
	int (*set_timer)(struct punctual_context *, uint64_t);
	int (*cancel_timer)(struct punctual_context *);
	int (*extend)(struct punctual_context *, uint64_t);
};

/* The time of this instant. */
static inline uint64_t punctual_now(struct punctual_context *context)
{
	return context->calls->now(context);
}

/* The member whose event this is. */
static inline struct punctual_member punctual_member_of(struct punctual_context *context)
{
	struct punctual_member member = { { 0, 0, 0, 0, 0 }, 0, 0 };

	context->calls->member(context, &member);
	return member;
}

/* Its release. */
static inline struct punctual_release punctual_release_of(struct punctual_context *context)
{
	struct punctual_release release = { 0, 0, 0, 0, 0 };

	context->calls->release(context, &release);
	return release;
}

/* Adds a job of the release in flight. A member has one job at a time. */
static inline int punctual_add_job(struct punctual_context *context,
				   const struct punctual_job *job)
{
	return context->calls->add_job(context, job);
}

/* Replaces the job in flight; what it executed is charged to the release. */
static inline int punctual_replace_job(struct punctual_context *context,
				       const struct punctual_job *job)
{
	return context->calls->replace_job(context, job);
}

/* Takes back the job in flight. Its end is an event. */
static inline int punctual_cancel_job(struct punctual_context *context)
{
	return context->calls->cancel_job(context);
}

/* The remaining budget of the job in flight; 0 without one. */
static inline uint64_t punctual_remaining(struct punctual_context *context)
{
	return context->calls->remaining(context);
}

/* What the job in flight has executed; 0 without one. */
static inline uint64_t punctual_used(struct punctual_context *context)
{
	return context->calls->used(context);
}

/* What a member of the group has executed in all its jobs so far. */
static inline uint64_t punctual_executed(struct punctual_context *context, uint32_t index)
{
	return context->calls->executed(context, index);
}

/* Requests PUNCTUAL_TIMER for this member at `at`, in place of an earlier request. */
static inline int punctual_set_timer(struct punctual_context *context, uint64_t at)
{
	return context->calls->set_timer(context, at);
}

/* Withdraws that request. */
static inline int punctual_cancel_timer(struct punctual_context *context)
{
	return context->calls->cancel_timer(context);
}

/* Adds time that is sure to remain beside the budgets of others to what is left of the release. */
static inline int punctual_extend(struct punctual_context *context, uint64_t ns)
{
	return context->calls->extend(context, ns);
}

/* By what the jobs of the group are selected; the next one where the one before is equal. */
enum punctual_order {
	PUNCTUAL_BY_START = 1, /* the earlier one first */
	PUNCTUAL_BY_FINISH,    /* the earlier one first */
	PUNCTUAL_BY_BUDGET,    /* the one that is left with less first */
	PUNCTUAL_BY_PRIORITY,  /* the larger one first; the default */
};

/* How `punctual check` tests groups of the policy. The test must match what the policy does. */
enum punctual_admission {
	PUNCTUAL_UNTESTED = 0,  /* with `priority`: by that; else sets need --overload */
	PUNCTUAL_BY_DEADLINES, /* jobs are selected by their absolute deadlines, as by edf */
};

/* What a policy is made for. */
struct punctual_setup {
	uint32_t size;
	uint32_t group;
	uint32_t members;                     /* there can be so many */
	uint32_t tasks;                       /* of the group, in the set */
	const struct punctual_member *of_set; /* those; valid in the call of `make` */
};

struct punctual_policy {
	uint32_t version; /* PUNCTUAL_POLICY_VERSION */
	uint32_t size;    /* of this structure */
	/* For people and task sets: up to 32 lower-case letters, digits, - and _; the name begins
	 * with a letter. */
	const char *name;
	const char *title;
	const char *source; /* where it was published; or NULL */
	uint32_t order[4];  /* enum punctual_order; up to the first 0 */
	uint32_t admission; /* enum punctual_admission */
	/*
	 * The priority of all jobs of a member; also of servers of groups, if they may compete in
	 * the policy's group. Must depend on nothing else. Without `handle` each release is one job
	 * with the whole budget: no call is made while tasks run, on the kernel host either.
	 */
	int64_t (*priority)(const struct punctual_attributes *of);
	/*
	 * What the policy keeps; NULL: it cannot be made. `error` has room for `room` bytes: why, in
	 * words. May be NULL: then `self` is NULL.
	 */
	void *(*make)(const struct punctual_setup *setup, char *error, size_t room);
	/* The end of what `make` returned. May be NULL. */
	void (*drop)(void *self);
	/* Answers an event. One of `handle` and `priority` is there. */
	void (*handle)(void *self, struct punctual_context *context,
		       const struct punctual_event *event);
};

#define PUNCTUAL_POLICY \
	.version = PUNCTUAL_POLICY_VERSION, .size = sizeof(struct punctual_policy)

/* What the shared object exports. */
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
extern const struct punctual_policy punctual_policy;

#ifdef __cplusplus
}
#endif

#endif
