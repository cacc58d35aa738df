/* SPDX-License-Identifier: MIT */
/*
 * The example of N.-C. Perng, C.-S. Liu and T.-W. Kuo, "Real-Time Linux with Budget-Based Resource
 * Reservation", 3.3.2: a periodic task with a budget, whose handler is called when that is used up.
 *
 * Rebuilt from its description, for the listing is not in the text of the paper that we have. Its
 * second handler, of SIGSCHED, is not needed: there the program itself gave the CPU to a more
 * important task, here the host does.
 *
 *   cc $(rtai-config --lxrt-cflags) -o budget budget.c $(rtai-config --lxrt-ldflags)
 */
#include <rtai_lxrt.h>

#define PERIOD 50000000LL /* ns */
#define BUDGET 20000000LL
#define JOBS 20

static volatile sig_atomic_t overruns;

/* The paper's wait(): the rest of the job comes with the next budget. */
static void wait_for_budget(int number)
{
	(void)number;
	overruns++;
	rt_task_wait_period();
}

/* Executes for so many ns of the thread's own time. */
static void execute(RTIME ns)
{
	struct timespec time;
	RTIME now, end = 0;

	do {
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
		now = time.tv_sec * 1000000000LL + time.tv_nsec;
		if (!end)
			end = now + ns;
	} while (now < end);
}

int main(void)
{
	int late = 0;
	RT_TASK *task;

	signal(SIGBUDGET, wait_for_budget);
	task = rt_task_init(nam2num("TASK1"), 1, 0, 0);
	if (!task || rt_task_make_periodic_budget(task, rt_get_time(), PERIOD, BUDGET))
		return 1;
	for (int job = 0; job < JOBS; job++) {
		/* Every fifth one takes half a budget more than there is. */
		execute(job % 5 ? BUDGET / 4 : BUDGET * 3 / 2);
		if (rt_task_wait_period() == RTE_TMROVRN)
			late++;
	}
	rt_task_delete(task);
	printf("%d jobs, %d budgets used up, %d waits late\n", JOBS, (int)overruns, late);
	return 0;
}
