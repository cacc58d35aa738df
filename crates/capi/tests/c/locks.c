/* SPDX-License-Identifier: MIT */
/* Mutexes, condition variables, semaphores and barriers of tasks. */
#include "locks.h"

#include <pthread.h>

static struct punctual_task *start(struct punctual *set, const char *name, uint64_t period,
				   uint64_t budget, void *(*function)(void *), void *argument)
{
	struct punctual_task_attr attr = task_attr(name, period, budget);
	struct punctual_task *task;

	CHECK(punctual_task_create(set, &attr, function, argument, &task) == 0);
	return task;
}

static void join(struct punctual_task *task)
{
	CHECK(punctual_task_join(task, NULL) == 0);
}

static void await(atomic_uint *at, unsigned value)
{
	while (atomic_load(at) < value)
		sleep_ms(1);
}

static void one_task(void)
{
	struct locks locks;
	uint64_t until;

	create(&locks, 1, 1, 2);
	CHECK(punctual_mutex_lock(locks.mutex) == 0);
	FAILS(punctual_mutex_lock(locks.mutex), EDEADLK);
	FAILS(punctual_mutex_lock_until(locks.mutex, 0), EDEADLK);
	FAILS(punctual_mutex_trylock(locks.mutex), EBUSY);
	FAILS(punctual_mutex_destroy(locks.mutex), EBUSY);
	FAILS(punctual_mutex_consistent(locks.mutex), EINVAL);
	until = punctual_clock() + 3 * MS;
	FAILS(punctual_cond_wait_until(locks.cond, locks.mutex, until), ETIMEDOUT);
	CHECK(punctual_clock() >= until);
	CHECK(punctual_mutex_unlock(locks.mutex) == 0);
	FAILS(punctual_mutex_unlock(locks.mutex), EPERM);
	FAILS(punctual_mutex_consistent(locks.mutex), EPERM);
	FAILS(punctual_cond_wait(locks.cond, locks.mutex), EPERM);
	CHECK(strstr(punctual_last_error(), "hold"));
	CHECK(punctual_mutex_trylock(locks.mutex) == 0);
	CHECK(punctual_mutex_unlock(locks.mutex) == 0);
	/* It is free, so that the time is of no importance. */
	CHECK(punctual_mutex_lock_until(locks.mutex, 0) == 0);
	CHECK(punctual_mutex_unlock(locks.mutex) == 0);

	CHECK(punctual_sem_wait(locks.sem) == 0);
	until = punctual_clock() + 3 * MS;
	FAILS(punctual_sem_wait_until(locks.sem, until), ETIMEDOUT);
	CHECK(punctual_clock() >= until);
	CHECK(punctual_sem_post(locks.sem) == 0);
	CHECK(punctual_sem_wait_until(locks.sem, 0) == 0);
	FAILS(punctual_barrier_wait_until(locks.barrier, punctual_clock() + MS), ETIMEDOUT);
	FAILS(punctual_barrier_wait_until(locks.barrier, punctual_clock() + MS), ETIMEDOUT);
	destroy(&locks);
	CHECK(punctual_barrier_create(1, &locks.barrier) == 0);
	CHECK(punctual_barrier_wait(locks.barrier) == 1);
	CHECK(punctual_barrier_destroy(locks.barrier) == 0);
}

static void *ends_with_it(void *argument)
{
	struct locks *locks = argument;

	CHECK(punctual_mutex_lock(locks->mutex) == 0);
	atomic_fetch_add(&locks->stage, 1);
	/* Where a task waits for it, until that one does. */
	sleep_ms(5);
	return NULL;
}

