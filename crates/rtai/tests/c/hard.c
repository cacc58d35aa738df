/* SPDX-License-Identifier: MIT */
/* Hard tasks, periods and budgets, by a dispatcher of this program. */
#include "hard_tasks.h"

#include <rtai_sem.h>

#define PERIOD (5 * MS)

static int class_of_this_thread(void)
{
	return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
}

static void *is_ordinary(void *argument)
{
	cpu_set_t cpus;

	CHECK(class_of_this_thread() == SCHED_OTHER);
	CHECK(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
	CHECK(CPU_EQUAL(&cpus, (cpu_set_t *)argument));
	return NULL;
}

static void becomes_hard_and_soft(void)
{
	cpu_set_t before, after;
	long thread;

	CHECK(!rt_is_hard_real_time(NULL) && !rt_is_hard_real_time(rt_agent()));
	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	rt_allow_nonroot_hrt();
	CHECK(rt_linux_syscall_server_create(NULL) == rt_agent());
	CHECK(!rt_linux_syscall_server_create((RT_TASK *)&before));
	make_hard();
	CHECK(rt_is_hard_real_time(rt_agent()) && class_of_this_thread() == SCHED_FIFO);
	CHECK(has_priorities(NULL, 5, 5));
	CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_COUNT(&after) == 1);
	thread = rt_thread_create((void *)is_ordinary, &before, 0);
	CHECK(thread);
	RETURNS(rt_thread_join(thread), 0);
	RETURNS(rt_change_prio(NULL, 6), 5);
	CHECK(has_priorities(NULL, 6, 6));
	RETURNS(rt_change_prio(NULL, 5), 6);
	RETURNS(rt_sleep(3 * MS), 0);
	RETURNS(rt_task_yield(), 0);
	rt_make_soft_real_time();
	CHECK(!rt_is_hard_real_time(NULL) && class_of_this_thread() == SCHED_OTHER);
	CHECK(has_priorities(NULL, 5 + SOFT, 5 + SOFT));
	CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&before, &after));
}

/* Waits return no earlier than their periods begin, and none is lost. */
static void counts_periods(RTIME start)
{
	for (int n = 1; n <= 20; n++) {
		RTIME due = start + n * PERIOD;
		int result;

		RETURNS(rt_task_next_period(), due);
		result = rt_task_wait_period();
		CHECK(result == 0 || result == RTE_TMROVRN);
		CHECK(rt_get_time() >= due);
	}
}

static void is_periodic(bool hard)
{
	RTIME start = rt_get_time() + 2 * PERIOD, end;
	int late = 0;
	RT_TASK_INFO info;

	if (hard)
		make_hard();
	RETURNS(rt_task_make_periodic(rt_agent(), start, PERIOD), 0);
	CHECK(rt_get_time() >= start);
	counts_periods(start);
	/* What comes late returns at once, once for each period gone by. */
	end = rt_task_next_period() + 3 * PERIOD;
	while (rt_get_time() < end)
		rt_busy_sleep(100000);
	while (rt_task_wait_period() == RTE_TMROVRN)
		late++;
	CHECK(late >= 4);
	RETURNS(rt_task_get_info(NULL, &info), 0);
	CHECK(info.period == PERIOD);
	RETURNS(rt_set_period(NULL, 2 * PERIOD), 0);
	end = rt_task_next_period();
	CHECK(rt_task_wait_period() == 0 || rt_get_time() >= end);
	RETURNS(rt_task_next_period(), end + 2 * PERIOD);
	start = rt_get_time();
	RETURNS(rt_task_make_periodic_relative_ns(NULL, PERIOD, PERIOD), 0);
	CHECK(rt_get_time() >= start + PERIOD);
	rt_make_soft_real_time();
}

static volatile int order, places[3];
static SEM *gate;

static void *takes_its_turn(void *argument)
{
	int number = (int)(long)argument;

	CHECK(rt_task_init(nam2num("TURN") + (unsigned long)number, 10 - number, 0, 0));
	make_hard();
	CHECK(rt_sem_wait(gate) < RTE_LOWERR);
	places[number] = __atomic_add_fetch(&order, 1, __ATOMIC_SEQ_CST);
	RETURNS(rt_sem_signal(gate), 0);
	return NULL;
}

