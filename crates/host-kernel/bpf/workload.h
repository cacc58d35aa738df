/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * What both builds of the dispatcher are put through: included behind dispatcher.c by
 * dispatcher.bpf.c and by native.c. Calls come from one pseudo-random sequence, and everything that
 * the dispatcher says goes into one hash.
 */
#ifndef PUNCTUAL_WORKLOAD_H
#define PUNCTUAL_WORKLOAD_H

#include "calls.h"

/* Few enough that random calls meet: of one task, of one time, of one job. */
#define EXERCISE_TASKS 64U
#define EXERCISE_IDS 256U
/* Of 64 operations, when additions are to fill the table of jobs. */
#define EXERCISE_FILLING 40U

struct exercise {
	pd_u64 random;
	pd_u64 now;
	pd_u64 timer;
	pd_u64 hash;
	pd_u64 records; /* folded so far */
	pd_u32 batch;
	pd_u32 adds;  /* of 64 operations */
	pd_u32 popping;
	pd_u32 unused;
	pd_u64 ids[EXERCISE_IDS]; /* jobs, most of them gone */
	pd_u32 tasks[EXERCISE_TASKS];
	pd_u32 reservations[EXERCISE_TASKS];
	/* decisions */
	pd_u64 running;
	pd_u64 finishes[PD_DECISION_JOBS];
	pd_u64 periods[PD_DECISION_JOBS];
};

#ifdef __bpf__
struct exercise PD_ARENA pd_exercises[PD_DOMAINS];
#define EX(d) (&pd_exercises[PD_DOMAIN(d)])
#else
/* One dispatcher at a time in each thread is all that the native side needs. */
static _Thread_local struct exercise pd_exercise;
#define EX(d) ((void)(d), &pd_exercise)
#endif

PD_INLINE pd_u64 exercise_random(pd_ref d)
{
	pd_u64 x = EX(d)->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	EX(d)->random = x;
	return x * 0x2545F4914F6CDD1DULL >> 16;
}

PD_INLINE pd_u64 exercise_below(pd_ref d, pd_u64 limit)
{
	return exercise_random(d) % limit;
}

PD_INLINE void exercise_fold(pd_ref d, pd_u64 value)
{
	pd_u64 h = (EX(d)->hash ^ value) * 0x9E3779B97F4A7C15ULL;

	EX(d)->hash = h ^ h >> 29;
}

PD_INLINE pd_u64 exercise_id(pd_ref d)
{
	return EX(d)->ids[exercise_random(d) % EXERCISE_IDS];
}

/* Now and then one that is not there. */
PD_INLINE pd_u32 exercise_task(pd_ref d)
{
	pd_u64 r = exercise_random(d);

	return r % 128 ? EX(d)->tasks[r / 128 % EXERCISE_TASKS] : (pd_u32)r;
}

PD_INLINE pd_u32 exercise_reservation(pd_ref d)
{
	return EX(d)->reservations[exercise_random(d) % EXERCISE_TASKS];
}

/* Events as they come out. */
PD_FOLD int exercise_pop(pd_ref d, pd_u32 most)
{
	pd_while (most-- && PD(d)->event_head != PD(d)->event_tail) {
		pd_event_p e = PD_EVENT(d, PD(d)->event_tail & (PD(d)->limits.events - 1));

		exercise_fold(d, e->time);
		exercise_fold(d, (pd_u64)e->kind << 32 | e->task);
		exercise_fold(d, e->job);
		exercise_fold(d, e->cookie);
		exercise_fold(d, e->used);
		exercise_fold(d, e->remaining);
		pd_event_pop(d);
	}
	return pd_event_pop(d);
}

PD_FN int exercise_records(pd_ref d)
{
	pd_while (EX(d)->records < PD(d)->record_count) {
		pd_record_p r = PD_RECORD(d, EX(d)->records++ & (PD(d)->limits.records - 1));

		exercise_fold(d, r->time);
		exercise_fold(d, r->a);
		exercise_fold(d, r->b);
		exercise_fold(d, (pd_u64)r->kind << 32 | r->small);
	}
	return 0;
}

/* Values that stand at the borders, among ordinary ones. */
PD_FOLD int exercise_add_job(pd_ref d)
{
	pd_u64 now = EX(d)->now;
	pd_u64 r = exercise_random(d);
	struct pd_job_attr PD_ARENA *a = pd_draft(d);
	pd_i64 id;

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
	r >>= 7;
	if (EX(d)->adds == EXERCISE_FILLING && a->budget > 4000) {
		a->finish = PD_INFINITE;
		a->budget = PD_INFINITE >> 1;
	}
	a->cookie = exercise_random(d);
	a->task = exercise_task(d);
	a->group = r % 128 == 0 ? 1 : r % 128 == 1 ? 64 : 0;
	r >>= 7;
	a->server = r % 128 == 0;
	a->budget_group = r % 128 == 1;
	a->budget_server = 0;
	a->reserved = 0;
	id = pd_job_add(d, now);
	exercise_fold(d, (pd_u64)id);
	if (id > 0)
		EX(d)->ids[exercise_random(d) % EXERCISE_IDS] = (pd_u64)id;
	return 0;
}

