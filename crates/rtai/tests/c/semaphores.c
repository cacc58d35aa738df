/* SPDX-License-Identifier: MIT */
/* Semaphores: units, order, resources and inheritance, barriers, deletion. */
#include "hard_tasks.h"

#include <rtai_sem.h>

#define NONE (-1000)

struct waiter {
	unsigned long name;
	int priority;
	SEM *semaphore;
	RTIME delay; /* 0: for ever */
	RT_TASK *volatile task;
	volatile int result;
	volatile int place; /* among those that returned */
	volatile bool is_to_signal;
	pthread_t thread;
};

static volatile int returned;

static void *waits(void *argument)
{
	struct waiter *waiter = argument;

	waiter->task = rt_task_init(waiter->name, waiter->priority, 0, 0);
	CHECK(waiter->task);
	waiter->result = waiter->delay ? rt_sem_wait_timed(waiter->semaphore, waiter->delay)
				       : rt_sem_wait(waiter->semaphore);
	waiter->place = __atomic_add_fetch(&returned, 1, __ATOMIC_SEQ_CST);
	if (waiter->is_to_signal)
		RETURNS(rt_sem_signal(waiter->semaphore), 0);
	return NULL;
}

/* Begins a thread that waits, and waits until it does, if its wait does not end by itself. */
static void begin_waiter(struct waiter *waiter, const char *name, int priority, SEM *semaphore,
			 RTIME delay)
{
	int count = rt_sem_count(semaphore);

	memset(waiter, 0, sizeof(*waiter));
	waiter->name = nam2num(name);
	waiter->priority = priority;
	waiter->semaphore = semaphore;
	waiter->delay = delay;
	waiter->result = NONE;
	waiter->thread = begin(waits, waiter);
	if (!delay || delay == LIVENESS)
		UNTIL(rt_sem_count(semaphore) == count - 1);
}

static void units_are_counted(void)
{
	SEM *counting = rt_sem_init(0, 2), *binary = rt_typed_sem_init(0, 5, BIN_SEM);

	RETURNS(rt_sem_count(counting), 2);
	RETURNS(rt_sem_wait(counting), 2);
	RETURNS(rt_sem_wait_if(counting), 1);
	RETURNS(rt_sem_wait_if(counting), 0);
	RETURNS(rt_sem_wait_timed(counting, MS), RTE_TIMOUT);
	RETURNS(rt_sem_wait_until(counting, rt_get_time() - 1), RTE_TIMOUT);
	RETURNS(rt_sem_count(counting), 0);
	for (int n = 0; n < 3; n++)
		RETURNS(rt_sem_signal(counting), 0);
	RETURNS(rt_sem_count(counting), 3);
	RETURNS(rt_sem_wait_until(counting, 0), 3);
	RETURNS(rt_sem_broadcast(counting), 0);
	RETURNS(rt_sem_count(counting), 0);
	RETURNS(rt_sem_count(binary), 1);
	RETURNS(rt_sem_signal(binary), 0);
	RETURNS(rt_sem_count(binary), 1);
	RETURNS(rt_sem_wait(binary), 1);
	RETURNS(rt_sem_delete(counting), 0);
	RETURNS(rt_sem_delete(binary), 0);
	RETURNS(rt_sem_delete(binary), -EFAULT);
	RETURNS(rt_sem_signal(binary), SEM_ERR);
	RETURNS(rt_sem_wait(binary), SEM_ERR);
	RETURNS(rt_sem_wait_if(binary), SEM_ERR);
	RETURNS(rt_sem_wait_timed(binary, MS), SEM_ERR);
	RETURNS(rt_sem_broadcast(binary), SEM_ERR);
	RETURNS(rt_sem_wait_barrier(binary), SEM_ERR);
	RETURNS(rt_sem_count(NULL), SEM_ERR);
}

