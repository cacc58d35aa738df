/* SPDX-License-Identifier: MIT */
/* One lock of each kind. */
#ifndef LOCKS_H
#define LOCKS_H

#include "check.h"

#include <stdatomic.h>

/* All of a kind, and what tasks share with them. */
struct locks {
	struct punctual_mutex *mutex;
	struct punctual_cond *cond;
	struct punctual_sem *sem;
	struct punctual_barrier *barrier;
	atomic_uint stage, count, release;
	/* One that is destroyed and made again. */
	_Atomic(struct punctual_mutex *) changing;
};

static inline void create(struct locks *locks, uint32_t units, uint32_t maximum, uint32_t tasks)
{
	struct punctual_sem_attr attr = PUNCTUAL_SEM_ATTR_INIT;

	memset(locks, 0, sizeof(*locks));
	attr.units = units;
	attr.maximum = maximum;
	CHECK(punctual_mutex_create(&locks->mutex) == 0);
	CHECK(punctual_cond_create(&locks->cond) == 0);
	CHECK(punctual_sem_create(&attr, &locks->sem) == 0);
	CHECK(punctual_barrier_create(tasks, &locks->barrier) == 0);
}

static inline void destroy(struct locks *locks)
{
	CHECK(punctual_mutex_destroy(locks->mutex) == 0);
	CHECK(punctual_cond_destroy(locks->cond) == 0);
	CHECK(punctual_sem_destroy(locks->sem) == 0);
	CHECK(punctual_barrier_destroy(locks->barrier) == 0);
}

#endif
