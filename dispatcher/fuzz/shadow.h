/* SPDX-License-Identifier: MIT */
/*
 * What a dispatcher was given and what it said, kept beside it, so that the invariants of the
 * design (section 3) can be checked from the outside after every call (check.c).
 */
#pragma once

#include <stdbool.h>

#include "../punctual_dispatcher.h"
#include "stream.h"

enum {
	JOBS = 12,
	TASKS = 3,
	RESERVATIONS = 3,
	GROUPS = 4,
	NODES = 3,
	TIMERS = 2,
	WINDOWS = 6,
	DEPTH = 3,
};

/* A job, server job or segment that has not ended. */
struct known {
	pd_u64 id; /* 0: none */
	struct pd_job_attr attr;
	pd_u64 used;
	pd_u64 remaining;
	/* A server job that a reservation made: when its group becomes active, less may remain. */
	bool is_cut;
	/* A reservation made it: `attr` has not all that it was made with. */
	bool is_reserved;
	int standing;
};

struct shadow {
	pd_ref d;
	pd_u64 now;
	pd_u64 granularity;
	/* All that is due at `now` was done, and nothing was executed since. */
	bool fresh;
	struct known jobs[JOBS];
	bool task_there[TASKS];
	bool task_sleeps[TASKS];
	pd_u32 task_lends_to[TASKS]; /* PD_NONE for none */
	/* enum pd_attribute of the ceiling, 0 for none. */
	pd_u32 task_raised[TASKS];
	pd_u64 task_ceiling[TASKS];
	pd_u32 group_order[GROUPS]; /* the first attribute */
	struct pd_reservation_attr reservations[RESERVATIONS];
	bool reservation_there[RESERVATIONS];
	/* PD_NONE: not fixed yet. */
	pd_u32 group_parent[GROUPS];
	pd_u32 node_parent[NODES + 1];
};

void shadow_make(struct shadow *s, void *memory, const struct pd_limits *limits);

/* The job at a place, if there is one. */
struct known *shadow_find(struct shadow *s, pd_u64 id);
/* Remembers a job that was added. */
void shadow_added(struct shadow *s, pd_u64 id, const struct pd_job_attr *attr);
/* The task that the jobs of `task` execute. */
pd_u32 shadow_executed(const struct shadow *s, pd_u32 task);
/* Remembers which parents a job or reservation fixed; they must not have been others. */
void shadow_fix(struct shadow *s, pd_u32 group, pd_u32 server, pd_u32 budget_group,
		pd_u32 budget_server);

/* Charges a job, and checks who else was charged. */
void check_charge(struct shadow *s, pd_u64 job, pd_u64 ran);
/* After every call. */
void check_all(struct shadow *s);
