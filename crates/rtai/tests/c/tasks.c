/* SPDX-License-Identifier: MIT */
/* Tasks, their suspension, sleep and priorities. */
#include "hard_tasks.h"

#include <sys/syscall.h>

static RT_TASK *volatile other;
static volatile int step, result;

/* The other thread's task, which suspends itself again and again. */
static void *suspends(void *argument)
{
	(void)argument;
	other = rt_thread_init(nam2num("OTHER"), 7, 0, SCHED_FIFO, 0);
	CHECK(other && rt_agent() == other && rt_get_linux_tid(other) == rt_gettid());
	while (step >= 0) {
		result = rt_task_suspend(NULL);
		step++;
	}
	RETURNS(rt_task_delete(NULL), 0);
	CHECK(rt_agent() == NULL);
	return NULL;
}

static bool is_suspended(RT_TASK *task)
{
	return rt_task_masked_unblock(task, 0) == RTE_UNBLKD;
}

static void is_suspended_and_resumed(void)
{
	pthread_t thread = (pthread_t)rt_thread_create((void *)suspends, NULL, 0);

	CHECK(thread);
	UNTIL(other && is_suspended(other));
	CHECK(has_priorities(other, 7 + SOFT, 7 + SOFT));
	/* Twice suspended, twice resumed. */
	RETURNS(rt_task_suspend(other), 2);
	RETURNS(rt_task_resume(other), 0);
	CHECK(is_suspended(other) && step == 0);
	RETURNS(rt_task_resume(other), 0);
	UNTIL(step == 1 && is_suspended(other));
	RETURNS(result, 0);
	/* An ended suspension. */
	RETURNS(rt_task_masked_unblock(other, RT_SCHED_SEMAPHORE), RTE_UNBLKD);
	CHECK(is_suspended(other));
	RETURNS(rt_task_masked_unblock(other, RT_SCHED_SUSPENDED), RTE_UNBLKD);
	UNTIL(step == 2 && is_suspended(other));
	RETURNS(result, RTE_UNBLKD);
	RETURNS(rt_change_prio(other, 3), 7 + SOFT);
	CHECK(has_priorities(other, 3 + SOFT, 3 + SOFT));
	RETURNS(rt_thread_delete(other), -EPERM);
	step = -2;
	RETURNS(rt_task_resume(other), 0);
	/* The lower half is enough, once. */
	RETURNS(rt_thread_join((int)thread), 0);
	RETURNS(rt_thread_join((long)thread), ESRCH);
	CHECK(rt_get_adr(nam2num("OTHER")) == NULL);
	RETURNS(rt_task_resume(other), -EINVAL);
}

/* A task that another one suspends stops in its next call. */
static void *counts(void *argument)
{
	CHECK(rt_task_init(nam2num("COUNTS"), 0, 0, 0));
	while (step >= 0) {
		++*(volatile long *)argument;
		rt_task_yield();
	}
	return NULL;
}

static void is_suspended_by_another_task(void)
{
	volatile long count = 0;
	long seen;
	pthread_t thread;
	RT_TASK *task;

	step = 0;
	thread = begin(counts, (void *)&count);
	UNTIL(count > 10);
	task = (RT_TASK *)rt_get_adr(nam2num("COUNTS"));
	RETURNS(rt_task_suspend(task), 1);
	do {
		seen = count;
		sleep_ms(50);
	} while (seen != count);
	RETURNS(rt_task_resume(task), 0);
	UNTIL(count > seen + 10);
	step = -1;
	join(thread);
	/* Its thread has ended without deleting it. */
	CHECK(rt_get_adr(nam2num("COUNTS")) == NULL);
}