PD_FOLD int exercise_reserve(pd_ref d)
{
	struct pd_reservation_attr PD_ARENA *a = &PD(d)->reservation_draft;
	pd_u64 now = EX(d)->now;
	pd_u64 r = exercise_random(d);
	pd_i64 number;

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
	a->task = exercise_task(d);
	a->group = r % 64 == 0;
	r >>= 6;
	a->overrun = r % 4;
	a->wakeup_rule = r >> 2 & 1;
	number = pd_reservation_add(d, now);
	exercise_fold(d, (pd_u64)number);
	if (number >= 0)
		EX(d)->reservations[exercise_random(d) % EXERCISE_TASKS] = (pd_u32)number;
	return 0;
}

/* A task goes, another comes in its place. */
PD_FOLD int exercise_replace_task(pd_ref d, pd_u32 which)
{
	pd_i64 task;

	which &= EXERCISE_TASKS - 1;
	exercise_fold(d, (pd_u64)(pd_i64)pd_task_gone(d, EX(d)->tasks[which], EX(d)->now));
	task = pd_task_add(d, EX(d)->now);
	exercise_fold(d, (pd_u64)task);
	if (task >= 0)
		EX(d)->tasks[which] = (pd_u32)task;
	return 0;
}

/* What a host does at an instant. */
PD_FOLD int exercise_instant(pd_ref d)
{
	pd_u64 now = EX(d)->now;
	pd_u32 ranks = (pd_u32)exercise_below(d, 6);
	pd_u32 i = PD_ZERO(d);

	exercise_fold(d, (pd_u64)(pd_i64)pd_advance(d, now));
	exercise_fold(d, pd_select(d, 0, now));
	pd_while (i < ranks) {
		exercise_fold(d, pd_runner_up(d, 0, i));
		i++;
	}
	exercise_fold(d, pd_path(d, 0, 0));
	EX(d)->timer = pd_timer(d, 0, ranks, now);
	exercise_fold(d, EX(d)->timer);
	return 0;
}

PD_FOLD int exercise_ask(pd_ref d)
{
	pd_u32 r = exercise_reservation(d);

	exercise_fold(d, pd_reservation_job(d, r));
	exercise_fold(d, pd_reservation_delayed(d, r));
	exercise_fold(d, (pd_u64)pd_reservation_error(d, r));
	exercise_fold(d, pd_reservation_take_lost(d, r));
	exercise_fold(d, pd_job_remaining(d, exercise_id(d)));
	exercise_fold(d, pd_select(d, 0, EX(d)->now));
	exercise_fold(d, pd_runner_up(d, 0, (pd_u32)exercise_below(d, 18)));
	return 0;
}

/* What has run: the selected job, or another, a little or more than it had. */
PD_FOLD int exercise_charge(pd_ref d)
{
	pd_u64 r = exercise_random(d);
	pd_u64 job = r % 4 ? PD_CPU(d, 0)->selected : exercise_id(d);
	pd_u64 ran = (r >> 2) % 8000;

	if ((r >> 16) % 8 == 0)
		ran = pd_job_remaining(d, job) + (r >> 2) % 64;
	if ((r >> 19) % 256 == 0)
		ran = r;
	exercise_fold(d, (pd_u64)(pd_i64)pd_charge(d, job, ran, EX(d)->now));
	return 0;
}

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
	else if (what < 34)
		exercise_fold(d, (pd_u64)(pd_i64)pd_charge_task(d, exercise_task(d), r % 4000, now));
	else if (what < 37)
		exercise_fold(d, (pd_u64)(pd_i64)pd_job_cancel(d, exercise_id(d), now));
	else if (what < 41)
		exercise_fold(d, (pd_u64)(pd_i64)pd_job_complete(d, exercise_id(d), now));
	else if (what < 43)
		exercise_fold(d, (pd_u64)(pd_i64)pd_task_blocked(d, exercise_task(d), now));
	else if (what < 46)
		exercise_fold(d, (pd_u64)(pd_i64)pd_task_ready(d, exercise_task(d), now));
	else if (what < 49)
		exercise_fold(d, (pd_u64)(pd_i64)pd_task_done(d, exercise_task(d), now));
	else if (what < 50)
		return r % 4 ? exercise_reserve(d) : exercise_replace_task(d, (pd_u32)(r >> 2));
	else if (what < 51)
		return r % 2 ? exercise_reserve(d) :
			       pd_reservation_remove(d, exercise_reservation(d), now) & 0;
	else if (what < 60)
		exercise_instant(d);
	else if (what < 62 && EX(d)->popping)
		exercise_fold(d, (pd_u64)(pd_i64)exercise_pop(d, (pd_u32)(r % 64)));
	else
		exercise_ask(d);
	return 0;
}

