/* SPDX-License-Identifier: MIT */
/* Locks between tasks of two CPUs: semaphores and barriers are for them; what lends is refused. */
#include "check.h"

#include <stdatomic.h>

static struct punctual_mutex *mutex, *other_mutex;
static struct punctual_cond *cond;
static struct punctual_sem *sem;
static struct punctual_barrier *barrier;
static atomic_uint stage;

static void await(unsigned value)
{
	while (atomic_load(&stage) < value)
		sleep_ms(1);
}

/* On the other CPU. */
static void *partner(void *argument)
{
	/* Holds it while the first task wants it. */
	CHECK(punctual_mutex_lock(mutex) == 0);
	atomic_store(&stage, 1);
	CHECK(punctual_sem_wait(sem) == 0);
	CHECK(punctual_mutex_unlock(mutex) == 0);
	CHECK(punctual_barrier_wait(barrier) >= 0);

	/* Locks it while the first task waits without it, and wakes that one. */
	await(2);
	while (punctual_mutex_trylock(mutex) == -EBUSY)
		sleep_ms(1);
	while (atomic_load(&stage) < 3) {
		CHECK(punctual_cond_signal(cond) == 0);
		sleep_ms(1);
	}
	CHECK(punctual_mutex_unlock(mutex) == 0);

	/* Waits while the first task wants to wait, too. */
	CHECK(punctual_mutex_lock(other_mutex) == 0);
	atomic_store(&stage, 4);
	CHECK(punctual_cond_wait(cond, other_mutex) == 0);
	CHECK(punctual_mutex_unlock(other_mutex) == 0);
	return argument;
}

static void first_task(void)
{
	await(1);
	FAILS(punctual_mutex_lock(mutex), EINVAL);
	CHECK(strstr(punctual_last_error(), "CPU"));
	FAILS(punctual_mutex_lock_until(mutex, punctual_clock() + LIVENESS), EINVAL);
	FAILS(punctual_mutex_trylock(mutex), EBUSY);
	CHECK(punctual_sem_post(sem) == 0);
	CHECK(punctual_barrier_wait(barrier) >= 0);

	CHECK(punctual_mutex_lock(mutex) == 0);
	atomic_store(&stage, 2);
	FAILS(punctual_cond_wait(cond, mutex), ENOLCK);
	FAILS(punctual_mutex_unlock(mutex), EPERM);
	atomic_store(&stage, 3);

	await(4);
	while (punctual_mutex_trylock(other_mutex) == -EBUSY)
		sleep_ms(1);
	CHECK(punctual_mutex_unlock(other_mutex) == 0);
	while (punctual_mutex_trylock(mutex) == -EBUSY)
		sleep_ms(1);
	FAILS(punctual_cond_wait(cond, mutex), EINVAL);
	CHECK(punctual_mutex_unlock(mutex) == 0);
	CHECK(punctual_cond_broadcast(cond) == 0);
}

int main(void)
{
	struct punctual_task_attr task = task_attr("first", 10 * MS, 2 * MS);
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	uint32_t cpus[2] = { 0, (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) - 1 };
	struct punctual_task *other;
	struct punctual *set;

	if (cpus[0] == cpus[1]) {
		puts("there is one CPU");
		return MISSING;
	}
	attr.cpus = cpus;
	attr.cpu_count = 2;
	set = open_set(&attr);
	CHECK(punctual_mutex_create(&mutex) == 0 && punctual_mutex_create(&other_mutex) == 0);
	CHECK(punctual_cond_create(&cond) == 0 && punctual_sem_create(NULL, &sem) == 0);
	CHECK(punctual_barrier_create(2, &barrier) == 0);
	CHECK(punctual_attach(set, &task, NULL) == 0);
	task.name = "partner";
	task.cpu = cpus[1];
	CHECK(punctual_task_create(set, &task, partner, NULL, &other) == 0);
	first_task();
	CHECK(punctual_detach() == 0 && punctual_task_join(other, NULL) == 0);
	CHECK(punctual_close(set) == 0);
	return 0;
}
