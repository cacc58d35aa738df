/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* The exercise's additions: jobs and reservations of all three kinds. Values stand at the borders,
 * among ordinary ones. */
#pragma once

#include "exercise.h"

/* Of places that make a tree, the one above; now and then another. */
PD_INLINE pd_u32 exercise_above(pd_u32 place, pd_u64 r)
{
	return r % 64 ? place / 2 : r / 64 % (EXERCISE_PLACES + 1);
}

/* The task that a job is for, and where it stands: its task is set already. */
PD_ALWAYS_INLINE int exercise_place(pd_ref d, struct pd_job_attr PD_ARENA *a)
{
	pd_u64 r = exercise_random(d);
	pd_u32 place = 1 + r / 8 % EXERCISE_PLACES;

	a->group = 0;
	a->server = 0;
	a->budget_group = 0;
	a->budget_server = 0;
	a->reserved = 0;
	if (!EX(d)->trees) {
		a->group = r % 1024 == 0 ? 64 : 0;
		a->budget_group = r % 1024 == 1 ? 65 : 0;
		return 0;
	}
	if (r % 8 == 0) {
		a->task = PD_NONE;
		a->budget_server = place;
		a->budget_group = exercise_above(place, r >> 8);
		/* Few last, so that nodes run dry. */
		if (r >> 40 & 15) {
			a->finish = pd_later(EX(d)->now, 100 * ((r >> 32) % 256));
			a->budget %= 8000;
		}
	} else if (r % 8 < 3) {
		a->task = PD_NONE;
		a->server = place;
		if (r >> 40 & 15)
			a->finish = pd_later(EX(d)->now, 100 * ((r >> 32) % 1024));
		a->group = exercise_above(place, r >> 8);
		a->budget_group = r >> 24 & 4 ? (r >> 20) % EXERCISE_PLACES : 0;
	} else {
		a->group = r >> 24 & 2 ? place : place / 4;
		a->budget_group = r >> 24 & 12 ? 0 : (r >> 20) % (EXERCISE_PLACES + 1);
		a->server = r >> 32 & 255 ? 0 : place;
	}
	return 0;
}

PD_FN int exercise_draft_job(pd_ref d)
{
	pd_u64 now = EX(d)->now;
	pd_u64 r = exercise_random(d);
	struct pd_job_attr PD_ARENA *a = pd_draft(d);

	a->start = r % 4 == 0 ? now + exercise_below(d, 200000) : r % 4 == 1 ? now - (now >> 3) : now;
	r >>= 2;
	a->finish = r % 4 == 0 ? PD_INFINITE : pd_later(now, 1000 * exercise_below(d, 512));
	r >>= 2;
	if (r % 64 == 0)
		a->finish = now - (now >> 4);
	r >>= 6;
	a->budget = r % 4 == 0 ? 5000 : exercise_below(d, 100000);
	r >>= 2;
	if (r % 32 == 0)
		a->budget = 0;
	if (r % 32 == 1)
		a->budget = PD_INFINITE;
	r >>= 5;
	a->priority = (pd_i64)(r % 8) - 4;
	r >>= 3;
	if (r % 64 == 0)
		a->priority = (pd_i64)(1ULL << 63 ^ (0 - (r >> 6 & 1)));
	if (EX(d)->adds == EXERCISE_FILLING && a->budget > 4000) {
		a->finish = PD_INFINITE;
		a->budget = PD_INFINITE >> 1;
	}
	a->cookie = exercise_random(d);
	a->task = exercise_task(d);
	return exercise_place(d, a);
}

PD_ALWAYS_INLINE int exercise_add_job(pd_ref d)
{
	pd_i64 id;

	exercise_draft_job(d);
	id = pd_job_add(d, EX(d)->now);
	exercise_fold(d, (pd_u64)id);
	if (id > 0)
		PD_NTH(EX(d)->ids, exercise_random(d) % EXERCISE_IDS) = (pd_u64)id;
	return 0;
}

/* Drafts a reservation: its parameters, and the task, group or node that it is for. */
PD_FN int exercise_draft(pd_ref d)
{
	struct pd_reservation_attr PD_ARENA *a = &PD(d)->reservation_draft;
	pd_u64 now = EX(d)->now;
	pd_u64 r = exercise_random(d);
	pd_u32 place;

	a->period = 20000 + exercise_below(d, 200000);
	a->deadline = r % 2 ? a->period : a->period - exercise_below(d, 10000);
	a->budget = 1 + exercise_below(d, a->deadline);
	if (r >> 1 & 1)
		a->budget = a->budget / 8 + 1;
	if (r >> 2 & 1) /* more than 32 bits, for the wake-up rule's arithmetic */
		a->period += exercise_random(d) >> 8;
	if ((r >> 3) % 32 == 0)
		a->budget = a->deadline + 1;
	r >>= 8;
	a->start = r % 4 ? now + exercise_below(d, 50000) : now - (now >> 5);
	r >>= 2;
	a->priority = (pd_i64)(r % 8) - 4;
	r >>= 3;
	a->overrun = r % 4;
	a->wakeup_rule = r >> 2 & 1;
	a->own_cookie = r >> 3 & 1;
	a->cookie = r;
	a->task = exercise_task(d);
	r = exercise_random(d);
	place = 1 + r / 8 % EXERCISE_PLACES;
	a->group = r >> 24 & 63 ? 0 : 64;
	a->server = 0;
	a->budget_group = 0;
	a->budget_server = 0;
	if (EX(d)->trees && r % 16 == 0) {
		a->task = PD_NONE;
		a->group = 0;
		a->budget_server = place;
		a->budget_group = exercise_above(place, r >> 8);
	} else if (EX(d)->trees && r % 8 < 3) {
		a->task = PD_NONE;
		a->server = place;
		a->group = exercise_above(place, r >> 8);
	} else if (EX(d)->trees && r % 8 < 5) {
		a->group = place;
		a->budget_group = r >> 24 & 3 ? 0 : place;
	}
	/* Windows do not go with it. */
	if (PD(d)->drafted && r >> 32 & 15)
		a->wakeup_rule = 0;
	return 0;
}

PD_ALWAYS_INLINE int exercise_reserve(pd_ref d)
{
	pd_i64 number;

	exercise_draft(d);
	number = pd_reservation_add(d, EX(d)->now);
	exercise_fold(d, (pd_u64)number);
	if (number >= 0)
		PD_NTH(EX(d)->reservations, exercise_random(d) % EXERCISE_TASKS) = (pd_u32)number;
	return 0;
}
