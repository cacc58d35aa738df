/* SPDX-License-Identifier: MIT */
/* Condition variables. */
#include "hard_tasks.h"

#include <rtai_sem.h>

#define ITEMS 2000

static CND *not_empty, *not_full;
static SEM *mutex;
static int buffer[4], used;
static int received[ITEMS];

static void *consumes(void *argument)
{
	(void)argument;
	for (int n = 0; n < ITEMS / 2; n++) {
		RETURNS(rt_sem_wait(mutex) < RTE_LOWERR, 1);
		while (!used)
			RETURNS(rt_cond_wait(not_empty, mutex), 0);
		received[buffer[--used]]++;
		RETURNS(rt_cond_signal(not_full), 0);
		RETURNS(rt_sem_signal(mutex), 0);
	}
	return NULL;
}

static void items_pass(void)
{
	pthread_t threads[2] = { begin(consumes, NULL), begin(consumes, NULL) };

	for (int item = 0; item < ITEMS; item++) {
		CHECK(rt_sem_wait(mutex) < RTE_LOWERR);
		while (used == 4)
			RETURNS(rt_cond_wait_timed(not_full, mutex, LIVENESS), 0);
		buffer[used++] = item;
		RETURNS(rt_cond_signal(not_empty), 0);
		RETURNS(rt_sem_signal(mutex), 0);
	}
	join(threads[0]);
	join(threads[1]);
	for (int item = 0; item < ITEMS; item++)
		CHECK(received[item] == 1);
}

static volatile int waiting, results[3];

static void *waits(void *argument)
{
	int *result = argument;

	CHECK(rt_sem_wait(mutex) < RTE_LOWERR);
	/* Locked twice, and twice again after the wait. */
	CHECK(rt_sem_wait(mutex) == 2);
	waiting++;
	*result = rt_cond_wait(not_empty, mutex);
	RETURNS(rt_sem_wait_if(mutex), 3);
	for (int n = 0; n < 3; n++)
		RETURNS(rt_sem_signal(mutex), 0);
	RETURNS(rt_sem_signal(mutex), RTE_PERM);
	return NULL;
}

static void begin_three(pthread_t *threads)
{
	waiting = 0;
	for (int n = 0; n < 3; n++) {
		results[n] = -1;
		threads[n] = begin(waits, (void *)&results[n]);
	}
	UNTIL(waiting == 3);
	/* The last one has released it. */
	CHECK(rt_sem_wait(mutex) < RTE_LOWERR);
	RETURNS(rt_sem_signal(mutex), 0);
}

static void all_are_woken(void)
{
	pthread_t threads[3];

	begin_three(threads);
	RETURNS(rt_cond_broadcast(not_empty), 0);
	for (int n = 0; n < 3; n++) {
		join(threads[n]);
		RETURNS(results[n], 0);
	}
	begin_three(threads);
	RETURNS(rt_cond_delete(not_empty), 0);
	for (int n = 0; n < 3; n++) {
		join(threads[n]);
		RETURNS(results[n], RTE_OBJREM);
	}
	not_empty = rt_cond_init(nam2num("EMPTY"));
	CHECK(not_empty);
}

static void waits_are_refused_and_end(void)
{
	RETURNS(rt_cond_wait(not_empty, mutex), RTE_PERM);
	RETURNS(rt_cond_wait_timed(not_empty, mutex, MS), RTE_PERM);
	RETURNS(rt_cond_wait((CND *)&waiting, mutex), SEM_ERR);
	RETURNS(rt_cond_wait(not_empty, NULL), SEM_ERR);
	RETURNS(rt_cond_signal(NULL), SEM_ERR);
	RETURNS(rt_sem_wait(mutex), 1);
	RETURNS(rt_cond_wait_timed(not_empty, mutex, 3 * MS), RTE_TIMOUT);
	RETURNS(rt_cond_wait_until(not_empty, mutex, rt_get_time() - 1), RTE_TIMOUT);
	/* It is locked still. */
	RETURNS(rt_sem_signal(mutex), 0);
	RETURNS(rt_sem_signal(mutex), RTE_PERM);
	/* What was signalled before is not kept. */
	RETURNS(rt_cond_signal(not_empty), 0);
	RETURNS(rt_sem_wait(mutex), 1);
	RETURNS(rt_cond_wait_timed(not_empty, mutex, 3 * MS), RTE_TIMOUT);
	RETURNS(rt_sem_signal(mutex), 0);
}

int main(void)
{
	CHECK(rt_task_init(nam2num("MAIN"), 5, 0, 0));
	not_empty = rt_cond_init(nam2num("EMPTY"));
	not_full = rt_cond_init(nam2num("FULL"));
	mutex = rt_typed_sem_init(nam2num("MUTEX"), 1, RES_SEM);
	CHECK(not_empty && not_full && mutex);
	waits_are_refused_and_end();
	items_pass();
	all_are_woken();
	return 0;
}
