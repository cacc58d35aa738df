/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* The exercise's steps: what happened to tasks and jobs, and what allocators ask for. */
#pragma once

#include "exercise_add.h"

/* A task goes, another comes in its place. */
PD_ALWAYS_INLINE int exercise_replace_task(pd_ref d, pd_u32 which)
{
	pd_u32 old;
	pd_i64 task;

	which &= EXERCISE_TASKS - 1;
	old = PD_NTH(EX(d)->tasks, which);
	pd_while (pd_task_lender(d, old) != PD_NONE)
		pd_task_lend(d, pd_task_lender(d, old), PD_NONE, EX(d)->now);
	exercise_fold_int(d, pd_task_gone(d, old, EX(d)->now));
	task = pd_task_add(d, EX(d)->now);
	exercise_fold(d, (pd_u64)task);
	if (task >= 0)
		PD_NTH(EX(d)->tasks, which) = (pd_u32)task;
	return 0;
}

/* What has run: the selected job, or another, a little or more than it had. */
PD_ALWAYS_INLINE int exercise_charge(pd_ref d)
{
	pd_u64 r = exercise_random(d);
	pd_u64 job = r % 4 ? PD_CPU(d, 0)->selected : exercise_id(d);
	pd_u64 ran = (r >> 2) % 8000;

	if ((r >> 16) % 8 == 0)
		ran = pd_job_remaining(d, job) + (r >> 2) % 64;
	if ((r >> 19) % 256 == 0)
		ran = r;
	exercise_fold_int(d, pd_charge(d, job, ran, EX(d)->now));
	return 0;
}

PD_ALWAYS_INLINE int exercise_time(pd_ref d)
{
	pd_u64 r = exercise_random(d);
	pd_u32 which = (r >> 1) % EXERCISE_TIMERS;
	pd_i64 timer;

	if (r & 1) {
		exercise_fold_int(d, pd_timer_cancel(d, PD_NTH(EX(d)->timers, which), EX(d)->now));
		return 0;
	}
	r >>= 8;
	timer = pd_timer_ask(d, EX(d)->now + (r % 8 ? r >> 3 & 0xffff : 0), r, EX(d)->now);
	exercise_fold(d, (pd_u64)timer);
	if (timer > 0)
		PD_NTH(EX(d)->timers, which) = (pd_u64)timer;
	return 0;
}

/* Another order for a group that may have members, or other terms for a reservation. */
PD_ALWAYS_INLINE int exercise_change(pd_ref d)
{
	pd_u64 r = exercise_random(d);
	pd_u32 first = 1 + (r >> 8) % 4;
	pd_u32 second = (r >> 16) % 5;
	pd_u32 group = EX(d)->trees ? r % (EXERCISE_PLACES + 1) : 0;

	if (r >> 24 & 1) {
		exercise_draft(d);
		exercise_fold_int(d, pd_reservation_change(d, exercise_reservation(d), EX(d)->now));
	} else {
		exercise_fold_int(d, pd_group_set_order(d, group, PD_ORDER(first, second, 0, 0)));
	}
	return 0;
}

/* To another task, and as often to none. */
PD_ALWAYS_INLINE int exercise_lend(pd_ref d, pd_u64 now)
{
	pd_u32 task = exercise_task(d);
	pd_u32 to = exercise_task(d);

	return pd_task_lend(d, task, exercise_random(d) % 2 ? to : PD_NONE, now);
}

/* A step of what happens by chance; the clock advances first. */
PD_FN int exercise_step(pd_ref d)
{
	pd_u64 r = exercise_random(d);
	pd_u32 what = r % 64;
	pd_u64 now;

	r >>= 6;
	if (r % 4)
		EX(d)->now += (r >> 2) % 3000;
	r >>= 16;
	if (r % 8 == 0 && EX(d)->timer > EX(d)->now && EX(d)->timer != PD_INFINITE &&
	    EX(d)->timer - EX(d)->now < 1000000)
		EX(d)->now = EX(d)->timer;
	r >>= 3;
	now = EX(d)->now;
	if (what < EX(d)->adds)
		exercise_add_job(d);
	else if (what < 30)
		exercise_charge(d);
	else if (what < 33)
		exercise_fold_int(d, pd_charge_task(d, exercise_task(d), r % 4000, now));
	else if (what < 34)
		exercise_time(d);
	else if (what < 37)
		exercise_fold_int(d, pd_job_cancel(d, exercise_id(d), now));
	else if (what < 41)
		exercise_fold_int(d, pd_job_complete(d, exercise_id(d), now));
	else if (what < 43)
		exercise_fold_int(d, pd_task_blocked(d, exercise_task(d), now));
	else if (what < 46)
		exercise_fold_int(d, pd_task_ready(d, exercise_task(d), now));
	else if (what < 47)
		exercise_fold_int(d, pd_task_done(d, exercise_task(d), now));
	else if (what < 48)
		exercise_fold_int(d, exercise_lend(d, now));
	else if (what < 49)
		exercise_change(d);
	else if (what < 50)
		return r % 4 ? exercise_reserve(d) : exercise_replace_task(d, (pd_u32)(r >> 2));
	else if (what < 51)
		return r % 2 ? exercise_reserve(d) :
			       pd_reservation_remove(d, exercise_reservation(d), now) & 0;
	else if (what < 60)
		EX(d)->wanted = EXERCISE_INSTANT;
	else
		EX(d)->wanted = what < 62 && EX(d)->popping ? EXERCISE_POP : EXERCISE_ASK;
	EX(d)->argument = r;
	return 0;
}

