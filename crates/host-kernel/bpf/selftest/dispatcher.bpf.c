// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * The dispatcher inside the kernel, unchanged, with its data in an arena, for self-tests and
 * benchmarks: programs that are only test-run, without the scheduler. An object of its own, which
 * the scheduler does not load.
 */
#include "kernel.h"
#include "limits.h"

/* Eight blocks with all that they can have. */
struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 10240); /* pages */
} arena SEC(".maps");

/* What the exercise or the decisions keep. */
#define PD_ARENA_BESIDE 69632U

#include "dispatcher.c"
#include "decisions.h"
#include "exercise_tell.h"

_Static_assert(PD_ARENA_PAGES <= 10240, "the arena has room for all blocks");
_Static_assert(sizeof(struct decisions) <= PD_ARENA_BESIDE, "the block has room for it");
_Static_assert(sizeof(struct exercise) <= PD_ARENA_BESIDE, "the block has room for it");

SEC("syscall")
int punctual_create(struct pd_create_call *call)
{
	return pd_make(call->domain, &call->limits);
}

SEC("syscall")
int punctual_begin(struct pd_call *call)
{
	return exercise_begin(PD_AT(call->domain), call->seed, call->batch, call->count);
}

SEC("syscall")
int punctual_tell(struct pd_call *call)
{
	return exercise_tell(PD_AT(call->domain));
}

SEC("syscall")
int punctual_host(struct pd_call *call)
{
	pd_ref d = PD_AT(call->domain);

	exercise_host(d);
	call->hash = EX(d)->hash;
	call->left = EX(d)->left;
	return 0;
}

SEC("syscall")
int punctual_decisions(struct pd_call *call)
{
	pd_ref d = PD_AT(call->domain);

	if (call->begin)
		return decisions_begin(d, call->jobs, call->trees);
	call->hash = decisions_run(d, call->count);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