static void tasks_have_their_turn(int type, const int *places)
{
	SEM *semaphore = rt_typed_sem_init(0, 0, type);
	struct waiter waiters[3];

	returned = 0;
	begin_waiter(&waiters[0], "A", 20, semaphore, 0);
	begin_waiter(&waiters[1], "B", 10, semaphore, 0);
	begin_waiter(&waiters[2], "C", 20, semaphore, LIVENESS);
	RETURNS(rt_sem_count(semaphore), -3);
	for (int n = 0; n < 3; n++) {
		RETURNS(rt_sem_signal(semaphore), 0);
		UNTIL(returned == n + 1);
	}
	for (int n = 0; n < 3; n++) {
		join(waiters[n].thread);
		RETURNS(waiters[n].place, places[n]);
		/* What rt_sem_count was then: how many waited still. */
		RETURNS(waiters[n].result, places[n] - 3);
	}
	RETURNS(rt_sem_count(semaphore), 0);
	RETURNS(rt_sem_delete(semaphore), 0);
}

static void waits_end_otherwise(void)
{
	SEM *semaphore = rt_sem_init(0, 0);
	struct waiter waiters[3];

	begin_waiter(&waiters[0], "A", 1, semaphore, 0);
	begin_waiter(&waiters[1], "B", 2, semaphore, 5 * MS);
	join(waiters[1].thread);
	RETURNS(waiters[1].result, RTE_TIMOUT);
	RETURNS(rt_sem_count(semaphore), -1);
	RETURNS(rt_task_masked_unblock(waiters[0].task, RT_SCHED_SEMAPHORE), RTE_UNBLKD);
	join(waiters[0].thread);
	RETURNS(waiters[0].result, RTE_UNBLKD);
	RETURNS(rt_sem_count(semaphore), 0);
	for (int n = 0; n < 3; n++)
		begin_waiter(&waiters[n], n == 0 ? "A" : n == 1 ? "B" : "C", n, semaphore, 0);
	RETURNS(rt_sem_broadcast(semaphore), 0);
	for (int n = 0; n < 3; n++) {
		join(waiters[n].thread);
		RETURNS(waiters[n].result, 0);
	}
	for (int n = 0; n < 3; n++)
		begin_waiter(&waiters[n], n == 0 ? "A" : n == 1 ? "B" : "C", n, semaphore,
			     n ? LIVENESS : 0);
	RETURNS(rt_sem_delete(semaphore), 0);
	for (int n = 0; n < 3; n++) {
		join(waiters[n].thread);
		RETURNS(waiters[n].result, RTE_OBJREM);
	}
}

static void a_resource_has_an_owner(void)
{
	SEM *resource = rt_typed_sem_init(0, RESEM_RECURS, RES_SEM);
	SEM *checked = rt_typed_sem_init(0, RESEM_CHEKWT, RES_SEM);
	SEM *binary = rt_typed_sem_init(0, RESEM_BINSEM, RES_SEM);

	RETURNS(rt_sem_signal(resource), RTE_PERM);
	RETURNS(rt_sem_wait(resource), 1);
	RETURNS(rt_sem_wait(resource), 2);
	RETURNS(rt_sem_wait_if(resource), 3);
	RETURNS(rt_sem_wait_timed(resource, MS), 4);
	for (int n = 0; n < 4; n++)
		RETURNS(rt_sem_signal(resource), 0);
	RETURNS(rt_sem_signal(resource), RTE_PERM);
	RETURNS(rt_sem_wait(checked), 1);
	RETURNS(rt_sem_wait(checked), RTE_DEADLOK);
	RETURNS(rt_sem_wait_if(checked), RTE_DEADLOK);
	RETURNS(rt_sem_signal(checked), 0);
	RETURNS(rt_sem_wait(binary), 1);
	RETURNS(rt_sem_wait_if(binary), 0);
	RETURNS(rt_sem_signal(binary), 0);
	RETURNS(rt_sem_signal(binary), 0);
	RETURNS(rt_sem_count(binary), 1);
	RETURNS(rt_sem_delete(resource), 0);
	RETURNS(rt_sem_delete(checked), 0);
	RETURNS(rt_sem_delete(binary), 0);
}

/* Owns one resource and waits for another one. */
struct chain {
	SEM *owned, *wanted, *steps;
	RT_TASK *volatile task;
};

static void *owns_and_waits(void *argument)
{
	struct chain *chain = argument;

	chain->task = rt_task_init(nam2num("CHAIN"), 20, 0, 0);
	RETURNS(rt_sem_wait(chain->owned), 1);
	RETURNS(rt_sem_wait(chain->wanted), 0);
	RETURNS(rt_sem_signal(chain->wanted), 0);
	RETURNS(rt_sem_signal(chain->owned), 0);
	return NULL;
}

