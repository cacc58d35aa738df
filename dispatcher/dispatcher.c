/* SPDX-License-Identifier: MIT */
/*
 * The whole dispatcher in one translation unit, in the order in which the files build on each
 * other: natively so that the compiler can see through it, and because BPF has one unit.
 */
#include "internal.h"

/* What looks down in its file and is called from one above. */
PD_ALWAYS_INLINE int pd_job_watch(pd_ref d, pd_u32 i);
PD_ALWAYS_INLINE int pd_job_end_at_once(pd_ref d, pd_u32 i, pd_u64 now);
PD_SHARE int pd_reservation_ended(pd_ref d, pd_u32 i, pd_u32 kind, pd_u64 now);
PD_FN int pd_reservation_woke(pd_ref d, pd_u32 r, pd_u64 now);
PD_FN int pd_reservation_waits(pd_ref d, pd_u32 r, pd_u64 now);
PD_FN int pd_reservation_drop(pd_ref d, pd_u32 r);
PD_SHARE int pd_reservation_put(pd_ref d, pd_u32 r, pd_u64 now);

#include "event.c"
#include "enforcement.c"
#include "heap.c"
#include "group.c"
#include "server.c"
#include "budget.c"
#include "job.c"
#include "wakeup.c"
#include "settle.c"
#include "charge.c"
#include "lend.c"
#ifndef __bpf__
#include "raise.c"
#endif
#include "add.c"
#include "task.c"
#include "timer.c"
#include "window.c"
#include "reservation.c"
#include "reserve.c"
#include "advance.c"
#include "rank.c"
#include "select.c"
#include "init.c"