/* Another ordering and granularity; all that was there goes first. */
PD_ALWAYS_INLINE int exercise_reset(pd_ref d, pd_u32 batch)
{
	pd_u32 first = 1 + batch % 4;
	pd_u32 second = 1 + (first + batch / 4 % 3) % 4;
	pd_u32 third = 10 - first - second;
	pd_u32 i = PD_ZERO(d);

	pd_while (i < EXERCISE_TASKS) {
		exercise_replace_task(d, i);
		i++;
	}
	/* What was for groups and nodes. */
	i = PD_ZERO(d);
	pd_while (i < PD(d)->limits.reservations) {
		exercise_fold_int(d, pd_reservation_remove(d, i, EX(d)->now));
		i++;
	}
	i = PD_ZERO(d);
	pd_while (i <= PD(d)->limits.jobs) {
		if (PD_JOB(d, i)->state)
			exercise_fold_int(d, pd_job_cancel(d, PD_JOB(d, i)->id, EX(d)->now));
		i++;
	}
	/* The third is any of the two that are left. */
	third = third == 2 * (third / 2) ? third / 2 + 1 : third / 2;
	pd_while (third == first || third == second || third < 1 || third > 4)
		third = third % 4 + 1;
	exercise_fold_int(d, pd_group_set_order(
				     d, 0,
				     PD_ORDER(first, batch % 3 ? second : 0, batch % 3 == 2 ? third : 0,
					      batch % 6 == 5 ? 10 - first - second - third : 0)));
	exercise_fold_int(d, pd_group_set_order(d, batch, PD_ORDER(batch, 0, batch, 0)));
	exercise_fold_int(d, pd_set_granularity(d, batch % 5 * 3000));
	return 0;
}

PD_ALWAYS_INLINE int exercise_begin(pd_ref d, pd_u64 seed, pd_u32 batch, pd_u32 count)
{
	pd_u32 i = PD_ZERO(d);

	if (batch == 0) {
		EX(d)->random = seed ? seed : 1;
		EX(d)->now = 1000000;
		EX(d)->timer = 0;
		EX(d)->hash = 0;
		EX(d)->records = 0;
		EX(d)->wanted = EXERCISE_NOTHING;
		pd_while (i < EXERCISE_IDS) {
			PD_NTH(EX(d)->ids, i) = 0;
			PD_NTH(EX(d)->timers, i % EXERCISE_TIMERS) = 0;
			PD_NTH(EX(d)->tasks, i % EXERCISE_TASKS) = PD_NONE;
			PD_NTH(EX(d)->reservations, i % EXERCISE_TASKS) = 0;
			i++;
		}
	}
	/* One of eight fills the table of jobs, one overflows the ring of events, and one of four
	 * knows group 0 alone. */
	EX(d)->adds = batch % 8 == 3 ? EXERCISE_FILLING : 16;
	EX(d)->popping = batch % 8 != 5;
	EX(d)->trees = batch % 4 != 0;
	EX(d)->left = count;
	/* Once, the clock's end comes near. */
	if (batch == 97)
		EX(d)->now = PD_INFINITE - (1ULL << 30);
	if (batch % 2 == 0)
		exercise_reset(d, batch / 2);
	return 0;
}

/* Steps, until the other program is wanted. */
PD_ALWAYS_INLINE int exercise_tell(pd_ref d)
{
	pd_while (EX(d)->left && !EX(d)->wanted) {
		EX(d)->left--;
		exercise_step(d);
		exercise_records(d);
	}
	return 0;
}