/* Another ordering and granularity; everything that was there goes first. */
PD_FOLD int exercise_begin(pd_ref d, pd_u32 batch)
{
	pd_u32 first = 1 + batch % 4;
	pd_u32 second = 1 + (first + batch / 4 % 3) % 4;
	pd_u32 third = 10 - first - second;
	pd_u32 i = PD_ZERO(d);

	pd_while (i < EXERCISE_TASKS) {
		exercise_replace_task(d, i);
		i++;
	}
	/* The third is any of the two that are left. */
	third = third == 2 * (third / 2) ? third / 2 + 1 : third / 2;
	pd_while (third == first || third == second || third < 1 || third > 4)
		third = third % 4 + 1;
	exercise_fold(d, (pd_u64)(pd_i64)pd_group_set_order(
				d, 0,
				PD_ORDER(first, batch % 3 ? second : 0, batch % 3 == 2 ? third : 0,
					 batch % 6 == 5 ? 10 - first - second - third : 0)));
	exercise_fold(d, (pd_u64)(pd_i64)pd_group_set_order(d, batch, PD_ORDER(batch, 0, batch, 0)));
	exercise_fold(d, (pd_u64)(pd_i64)pd_set_granularity(d, batch % 5 * 3000));
	return 0;
}

/* `count` operations of batch `batch`; the hash of all so far. */
PD_FOLD pd_u64 exercise_run(pd_ref d, pd_u64 seed, pd_u32 batch, pd_u32 count)
{
	pd_u32 i = PD_ZERO(d);

	if (batch == 0) {
		EX(d)->random = seed ? seed : 1;
		EX(d)->now = 1000000;
		EX(d)->timer = 0;
		EX(d)->hash = 0;
		EX(d)->records = 0;
		pd_while (i < EXERCISE_IDS) {
			EX(d)->ids[i] = 0;
			EX(d)->tasks[i % EXERCISE_TASKS] = PD_NONE;
			EX(d)->reservations[i % EXERCISE_TASKS] = 0;
			i++;
		}
	}
	EX(d)->batch = batch;
	/* One of eight fills the table of jobs, one overflows the ring of events. */
	EX(d)->adds = batch % 8 == 3 ? EXERCISE_FILLING : 16;
	EX(d)->popping = batch % 8 != 5;
	/* Once, the clock's end comes near. */
	if (batch == 97)
		EX(d)->now = PD_INFINITE - (1ULL << 30);
	if (batch % 2 == 0)
		exercise_begin(d, batch / 2);
	pd_while (count--) {
		exercise_step(d);
		exercise_records(d);
	}
	return EX(d)->hash;
}

/*
 * Full decisions, as bench/core/decision.c makes them: charge, end one job, what is due, add one,
 * select, next timer. `jobs` jobs in group 0, EDF.
 */
PD_INLINE pd_u64 decisions_add(pd_ref d, pd_u32 task, pd_u64 now)
{
	struct pd_job_attr PD_ARENA *a = pd_draft(d);

	EX(d)->finishes[task] += EX(d)->periods[task];
	a->start = now;
	a->finish = EX(d)->finishes[task];
	a->budget = 1000000000;
	a->priority = 0;
	a->cookie = task;
	a->task = task;
	a->group = 0;
	a->server = 0;
	a->budget_group = 0;
	a->budget_server = 0;
	return (pd_u64)pd_job_add(d, now);
}

PD_FOLD int decisions_begin(pd_ref d, pd_u32 jobs)
{
	pd_u32 i = PD_ZERO(d);

	if (!jobs || jobs > PD_DECISION_JOBS)
		return PD_EINVALID;
	EX(d)->random = 88172645463325252ULL;
	EX(d)->now = 1;
	EX(d)->hash = 0;
	if (pd_group_set_order(d, 0, PD_ORDER(PD_BY_FINISH, PD_BY_PRIORITY, 0, 0)))
		return PD_EINVALID;
	pd_while (i < jobs) {
		pd_i64 task = pd_task_add(d, 1);

		if (task < 0 || task >= PD_DECISION_JOBS)
			return PD_EINVALID;
		EX(d)->periods[task] = (1 + exercise_below(d, 100)) * 1000 * jobs;
		EX(d)->finishes[task] = 1ULL << 40 | exercise_below(d, EX(d)->periods[task]);
		decisions_add(d, (pd_u32)task, 1);
		i++;
	}
	EX(d)->running = pd_select(d, 0, 1);
	return 0;
}

PD_FOLD pd_u64 decisions_run(pd_ref d, pd_u32 count)
{
	pd_while (count--) {
		pd_u64 now = EX(d)->now += 1000;
		pd_u64 running = EX(d)->running;
		pd_u32 task = PD_JOB(d, (pd_u32)running)->attr.task;

		pd_charge(d, running, 900, now);
		pd_job_complete(d, running, now);
		pd_advance(d, now);
		decisions_add(d, task & (PD_DECISION_JOBS - 1), now);
		EX(d)->running = pd_select(d, 0, now);
		exercise_fold(d, EX(d)->running ^ pd_timer(d, 0, 1, now));
		PD(d)->event_tail = PD(d)->event_head;
	}
	return EX(d)->hash;
}

#endif
