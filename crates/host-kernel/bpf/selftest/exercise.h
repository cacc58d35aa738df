/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * What both builds of the dispatcher are put through: included behind dispatcher.c by
 * dispatcher.bpf.c and by native.c. Calls come from one pseudo-random sequence, and everything
 * that the dispatcher says goes into one hash. After one that begins a batch, two programs take
 * turns, so that none is large: one tells what happened (exercise_tell.h), one does what a host
 * does at an instant (here).
 */
#pragma once

#include "calls.h"

/* Few enough that random calls meet: of one task, of one time, of one job, of one place. */
#define EXERCISE_TASKS 64U
#define EXERCISE_IDS 256U
#define EXERCISE_TIMERS 64U
#define EXERCISE_PLACES 8U
/* Of 64 operations, when additions are to fill the table of jobs. */
#define EXERCISE_FILLING 40U

/* What the other program is to do. */
enum exercise_wanted {
	EXERCISE_NOTHING = 0,
	EXERCISE_INSTANT = 1,
	EXERCISE_POP = 2,
	EXERCISE_ASK = 3,
};

struct exercise {
	pd_u64 random;
	pd_u64 now;
	pd_u64 timer;
	pd_u64 hash;
	pd_u64 records;	 /* folded so far */
	pd_u64 argument; /* of what is wanted */
	pd_u32 adds;	 /* of 64 operations */
	pd_u32 popping;
	pd_u32 trees; /* groups and budget groups too */
	pd_u32 wanted;
	pd_u32 left;
	pd_u32 unused;
	pd_u64 window_end; /* of the last one drafted */
	pd_u64 ids[EXERCISE_IDS]; /* jobs, most of them gone */
	pd_u64 timers[EXERCISE_TIMERS];
	pd_u32 tasks[EXERCISE_TASKS];
	pd_u32 reservations[EXERCISE_TASKS];
};

#ifdef __bpf__
#define EX(d) PD_POINTER(struct exercise, (d) + PD_OFFSET(beside))
#else
#define EX(d) ((struct exercise *)((char *)(d) - PD_BESIDE))
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

PD_INLINE void exercise_fold_int(pd_ref d, int value)
{
	exercise_fold(d, (pd_u64)(pd_i64)value);
}

PD_INLINE pd_u64 exercise_id(pd_ref d)
{
	return PD_NTH(EX(d)->ids, exercise_random(d) % EXERCISE_IDS);
}

/* Now and then one that is not there. */
PD_INLINE pd_u32 exercise_task(pd_ref d)
{
	pd_u64 r = exercise_random(d);

	return r % 128 ? PD_NTH(EX(d)->tasks, r / 128 % EXERCISE_TASKS) : (pd_u32)r;
}

PD_INLINE pd_u32 exercise_reservation(pd_ref d)
{
	return PD_NTH(EX(d)->reservations, exercise_random(d) % EXERCISE_TASKS);
}

/* Events as they come out. */
PD_ALWAYS_INLINE int exercise_pop(pd_ref d, pd_u32 most)
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

/* What a host does at an instant. */
PD_ALWAYS_INLINE int exercise_instant(pd_ref d)
{
	pd_u64 now = EX(d)->now;
	pd_u32 ranks = (pd_u32)exercise_below(d, 6);
	pd_u32 i = PD_ZERO(d);

	exercise_fold_int(d, pd_advance(d, now));
	exercise_fold(d, pd_select(d, 0, now));
	pd_while (i < ranks) {
		exercise_fold(d, pd_runner_up(d, 0, i));
		i++;
	}
	i = PD_ZERO(d);
	pd_while (i < 4) {
		exercise_fold(d, pd_path(d, 0, i));
		i++;
	}
	EX(d)->timer = pd_timer(d, 0, ranks, now);
	exercise_fold(d, EX(d)->timer);
	return 0;
}

/* Windows for the next reservation, mostly one behind the other. */
PD_FN int exercise_window(pd_ref d)
{
	pd_u64 r = exercise_random(d);
	pd_u32 begins = r % 4 == 0 || !PD(d)->drafted;
	pd_u64 start = (begins ? 0 : EX(d)->window_end) + (r >> 2) % 4096;
	pd_u64 length = (r >> 14) % 8192;
	int drafted;

	if ((r >> 27) % 64 == 0) {
		exercise_fold_int(d, pd_window_drop(d, EX(d)->now));
		return 0;
	}
	if ((r >> 33) % 64 == 0)
		start -= 4096;
	drafted = pd_window_add(d, start, length, begins, EX(d)->now);
	exercise_fold_int(d, drafted);
	if (!drafted)
		EX(d)->window_end = start + length;
	return 0;
}

PD_ALWAYS_INLINE int exercise_ask(pd_ref d)
{
	pd_u32 r = exercise_reservation(d);
	pd_u64 job = exercise_id(d);

	exercise_fold(d, pd_reservation_job(d, r));
	exercise_fold(d, pd_reservation_delayed(d, r));
	exercise_fold(d, (pd_u64)pd_reservation_error(d, r));
	exercise_fold(d, pd_reservation_take_lost(d, r));
	exercise_fold(d, pd_job_remaining(d, job));
	exercise_fold(d, pd_job_used(d, job));
	exercise_fold(d, pd_job_task(d, job));
	exercise_fold_int(d, pd_job_standing(d, job));
	exercise_fold(d, pd_job_allowance(d, job));
	exercise_fold(d, pd_task_job(d, exercise_task(d)));
	exercise_fold(d, pd_select(d, 0, EX(d)->now));
	exercise_fold(d, pd_runner_up(d, 0, (pd_u32)exercise_below(d, 18)));
	exercise_window(d);
	return 0;
}

/* What the last step wants. */
PD_ALWAYS_INLINE int exercise_host(pd_ref d)
{
	if (EX(d)->wanted == EXERCISE_INSTANT)
		exercise_instant(d);
	else if (EX(d)->wanted == EXERCISE_POP)
		exercise_fold_int(d, exercise_pop(d, (pd_u32)(EX(d)->argument % 64)));
	else if (EX(d)->wanted == EXERCISE_ASK)
		exercise_ask(d);
	EX(d)->wanted = EXERCISE_NOTHING;
	return exercise_records(d);
}