static void the_holder_ends(struct punctual *set)
{
	struct punctual_mutex *again;
	struct punctual_task *task;
	struct locks locks;

	create(&locks, 0, 1, 1);
	task = start(set, "ends", 20 * MS, MS, ends_with_it, &locks);
	join(task);
	FAILS(punctual_mutex_trylock(locks.mutex), EOWNERDEAD);
	FAILS(punctual_mutex_trylock(locks.mutex), EBUSY);
	CHECK(punctual_mutex_unlock(locks.mutex) == 0);
	FAILS(punctual_mutex_lock(locks.mutex), EOWNERDEAD);
	CHECK(punctual_mutex_consistent(locks.mutex) == 0);
	FAILS(punctual_mutex_consistent(locks.mutex), EINVAL);
	CHECK(punctual_mutex_unlock(locks.mutex) == 0);
	CHECK(punctual_mutex_lock(locks.mutex) == 0);
	CHECK(punctual_mutex_unlock(locks.mutex) == 0);

	/* While this one waits, or before. */
	task = start(set, "ends", 20 * MS, MS, ends_with_it, &locks);
	await(&locks.stage, 2);
	FAILS(punctual_mutex_lock(locks.mutex), EOWNERDEAD);
	join(task);
	CHECK(punctual_mutex_consistent(locks.mutex) == 0);
	CHECK(punctual_mutex_unlock(locks.mutex) == 0);

	/* No task repairs it: the next mutex in its place is a new one. */
	join(start(set, "ends", 20 * MS, MS, ends_with_it, &locks));
	CHECK(punctual_mutex_destroy(locks.mutex) == 0);
	CHECK(punctual_mutex_create(&again) == 0 && again != locks.mutex);
	CHECK(punctual_mutex_lock(again) == 0 && punctual_mutex_unlock(again) == 0);
	locks.mutex = again;
	destroy(&locks);
}

static void *holds(void *argument)
{
	struct locks *locks = argument;

	CHECK(punctual_mutex_lock(locks->mutex) == 0);
	while (!atomic_load(&locks->release))
		atomic_fetch_add(&locks->count, 1);
	CHECK(punctual_mutex_unlock(locks->mutex) == 0);
	return NULL;
}

/* The holder has used up its own budget, and executes on that of this task. */
static void a_budget_is_lent_until_a_time(struct punctual *set)
{
	struct punctual_task *holder;
	struct locks locks;
	uint64_t until, end;
	unsigned before;

	create(&locks, 0, 1, 1);
	holder = start(set, "holder", 1000 * MS, MS, holds, &locks);
	await(&locks.count, 1);
	do {
		before = atomic_load(&locks.count);
		sleep_ms(2);
	} while (atomic_load(&locks.count) != before);
	FAILS(punctual_mutex_trylock(locks.mutex), EBUSY);
	until = punctual_clock() + 3 * MS;
	FAILS(punctual_mutex_lock_until(locks.mutex, until), ETIMEDOUT);
	CHECK(punctual_clock() >= until && atomic_load(&locks.count) > before);
	FAILS(punctual_mutex_unlock(locks.mutex), EPERM);
	FAILS(punctual_mutex_destroy(locks.mutex), EBUSY);
	before = atomic_load(&locks.count);
	for (end = executed() + MS; executed() < end;)
		;
	CHECK(atomic_load(&locks.count) == before);
	atomic_store(&locks.release, 1);
	CHECK(punctual_mutex_lock(locks.mutex) == 0);
	CHECK(punctual_mutex_unlock(locks.mutex) == 0);
	join(holder);
	destroy(&locks);
}

#define ITEMS 200

static void *produces(void *argument)
{
	struct locks *locks = argument;

	for (unsigned n = 0; n < ITEMS; n++) {
		CHECK(punctual_sem_wait(locks->sem) == 0);
		CHECK(punctual_mutex_lock(locks->mutex) == 0);
		atomic_fetch_add(&locks->count, 1);
		CHECK(punctual_cond_signal(locks->cond) == 0);
		CHECK(punctual_mutex_unlock(locks->mutex) == 0);
	}
	return (void *)(intptr_t)punctual_barrier_wait(locks->barrier);
}

/* A queue of three items, and a meeting at the end. */
static void tasks_wait_for_each_other(struct punctual *set)
{
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	struct punctual_task *producer;
	struct locks locks;
	int last;

	create(&locks, 3, 3, 2);
	producer = start(set, "produces", 7 * MS, MS, produces, &locks);
	for (unsigned n = 0; n < ITEMS; n++) {
		CHECK(punctual_mutex_lock(locks.mutex) == 0);
		while (atomic_load(&locks.count) == 0)
			CHECK(punctual_cond_wait(locks.cond, locks.mutex) == 0);
		CHECK(atomic_fetch_sub(&locks.count, 1) <= 3);
		CHECK(punctual_mutex_unlock(locks.mutex) == 0);
		CHECK(punctual_sem_post(locks.sem) == 0);
	}
	last = punctual_barrier_wait(locks.barrier);
	CHECK(punctual_task_join(producer, &end) == 0);
	CHECK(last + (int)(intptr_t)end.value == 1);
	FAILS(punctual_sem_post(locks.sem), EOVERFLOW);
	destroy(&locks);
}