static void sleeps(void)
{
	RTIME before = rt_get_time();

	RETURNS(rt_sleep(5 * MS), 0);
	CHECK(rt_get_time() - before >= 5 * MS);
	before = rt_get_time() + 5 * MS;
	RETURNS(rt_sleep_until(before), 0);
	CHECK(rt_get_time() >= before);
	RETURNS(rt_sleep_until(before), RTE_TMROVRN);
	RETURNS(rt_sleep(0), RTE_TMROVRN);
	RETURNS(rt_sleep(-1), RTE_TMROVRN);
	RETURNS(rt_task_suspend_timed(NULL, 5 * MS), RTE_TIMOUT);
	RETURNS(rt_task_suspend_until(NULL, rt_get_time() - 1), RTE_TMROVRN);
	/* Resumed in advance. */
	RETURNS(rt_task_resume(rt_agent()), 0);
	RETURNS(rt_task_suspend(NULL), 0);
	RETURNS(rt_task_resume(rt_agent()), 0);
	RETURNS(rt_task_suspend_if(NULL), 0);
	RETURNS(rt_task_suspend_if(NULL), 0);
}

static void *sleeps_long(void *argument)
{
	(void)argument;
	other = rt_task_init(nam2num("SLEEPS"), 0, 0, 0);
	result = rt_sleep(LIVENESS);
	return NULL;
}

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void a_sleep_is_ended(void)
{
	struct sigaction action;
	pthread_t thread;

	other = NULL;
	thread = begin(sleeps_long, NULL);
	UNTIL(other && is_suspended(other));
	RETURNS(rt_task_wakeup_sleeping(other), RTE_UNBLKD);
	join(thread);
	RETURNS(result, RTE_UNBLKD);
	/* By a signal. */
	memset(&action, 0, sizeof(action));
	action.sa_handler = count_signal;
	CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
	other = NULL;
	thread = begin(sleeps_long, NULL);
	UNTIL(other && is_suspended(other));
	/* It may be about to sleep. */
	while (is_suspended(other) && rt_get_adr(nam2num("SLEEPS"))) {
		pthread_kill(thread, SIGUSR1);
		sleep_ms(1);
	}
	join(thread);
	CHECK(signals > 0);
	RETURNS(result, RTE_UNBLKD);
}

static void is_refused(void)
{
	int priority;
	RT_TASK_INFO info;

	CHECK(rt_task_init(nam2num("MAIN"), 0, 0, 0) == rt_agent());
	RETURNS(rt_change_prio(NULL, -1), -EINVAL);
	RETURNS(rt_task_resume(NULL), -EINVAL);
	RETURNS(rt_task_suspend((RT_TASK *)&priority), -EINVAL);
	RETURNS(rt_get_priorities(NULL, &priority, NULL), -EINVAL);
	RETURNS(rt_get_prio((RT_TASK *)&priority), -EINVAL);
	RETURNS(rt_get_inher_prio((RT_TASK *)&priority), -EINVAL);
	RETURNS(rt_task_get_info(NULL, NULL), -EINVAL);
	RETURNS(rt_task_get_info(NULL, &info), 0);
	CHECK(info.period == 0 && info.base_priority == 5 + SOFT && info.priority == 5 + SOFT);
	CHECK(rt_get_prio(NULL) == 5 + SOFT && rt_get_inher_prio(NULL) == 5 + SOFT);
	RETURNS(rt_task_use_fpu(NULL, 1), 0);
	RETURNS(rt_task_use_fpu((RT_TASK *)&priority, 1), -EINVAL);
	CHECK(rt_thread_create(NULL, NULL, 0) == 0);
	RETURNS(rt_thread_join(0), ESRCH);
}

static void *is_no_task(void *argument)
{
	(void)argument;
	CHECK(rt_agent() == NULL);
	CHECK(rt_task_init(nam2num("BAD"), -1, 0, 0) == NULL);
	CHECK(rt_task_init_schmod(nam2num("BAD"), 0, 0, 0, 77, 0) == NULL);
	CHECK(rt_task_init(nam2num("MAIN"), 0, 0, 0) == NULL);
	CHECK(rt_agent() == NULL);
	/* It becomes one when it waits. */
	RETURNS(rt_sleep(1), 0);
	CHECK(rt_agent() && rt_get_name(rt_agent()) >= MAX_NAM2NUM);
	CHECK(has_priorities(NULL, RT_SCHED_LOWEST_PRIORITY + SOFT,
			     RT_SCHED_LOWEST_PRIORITY + SOFT));
	return NULL;
}

