// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * The dispatcher inside the kernel: ../../../dispatcher, unchanged, its data in an arena. Until the
 * scheduler calls it, programs that are only test-run put it through its paces.
 */
#include "kernel.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2048); /* pages */
} arena SEC(".maps");

#include "dispatcher.c"
#include "decisions.h"
#include "exercise_tell.h"

/* With the limits of the arena, or smaller ones where they are given. */
SEC("syscall")
int punctual_create(struct pd_limits *given)
{
	struct pd_limits PD_ARENA *l = &PD(0)->limits;

	l->jobs = given->jobs;
	l->tasks = given->tasks;
	l->reservations = given->reservations;
	l->groups = given->groups;
	l->budget_groups = given->budget_groups;
	l->timers = given->timers;
	l->depth = given->depth;
	l->events = given->events;
	l->records = given->records;
	l->cpus = given->cpus;
	l->windows = given->windows;
	return pd_create(0);
}

SEC("syscall")
int punctual_begin(struct pd_call *call)
{
	return exercise_begin(0, call->seed, call->batch, call->count);
}

SEC("syscall")
int punctual_tell(struct pd_call *call)
{
	return exercise_tell(0);
}

SEC("syscall")
int punctual_host(struct pd_call *call)
{
	exercise_host(0);
	call->hash = EX(0)->hash;
	call->left = EX(0)->left;
	return 0;
}

SEC("syscall")
int punctual_decisions(struct pd_call *call)
{
	if (call->begin)
		return decisions_begin(0, call->jobs, call->trees);
	call->hash = decisions_run(0, call->count);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
