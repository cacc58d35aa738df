/* SPDX-License-Identifier: MIT */
/*
 * The watchdog of RTAI: what happens to periodic tasks that overrun their periods.
 *
 * It looks at a task, hard or not, when that waits for its next period by rt_task_wait_period; a
 * task that never does has no more than the share of its group. Tasks with a budget have that
 * instead. The settings are those of all programs of this user, as long as one of them is there.
 */
#ifndef RTAI_WD_H
#define RTAI_WD_H

#include "rtai_lxrt.h"
#include "rtai_types.h"

typedef enum watchdog_policy {
	WD_NOTHING, /* nothing: the policy at first */
	WD_RESYNC, /* its periods restart: the wait returns RTE_TMROVRN */
	WD_DEBUG, /* the same, however late it is and however often */
	WD_STRETCH, /* its period becomes longer, and its periods restart */
	WD_SLIP, /* it sleeps for a part of its period before it waits */
	WD_SUSPEND, /* it is suspended; once resumed, its periods restart */
	WD_KILL /* the task ends, and its thread as by pthread_exit */
} wd_policy;

RTAI_BEGIN_DECLS

/*
 * Sets what happens to a task that overruns, and returns what it was. The first four policies have
 * a grace period of one, WD_DEBUG has no safety and no limit. Standard error says which tasks are
 * suspended or ended. -EINVAL: there is no such policy.
 * Test: watchdog.c
 */
wd_policy rt_wdset_policy(wd_policy new_value);

/*
 * Sets by how many of its periods a task may be late, 1 at first, and returns what it was. -EINVAL:
 * it is less than 1, or, with the first four policies, more.
 * Test: watchdog.c
 */
int rt_wdset_grace(int new_value);

/*
 * Sets by what the grace period is divided; the same values as of rt_wdset_grace.
 * Test: watchdog.c
 */
int rt_wdset_gracediv(int new_value);

/*
 * A task that is late by so many of its first periods, 100 at first, is suspended whatever the
 * policy, but for WD_NOTHING; none is with a negative number. Returns what it was. -EINVAL: less
 * than the grace period.
 * Test: watchdog.c
 */
int rt_wdset_safety(int new_value);

/*
 * Sets for how many percent of its period WD_SLIP has a task sleep, 10 at first, and returns what
 * it was. -EINVAL: a negative number.
 * Test: watchdog.c
 */
int rt_wdset_slip(int new_value);

/*
 * Sets by how many percent of the first period WD_STRETCH makes a period longer, 10 at first, and
 * returns what it was. -EINVAL: a negative number.
 * Test: watchdog.c
 */
int rt_wdset_stretch(int new_value);

/*
 * With so many overruns, 100 at first, a task is suspended whatever the policy, but for WD_NOTHING;
 * none is with a negative number. Returns what it was.
 * Test: watchdog.c
 */
int rt_wdset_limit(int new_value);

RTAI_END_DECLS

#endif