/* Main (30) owns the first, CHAIN (20) the second and waits for the first; others for both. */
static void priorities_are_inherited(void)
{
	SEM *first = rt_typed_sem_init(0, 1, RES_SEM), *second = rt_typed_sem_init(0, 1, RES_SEM);
	struct chain chain = { second, first, NULL, NULL };
	struct waiter late, best;
	pthread_t thread;

	RETURNS(rt_change_prio(NULL, 30), 5 + SOFT);
	RETURNS(rt_sem_wait(first), 1);
	thread = begin(owns_and_waits, &chain);
	UNTIL(rt_sem_count(first) == -1);
	CHECK(has_priorities(NULL, 20 + SOFT, 30 + SOFT));
	begin_waiter(&late, "LATE", 25, first, 0);
	CHECK(has_priorities(NULL, 20 + SOFT, 30 + SOFT));
	late.is_to_signal = true;
	/* Through both resources. */
	begin_waiter(&best, "BEST", 10, second, LIVENESS);
	CHECK(has_priorities(chain.task, 10 + SOFT, 20 + SOFT));
	CHECK(has_priorities(NULL, 10 + SOFT, 30 + SOFT));
	RETURNS(rt_task_wakeup_sleeping(best.task), RTE_UNBLKD);
	CHECK(best.result == NONE);
	RETURNS(rt_task_masked_unblock(best.task, RT_SCHED_SEMAPHORE), RTE_UNBLKD);
	join(best.thread);
	RETURNS(best.result, RTE_UNBLKD);
	CHECK(has_priorities(chain.task, 20 + SOFT, 20 + SOFT));
	CHECK(has_priorities(NULL, 20 + SOFT, 30 + SOFT));
	begin_waiter(&best, "BEST", 10, second, 0);
	best.is_to_signal = true;
	CHECK(has_priorities(chain.task, 10 + SOFT, 20 + SOFT));
	CHECK(has_priorities(NULL, 10 + SOFT, 30 + SOFT));
	/* A change of priority is passed on, too, and changes the order. */
	RETURNS(rt_change_prio(best.task, 40), 10 + SOFT);
	CHECK(has_priorities(chain.task, 20 + SOFT, 20 + SOFT));
	CHECK(has_priorities(NULL, 20 + SOFT, 30 + SOFT));
	RETURNS(rt_change_prio(late.task, 15), 25 + SOFT);
	CHECK(has_priorities(NULL, 15 + SOFT, 30 + SOFT));
	returned = 0;
	RETURNS(rt_sem_signal(first), 0);
	CHECK(has_priorities(NULL, 30 + SOFT, 30 + SOFT));
	join(late.thread);
	RETURNS(late.place, 1);
	join(thread);
	join(best.thread);
	RETURNS(best.place, 2);
	RETURNS(rt_change_prio(NULL, 5), 30 + SOFT);
	RETURNS(rt_sem_count(first), 1);
	RETURNS(rt_sem_delete(first), 0);
	RETURNS(rt_sem_delete(second), 0);
}

/* An owner is suspended when it releases its resource. */
static void *owns(void *argument)
{
	struct chain *chain = argument;

	chain->task = rt_task_init(nam2num("OWNS"), 20, 0, 0);
	RETURNS(rt_sem_wait(chain->owned), 1);
	RETURNS(rt_sem_signal(chain->steps), 0);
	UNTIL(rt_sem_wait_if(chain->wanted) > 0);
	RETURNS(rt_sem_signal(chain->owned), 0);
	RETURNS(rt_sem_signal(chain->steps), 0);
	return NULL;
}

