/* SPDX-License-Identifier: MIT */
/*
 * Lending (bandwidth inheritance: Lipari, Lamastra and Abeni 2004): while a task waits for what
 * another one holds, its jobs execute the holder and are charged for it. A task lends to one other,
 * which may lend on, so that those that lend to a task in the end are a tree below it, all ready or
 * all blocked as that task is.
 */
#include "internal.h"

PD_INLINE int pd_task_there(pd_ref d, pd_u32 task)
{
	return task < PD(d)->limits.tasks && PD_TASK(d, task)->used;
}

/* Whether `task` is in the tree below `top`. */
PD_FN int pd_lends_below(pd_ref d, pd_u32 task, pd_u32 top)
{
	pd_while (task != top && task != PD_NONE)
		task = PD_TASK(d, task)->lends_to;
	return task == top;
}

/* The next one after `task` of the tree below `top`, of which that is the first; PD_NONE after the
 * last. */
PD_FN pd_u32 pd_next_lender(pd_ref d, pd_u32 task, pd_u32 top)
{
	if (PD_TASK(d, task)->first_lender != PD_NONE)
		return PD_TASK(d, task)->first_lender;
	pd_while (task != top && PD_TASK(d, task)->next_lender == PD_NONE)
		task = PD_TASK(d, task)->lends_to;
	return task == top ? PD_NONE : PD_TASK(d, task)->next_lender;
}

/* What executes on the task's jobs sleeps. */
PD_FN int pd_task_block(pd_ref d, pd_u32 task)
{
	pd_u32 i = PD_TASK(d, task)->first_job;

	PD_TASK(d, task)->blocked = 1;
	pd_while (i != PD_NONE) {
		if (PD_JOB(d, i)->state == PD_READY)
			pd_job_leave(d, i, PD_BLOCKED);
		else if (PD_JOB(d, i)->state == PD_THROTTLED)
			PD_JOB(d, i)->state = PD_BLOCKED;
		i = PD_JOB(d, i)->next;
	}
	return 0;
}

/* It no longer sleeps. */
PD_FN int pd_task_wake(pd_ref d, pd_u32 task, pd_u64 now)
{
	pd_u32 i = PD_TASK(d, task)->first_job;

	PD_TASK(d, task)->blocked = 0;
	pd_event_task(d, now, PD_EV_TASK_READY, task, 0);
	pd_while (i != PD_NONE) {
		if (PD_JOB(d, i)->state == PD_BLOCKED)
			pd_job_stand(d, i, now);
		i = PD_JOB(d, i)->next;
	}
	return 0;
}

/* These two walk a tree apart from what is done to each task, and the wake-up rule is apart from
 * that too: the calls below it are as deep as the kernel's verifier accepts. */
PD_NOINLINE int pd_tree_block(pd_ref d, pd_u32 top, pd_u64 now)
{
	pd_u32 task = PD_ZERO(d) + top;

	pd_while (task != PD_NONE) {
		pd_event_task(d, now, PD_EV_TASK_BLOCKED, task, 0);
		pd_task_block(d, task);
		task = pd_next_lender(d, task, top);
	}
	return 0;
}

PD_NOINLINE int pd_tree_wake(pd_ref d, pd_u32 top, pd_u64 now)
{
	pd_u32 task = PD_ZERO(d) + top;

	pd_while (task != PD_NONE) {
		pd_u32 r = PD_TASK(d, task)->reservation;

		pd_task_wake(d, task, now);
		if (r != PD_NONE && pd_reservation_woke(d, r, now))
			pd_reservation_put(d, r, now);
		task = pd_next_lender(d, task, top);
	}
	return 0;
}

/* The whole tree executes another task. */
PD_FN int pd_tree_execute(pd_ref d, pd_u32 top, pd_u32 executed)
{
	pd_u32 task = PD_ZERO(d) + top;

	pd_while (task != PD_NONE) {
		PD_TASK(d, task)->executes = executed;
		task = pd_next_lender(d, task, top);
	}
	return 0;
}

/* After `top` began or ceased to lend: its tree is ready or blocked as what it executes now. */
PD_NOINLINE int pd_tree_follow(pd_ref d, pd_u32 top, pd_u64 now)
{
	pd_u32 to = PD_TASK(d, top)->lends_to;
	pd_u32 executed = to == PD_NONE ? top : PD_TASK(d, to)->executes;

	pd_tree_execute(d, top, executed);
	if (PD_TASK(d, top)->blocked == PD_TASK(d, executed)->sleeps)
		return 0;
	return PD_TASK(d, top)->blocked ? pd_tree_wake(d, top, now) : pd_tree_block(d, top, now);
}

/* Into the list of those that lend to a task. */
PD_INLINE void pd_lender_add(pd_ref d, pd_u32 task, pd_u32 to)
{
	pd_u32 next = PD_TASK(d, to)->first_lender;

	PD_TASK(d, task)->lends_to = to;
	PD_TASK(d, task)->prev_lender = PD_NONE;
	PD_TASK(d, task)->next_lender = next;
	if (next != PD_NONE)
		PD_TASK(d, next)->prev_lender = task;
	PD_TASK(d, to)->first_lender = task;
}

/* Out of it, if it is in one. */
PD_FN int pd_lender_del(pd_ref d, pd_u32 task)
{
	pd_u32 to = PD_TASK(d, task)->lends_to;
	pd_u32 prev = PD_TASK(d, task)->prev_lender;
	pd_u32 next = PD_TASK(d, task)->next_lender;

	if (to == PD_NONE)
		return 0;
	if (prev == PD_NONE)
		PD_TASK(d, to)->first_lender = next;
	else
		PD_TASK(d, prev)->next_lender = next;
	if (next != PD_NONE)
		PD_TASK(d, next)->prev_lender = prev;
	PD_TASK(d, task)->lends_to = PD_NONE;
	return 0;
}

PD_API int pd_task_lend(pd_ref d, pd_u32 task, pd_u32 to, pd_u64 now)
{
	if (!pd_task_there(d, task) || (to != PD_NONE && !pd_task_there(d, to)))
		return -ENOENT;
	if (PD_TASK(d, task)->lends_to == to)
		return 0;
	if (to != PD_NONE && pd_lends_below(d, to, task))
		return -ELOOP;
	pd_record(d, PD_REC_TASK_LEND, task, now, to, 0);
	pd_lender_del(d, task);
	if (to != PD_NONE)
		pd_lender_add(d, task, to);
	pd_tree_follow(d, task, now);
	pd_settle(d, now);
	return 0;
}

PD_API pd_u32 pd_task_lender(pd_ref d, pd_u32 task)
{
	return pd_task_there(d, task) ? PD_TASK(d, task)->first_lender : PD_NONE;
}
