/* SPDX-License-Identifier: MIT */
/*
 * The rule of late waits (RTAI paper, 3.3.2), for reservations and for releases whose jobs an
 * allocator makes (policies; host-kernel's bpf/late_wait.h): a release that ended without its
 * task's wait_period leaves one wait that is late, and is ignored when it comes. Scalars only:
 * the state is in the arena, in a BPF map, or in Rust.
 */
#pragma once

#include "platform.h"

/* Late waits are counted up to here (3.3.2: "a reasonable limit"). */
#define PD_MAX_DELAYED 30000U

/* The late waits after another release has ended so; none of a task that never waited. */
PD_INLINE pd_u32 pd_late_after_release(pd_u32 late, int waits)
{
	return waits && late < PD_MAX_DELAYED ? late + 1 : late;
}

/* 1 if one of the late waits is the latest release's own: that has ended, and was not waited for.
 * */
PD_INLINE pd_u32 pd_late_own(pd_u32 late, int ended)
{
	return ended && late;
}

/* Whether a wait is that of an earlier release. */
PD_INLINE int pd_late_is(pd_u32 late, int ended)
{
	return late > pd_late_own(late, ended);
}