static void an_owner_is_suspended_later(void)
{
	SEM *owned = rt_typed_sem_init(0, 1, RES_SEM);
	SEM *permit = rt_sem_init(0, 0), *steps = rt_sem_init(0, 0);
	struct chain chain = { owned, permit, steps, NULL };
	pthread_t thread = begin(owns, &chain);

	UNTIL(rt_sem_wait_if(steps) > 0);
	RETURNS(rt_task_suspend(chain.task), 1);
	CHECK(rt_task_masked_unblock(chain.task, 0) == 0 && rt_sem_count(owned) == 0);
	RETURNS(rt_sem_signal(permit), 0);
	UNTIL(rt_sem_count(owned) == 1);
	UNTIL(rt_task_masked_unblock(chain.task, 0) == RTE_UNBLKD);
	RETURNS(rt_sem_count(steps), 0);
	RETURNS(rt_task_resume(chain.task), 0);
	join(thread);
	RETURNS(rt_sem_count(steps), 1);
	RETURNS(rt_sem_delete(owned), 0);
	RETURNS(rt_sem_delete(permit), 0);
	RETURNS(rt_sem_delete(steps), 0);
}

/* A thread that ends without releasing what it owns. */
static void *ends(void *argument)
{
	RETURNS(rt_sem_wait(argument), 1);
	return NULL;
}

static void what_a_thread_owned_continues(void)
{
	SEM *resource = rt_typed_sem_init(0, 1, RES_SEM);

	join(begin(ends, resource));
	RETURNS(rt_sem_wait(resource), 1);
	RETURNS(rt_sem_delete(resource), 0);
}

#define PARTIES 4
static volatile int arrived, last;

static void *arrives(void *argument)
{
	for (int round = 1; round <= 20; round++) {
		__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
		switch (rt_sem_wait_barrier(argument)) {
		case 0:
			__atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST);
			break;
		case -1:
			break;
		default:
			CHECK(!"a barrier");
		}
		CHECK(arrived >= round * PARTIES);
	}
	return NULL;
}

static void a_barrier_is_passed_together(void)
{
	SEM *barrier = rt_sem_init(0, PARTIES);
	pthread_t threads[PARTIES];

	for (int n = 0; n < PARTIES; n++)
		threads[n] = begin(arrives, barrier);
	for (int n = 0; n < PARTIES; n++)
		join(threads[n]);
	CHECK(last == 20 && arrived == 20 * PARTIES);
	RETURNS(rt_sem_delete(barrier), 0);
}

static void named_ones_have_users(void)
{
	SEM *semaphore = rt_typed_named_sem_init("named", 3, CNT_SEM);

	CHECK(semaphore && rt_get_adr(nam2num("NAMED")) == semaphore);
	CHECK(rt_named_sem_init("NAMED", 7) == semaphore);
	RETURNS(rt_sem_count(semaphore), 3);
	CHECK(rt_sem_init(nam2num("NAMED"), 1) == NULL);
	RETURNS(rt_named_sem_delete(semaphore), 1);
	RETURNS(rt_sem_count(semaphore), 3);
	RETURNS(rt_named_sem_delete(semaphore), 0);
	RETURNS(rt_named_sem_delete(semaphore), -EFAULT);
	CHECK(rt_get_adr(nam2num("NAMED")) == NULL);
	CHECK(rt_named_sem_init("MAIN", 1) == NULL);
}

static void room_is_bounded(void)
{
	static SEM *all[5000];
	int count = 0;

	while ((all[count] = rt_sem_init(0, 0)))
		count++;
	CHECK(count > 1000 && count < 5000);
	for (int n = 0; n < count; n++)
		RETURNS(rt_sem_delete(all[n]), 0);
	CHECK((all[0] = rt_sem_init(0, 0)));
	RETURNS(rt_sem_delete(all[0]), 0);
}

int main(void)
{
	const int by_priority[] = { 2, 1, 3 }, as_they_came[] = { 1, 2, 3 };

	CHECK(rt_task_init(nam2num("MAIN"), 5, 0, 0));
	units_are_counted();
	tasks_have_their_turn(CNT_SEM, by_priority);
	tasks_have_their_turn(CNT_SEM | FIFO_Q, as_they_came);
	tasks_have_their_turn(BIN_SEM, by_priority);
	waits_end_otherwise();
	a_resource_has_an_owner();
	priorities_are_inherited();
	an_owner_is_suspended_later();
	what_a_thread_owned_continues();
	a_barrier_is_passed_together();
	named_ones_have_users();
	room_is_bounded();
	return 0;
}
