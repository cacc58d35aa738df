/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What the arena has room for: the number of domains, and the limits of each, where the object does
 * not say otherwise; and what jobs may execute. Rust takes these numbers from abi.c. */
#pragma once

/* A power of two. */
#define PD_DOMAINS 8U

#ifndef PD_ARENA_JOBS
#define PD_ARENA_JOBS 1024U
#define PD_ARENA_TASKS 256U
#define PD_ARENA_RESERVATIONS 512U
#define PD_ARENA_GROUPS 64U
#define PD_ARENA_NODES 64U
#define PD_ARENA_TIMERS 512U
#define PD_ARENA_WINDOWS 4096U
/* A loader that was stopped for a second finds all of it in the rings. */
#define PD_ARENA_EVENTS 8192U
#define PD_ARENA_RECORDS 65536U
/* The verifier has less to go through. */
#define PD_RUNNERS_UP 0
#endif
#define PD_ARENA_CPUS 1U

/* ns. Jobs leave a twentieth of each window to best-effort tasks. */
#define CAP_WINDOW 100000000ULL
#define CAP_SHARE (CAP_WINDOW / 20 * 19)

/* For struct pd_limits. */
#define PD_ARENA_LIMITS                                                                        \
	{                                                                                      \
		.jobs = PD_ARENA_JOBS, .tasks = PD_ARENA_TASKS,                                \
		.reservations = PD_ARENA_RESERVATIONS, .groups = PD_ARENA_GROUPS,              \
		.budget_groups = PD_ARENA_NODES, .timers = PD_ARENA_TIMERS, .depth = 16,       \
		.events = PD_ARENA_EVENTS, .records = PD_ARENA_RECORDS, .cpus = PD_ARENA_CPUS, \
		.windows = PD_ARENA_WINDOWS,                                                   \
	}