/* Hard tasks wait in the order of their priorities, and before all soft ones. */
static void hard_tasks_take_turns(void)
{
	pthread_t threads[3];

	gate = rt_sem_init(nam2num("GATE"), 0);
	for (long n = 0; n < 3; n++) {
		threads[n] = begin(takes_its_turn, (void *)n);
		UNTIL(rt_sem_count(gate) == -(int)n - 1);
	}
	RETURNS(rt_sem_signal(gate), 0);
	for (int n = 0; n < 3; n++) {
		join(threads[n]);
		RETURNS(places[n], 3 - n);
	}
	RETURNS(rt_sem_delete(gate), 0);
}

static void has_a_budget(void)
{
	RTIME start = rt_get_time() + 60 * MS, next;
	int late = 0;

	RETURNS(rt_task_make_periodic_budget(NULL, start, 20 * MS, 0), -EINVAL);
	RETURNS(rt_task_make_periodic_budget(NULL, start, 20 * MS, 21 * MS), -EINVAL);
	RETURNS(rt_task_make_periodic_budget((RT_TASK *)&start, start, 20 * MS, MS), -EINVAL);
	RETURNS(rt_task_make_periodic_budget(NULL, start, 20 * MS, 5 * MS), 0);
	CHECK(class_of_this_thread() == SCHED_FIFO && !rt_is_hard_real_time(NULL));
	CHECK(rt_get_time() >= start);
	for (int n = 0; n < 5; n++) {
		int result;

		next = rt_task_next_period();
		result = rt_task_wait_period();
		CHECK(result == 0 || result == RTE_TMROVRN);
		CHECK(rt_get_time() >= next || result == RTE_TMROVRN);
	}
	/* Two budgets and a half: two waits come late, at least. */
	while (rt_task_wait_period() == RTE_TMROVRN)
		;
	execute(25 * MS / 2);
	while (rt_task_wait_period() == RTE_TMROVRN)
		late++;
	CHECK(late >= 2);
	/* Becoming hard, and soft, changes no budget. */
	rt_make_hard_real_time();
	CHECK(rt_is_hard_real_time(NULL) && has_priorities(NULL, 5, 5));
	rt_make_soft_real_time();
	CHECK(class_of_this_thread() == SCHED_FIFO);
	RETURNS(rt_set_period(NULL, MS), -EINVAL);
	RETURNS(rt_set_period(NULL, 30 * MS), 0);
	CHECK(rt_task_wait_period() == 0 || rt_task_wait_period() < RTE_HIGERR);
	/* What does not fit is refused, and leaves a task without a budget. */
	RETURNS(rt_task_make_periodic_budget(NULL, 0, 20 * MS, 19 * MS), -EBUSY);
	CHECK(class_of_this_thread() == SCHED_OTHER);
	RETURNS(rt_task_make_periodic_budget(NULL, 0, 20 * MS, 5 * MS), 0);
	CHECK(class_of_this_thread() == SCHED_FIFO);
	/* Nor beside the share of hard tasks. */
	RETURNS(rt_task_make_periodic(NULL, 0, PERIOD), 0);
	CHECK(class_of_this_thread() == SCHED_OTHER);
}

static RT_TASK *volatile given;
static volatile bool is_to_end;

static void *gets_a_budget(void *argument)
{
	(void)argument;
	given = rt_task_init(nam2num("GIVEN"), 4, 0, 0);
	rt_task_suspend(NULL);
	while (!is_to_end) {
		if (class_of_this_thread() == SCHED_FIFO)
			*(volatile bool *)argument = true;
		rt_task_wait_period();
	}
	return NULL;
}

static void another_task_gives_a_budget(void)
{
	volatile bool got = false;
	pthread_t thread = begin(gets_a_budget, (void *)&got);

	UNTIL(given && rt_task_masked_unblock(given, 0) == RTE_UNBLKD);
	RETURNS(rt_task_make_periodic_budget(given, rt_get_time(), 10 * MS, 2 * MS), 0);
	UNTIL(got);
	is_to_end = true;
	join(thread);
}

int main(void)
{
	CHECK(rt_task_init(nam2num("MAIN"), 5, 0, 0));
	becomes_hard_and_soft();
	is_periodic(false);
	is_periodic(true);
	hard_tasks_take_turns();
	has_a_budget();
	another_task_gives_a_budget();
	RETURNS(rt_task_delete(NULL), 0);
	return 0;
}