static void has_times_and_cpus(void)
{
	RTIME times[3], again[3];
	cpu_set_t before, after;

	rt_get_exectime(NULL, times);
	CHECK(times[0] > 0 && times[1] > 0 && times[1] <= times[2]);
	rt_busy_sleep(2 * MS);
	rt_get_exectime(rt_agent(), again);
	CHECK(again[0] > times[0] && again[1] == times[1] && again[2] > times[2]);
	rt_get_exectime((RT_TASK *)times, again);
	CHECK(again[0] == 0 && again[1] == 0 && again[2] == 0);

	CHECK(sched_getaffinity(0, sizeof(before), &before) == 0);
	for (unsigned cpu = 0; cpu < 64; cpu++) {
		if (!CPU_ISSET(cpu, &before))
			continue;
		rt_set_runnable_on_cpuid(NULL, cpu);
		CHECK(sched_getaffinity(0, sizeof(after), &after) == 0);
		CHECK(CPU_COUNT(&after) == 1 && CPU_ISSET(cpu, &after));
		break;
	}
	rt_set_runnable_on_cpus(NULL, ~1UL << 62);
	/* CPUs that are not there. */
	rt_set_runnable_on_cpuid(NULL, 63);
	rt_set_runnable_on_cpuid(NULL, 64);
	CHECK(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_COUNT(&after) == 1);
	CHECK(sched_setaffinity(0, sizeof(before), &before) == 0);
	rt_grow_and_lock_stack(100000);
	rt_grow_and_lock_stack(-1);
}

static RT_TASK *volatile monotonic[3];

static void *has_a_period(void *argument)
{
	long number = (long)argument;
	RTIME period = number == 1 ? 0 : (10 - number) * 1000 * MS;

	monotonic[number] = rt_task_init_schmod(0, 77, 0, 0, SCHED_FIFO, 0);
	if (period)
		rt_task_make_periodic(NULL, rt_get_time() + period, period);
	rt_task_suspend(NULL);
	return NULL;
}

/* Tasks without a period keep their priorities. */
static void are_rate_monotonic(void)
{
	pthread_t threads[3];
	RT_TASK_INFO info;

	for (long n = 0; n < 3; n++)
		threads[n] = begin(has_a_period, (void *)n);
	for (int n = 0; n < 3; n += 2)
		UNTIL(monotonic[n] && !rt_task_get_info(monotonic[n], &info) && info.period);
	UNTIL(monotonic[1]);
	rt_spv_RMS(0);
	CHECK(has_priorities(monotonic[2], SOFT, SOFT));
	CHECK(has_priorities(monotonic[0], 1 + SOFT, 1 + SOFT));
	CHECK(has_priorities(monotonic[1], 77 + SOFT, 77 + SOFT));
	RETURNS(rt_change_prio(monotonic[2], 9), SOFT);
	rt_spv_RMS(-1);
	CHECK(has_priorities(monotonic[2], SOFT, SOFT));
	for (int n = 0; n < 3; n++) {
		/* From the wait for its first period, and from its suspension. */
		while (rt_get_linux_tid(monotonic[n])) {
			rt_task_masked_unblock(monotonic[n], ~0UL);
			sleep_ms(1);
		}
		join(threads[n]);
	}
}

int main(void)
{
	RT_TASK *task = rt_task_init(nam2num("MAIN"), 5, 0, 0);

	CHECK(task && rt_buddy() == task && rt_gettid() == (int)syscall(SYS_gettid));
	is_suspended_and_resumed();
	is_suspended_by_another_task();
	sleeps();
	a_sleep_is_ended();
	is_refused();
	join(begin(is_no_task, NULL));
	are_rate_monotonic();
	has_times_and_cpus();
	return 0;
}