static void *locks_what_is_destroyed(void *argument)
{
	struct locks *locks = argument;

	while (!atomic_load(&locks->release)) {
		struct punctual_mutex *mutex = atomic_load(&locks->changing);
		int result = punctual_mutex_lock(mutex);

		if (result == 0) {
			CHECK(atomic_fetch_add(&locks->count, 1) == 0);
			CHECK(atomic_fetch_sub(&locks->count, 1) == 1);
			/* It was not destroyed meanwhile. */
			CHECK(punctual_mutex_unlock(mutex) == 0);
			atomic_fetch_add(&locks->stage, 1);
		} else {
			CHECK(result == -EBADF || result == -EBUSY);
		}
	}
	return NULL;
}

/* An ordinary thread destroys and makes the mutex, while tasks lock and unlock it. */
static void a_mutex_is_destroyed_only_while_it_is_free(struct punctual *set)
{
	struct punctual_task *tasks[2];
	struct punctual_mutex *mutex;
	unsigned destroyed = 0;
	struct locks locks;

	create(&locks, 0, 1, 1);
	CHECK(punctual_mutex_create(&mutex) == 0);
	atomic_store(&locks.changing, mutex);
	tasks[0] = start(set, "one", 5 * MS, MS, locks_what_is_destroyed, &locks);
	tasks[1] = start(set, "other", 7 * MS, MS, locks_what_is_destroyed, &locks);
	while (destroyed < 1000 || atomic_load(&locks.stage) < 1000) {
		int result = punctual_mutex_destroy(mutex);

		CHECK(result == 0 || result == -EBUSY);
		if (result == 0) {
			FAILS(punctual_mutex_destroy(mutex), EBADF);
			CHECK(punctual_mutex_create(&mutex) == 0);
			atomic_store(&locks.changing, mutex);
			destroyed++;
		}
	}
	atomic_store(&locks.release, 1);
	join(tasks[0]);
	join(tasks[1]);
	CHECK(punctual_mutex_destroy(mutex) == 0);
	destroy(&locks);
}

static void *waits_at_the_semaphore(void *argument)
{
	struct locks *locks = argument;

	atomic_fetch_add(&locks->stage, 1);
	FAILS(punctual_sem_wait(locks->sem), ECANCELED);
	FAILS(punctual_barrier_wait(locks->barrier), ECANCELED);
	return NULL;
}

static void *waits_for_the_condition(void *argument)
{
	struct locks *locks = argument;

	CHECK(punctual_mutex_lock(locks->mutex) == 0);
	atomic_fetch_add(&locks->stage, 1);
	FAILS(punctual_cond_wait(locks->cond, locks->mutex), ECANCELED);
	/* It holds the mutex again, now as an ordinary thread. */
	FAILS(punctual_mutex_trylock(locks->mutex), EBUSY);
	atomic_fetch_add(&locks->count, 1);
	CHECK(punctual_mutex_unlock(locks->mutex) == 0);
	CHECK(punctual_mutex_lock(locks->mutex) == 0);
	CHECK(punctual_mutex_unlock(locks->mutex) == 0);
	return NULL;
}

static void a_closed_set_ends_what_waits(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("looks", 20 * MS, MS);
	struct punctual_task *tasks[3];
	struct locks locks;

	create(&locks, 0, 1, 2);
	tasks[0] = start(set, "semaphore", 20 * MS, MS, waits_at_the_semaphore, &locks);
	tasks[1] = start(set, "condition", 20 * MS, MS, waits_for_the_condition, &locks);
	tasks[2] = start(set, "another", 20 * MS, MS, waits_for_the_condition, &locks);
	await(&locks.stage, 3);
	/* What holds it next does so after they began to wait. */
	CHECK(punctual_attach(set, &attr, NULL) == 0);
	CHECK(punctual_mutex_lock(locks.mutex) == 0);
	FAILS(punctual_cond_destroy(locks.cond), EBUSY);
	CHECK(punctual_mutex_unlock(locks.mutex) == 0);
	CHECK(punctual_detach() == 0);
	CHECK(punctual_close(set) == 0);
	for (int n = 0; n < 3; n++)
		join(tasks[n]);
	CHECK(atomic_load(&locks.count) == 2);
	destroy(&locks);
}

