/* SPDX-License-Identifier: MIT */
/* SIGBUDGET: the handler is called in the task's thread, on the next budget. */
#include "hard_tasks.h"

#define PERIOD (50 * MS)
#define BUDGET (20 * MS)

static volatile sig_atomic_t calls, results, is_other_thread, waits;
static volatile int tid;

static void handle(int number)
{
	CHECK(number == SIGBUDGET);
	calls++;
	if (rt_gettid() != tid)
		is_other_thread = 1;
	/* As the paper's handler does: the budget for which it waits is there. */
	if (waits && rt_task_wait_period() != 0)
		results++;
}

static void is_signalled(RT_TASK *task)
{
	int late = 0;

	calls = 0;
	RETURNS(rt_task_make_periodic_budget(task, rt_get_time(), PERIOD, BUDGET), 0);
	if ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_FIFO) {
		puts("budgets need a CPU without another dispatcher, and root");
		exit(MISSING);
	}
	while (rt_task_wait_period() == RTE_TMROVRN)
		;
	/* Two budgets and a half: the handler's waits are not the task's own. */
	execute(BUDGET * 5 / 2);
	while (rt_task_wait_period() == RTE_TMROVRN)
		late++;
	CHECK(calls >= 2 && late >= 2);
}

int main(void)
{
	struct sigaction action;
	RT_TASK *task = rt_task_init(nam2num("SIGNAL"), 1, 0, 0);
	RTIME end = rt_get_time() + LIVENESS;

	/* Another dispatcher may have the CPU for a while. */
	do {
		rt_make_hard_real_time();
	} while (!rt_is_hard_real_time(task) && geteuid() == 0 && rt_get_time() < end &&
		 (sleep_ms(100), true));
	tid = rt_gettid();
	memset(&action, 0, sizeof(action));
	action.sa_handler = handle;
	CHECK(sigaction(SIGBUDGET, &action, NULL) == 0);
	is_signalled(task);
	waits = 1;
	is_signalled(task);
	CHECK(results == 0 && !is_other_thread);
	return 0;
}
