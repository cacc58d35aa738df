/* SPDX-License-Identifier: MIT */
/* The native build's turn at the same workload. Nothing of the dispatcher is visible outside. */
/* Called as the library's callers do: not folded into them. */
#define PD_API static __attribute__((noinline))
#include "dispatcher.c"
#include "limits.h"

/* What a workload keeps lies before its dispatcher, as it lies behind it in the arena. As
 * thread-local memory every thread of the program would have it, and a stack smaller by it. */
#define PD_BESIDE ((pd_u64)128 << 10)

#include "decisions.h"
#include "exercise_tell.h"

_Static_assert(sizeof(struct decisions) <= PD_BESIDE && sizeof(struct exercise) <= PD_BESIDE,
	       "a workload has room");

const struct pd_limits punctual_selftest_limits = PD_ARENA_LIMITS;

pd_u64 punctual_native_size(const struct pd_limits *limits)
{
	pd_u64 size = pd_size(limits);

	return size ? PD_BESIDE + size : 0;
}

int punctual_native_create(void *memory, const struct pd_limits *limits)
{
	return pd_init((char *)memory + PD_BESIDE, limits) ? 0 : -EINVAL;
}

int punctual_native_begin(void *memory, struct pd_call *call)
{
	memory = (char *)memory + PD_BESIDE;
	return exercise_begin(memory, call->seed, call->batch, call->count);
}

int punctual_native_tell(void *memory, struct pd_call *call)
{
	(void)call;
	memory = (char *)memory + PD_BESIDE;
	return exercise_tell(memory);
}

int punctual_native_host(void *memory, struct pd_call *call)
{
	memory = (char *)memory + PD_BESIDE;
	exercise_host(memory);
	call->hash = EX(memory)->hash;
	call->left = EX(memory)->left;
	return 0;
}

int punctual_native_decisions(void *memory, struct pd_call *call)
{
	memory = (char *)memory + PD_BESIDE;
	if (call->begin)
		return decisions_begin(memory, call->jobs, call->trees);
	call->hash = decisions_run(memory, call->count);
	return 0;
}