static struct punctual_mutex *with_ceiling(uint32_t flags, uint64_t deadline, int64_t priority)
{
	struct punctual_mutex_attr attr = PUNCTUAL_MUTEX_ATTR_INIT;
	struct punctual_mutex *mutex;

	attr.flags = flags;
	attr.ceiling_deadline = deadline;
	attr.ceiling_priority = priority;
	CHECK(punctual_mutex_create_with(&attr, &mutex) == 0);
	return mutex;
}

/* This task has a relative deadline of 100 ms, under EDF. */
static void ceilings(void)
{
	struct punctual_mutex *above = with_ceiling(PUNCTUAL_CEILING_DEADLINE, 100 * MS + 1, 0);
	struct punctual_mutex *priority = with_ceiling(PUNCTUAL_CEILING_PRIORITY, 0, INT64_MAX);
	struct punctual_mutex *all[17], *cond_mutex = with_ceiling(PUNCTUAL_CEILING_DEADLINE, MS, 0);
	struct punctual_cond *cond;

	FAILS(punctual_mutex_lock(above), EINVAL);
	CHECK(strstr(punctual_last_error(), "ceiling"));
	FAILS(punctual_mutex_trylock(above), EINVAL);
	FAILS(punctual_mutex_lock_until(priority, 0), EINVAL);
	CHECK(punctual_mutex_destroy(above) == 0 && punctual_mutex_destroy(priority) == 0);
	for (unsigned n = 0; n < 17; n++)
		all[n] = with_ceiling(PUNCTUAL_CEILING_DEADLINE, 100 * MS - n, 0);
	for (unsigned n = 0; n < 16; n++)
		CHECK(punctual_mutex_lock(all[n]) == 0);
	FAILS(punctual_mutex_lock(all[16]), EAGAIN);
	FAILS(punctual_mutex_trylock(all[16]), EAGAIN);
	/* In the order of locking. */
	CHECK(punctual_mutex_unlock(all[0]) == 0);
	CHECK(punctual_mutex_trylock(all[16]) == 0);
	FAILS(punctual_mutex_lock(all[0]), EAGAIN);
	CHECK(punctual_mutex_unlock(all[1]) == 0);
	FAILS(punctual_mutex_lock(all[16]), EDEADLK);
	FAILS(punctual_mutex_trylock(all[16]), EBUSY);
	for (unsigned n = 2; n < 17; n++)
		CHECK(punctual_mutex_unlock(all[n]) == 0);
	for (unsigned n = 0; n < 17; n++)
		CHECK(punctual_mutex_destroy(all[n]) == 0);
	CHECK(punctual_cond_create(&cond) == 0);
	CHECK(punctual_mutex_lock(cond_mutex) == 0);
	FAILS(punctual_cond_wait_until(cond, cond_mutex, punctual_clock() + MS), ETIMEDOUT);
	CHECK(punctual_mutex_unlock(cond_mutex) == 0);
	CHECK(punctual_mutex_destroy(cond_mutex) == 0 && punctual_cond_destroy(cond) == 0);
}

int main(void)
{
	struct punctual_task_attr attr = task_attr("main", 100 * MS, 20 * MS);
	struct punctual *set;

	set = open_set(NULL);
	a_mutex_is_destroyed_only_while_it_is_free(set);
	CHECK(punctual_attach(set, &attr, NULL) == 0);
	one_task();
	ceilings();
	the_holder_ends(set);
	a_budget_is_lent_until_a_time(set);
	tasks_wait_for_each_other(set);
	CHECK(punctual_detach() == 0);
	a_closed_set_ends_what_waits(set);
	return 0;
}
