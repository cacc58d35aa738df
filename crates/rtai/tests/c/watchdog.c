/* SPDX-License-Identifier: MIT */
/* Tasks that overrun their periods. */
#include "hard_tasks.h"

#include <rtai_wd.h>

/* Long enough that a task is not late by chance alone, in most runs; no check needs it. */
#define PERIOD (20 * MS)

static void has_settings(void)
{
	RETURNS(rt_wdset_policy(WD_NOTHING), WD_NOTHING);
	RETURNS((int)rt_wdset_policy((wd_policy)(WD_KILL + 1)), -EINVAL);
	RETURNS((int)rt_wdset_policy((wd_policy)-1), -EINVAL);
	RETURNS(rt_wdset_grace(2), -EINVAL);
	RETURNS(rt_wdset_policy(WD_SUSPEND), WD_NOTHING);
	RETURNS(rt_wdset_grace(3), 1);
	RETURNS(rt_wdset_grace(0), -EINVAL);
	RETURNS(rt_wdset_gracediv(2), 1);
	RETURNS(rt_wdset_safety(2), -EINVAL);
	RETURNS(rt_wdset_safety(3), 100);
	RETURNS(rt_wdset_slip(200), 10);
	RETURNS(rt_wdset_slip(-1), -EINVAL);
	RETURNS(rt_wdset_stretch(50), 10);
	RETURNS(rt_wdset_stretch(-1), -EINVAL);
	RETURNS(rt_wdset_limit(-1), 100);
	RETURNS(rt_wdset_policy(WD_DEBUG), WD_SUSPEND);
	RETURNS(rt_wdset_grace(1), 1);
	RETURNS(rt_wdset_gracediv(1), 1);
	RETURNS(rt_wdset_safety(-1), -1);
	RETURNS(rt_wdset_limit(-1), -1);
}

/* Becomes periodic, and is late by some periods. */
static void overruns(int periods)
{
	RETURNS(rt_task_make_periodic(NULL, rt_get_time(), PERIOD), 0);
	rt_sleep_until(rt_task_next_period() + (periods - 1) * PERIOD);
}

static RTIME period(RT_TASK *task)
{
	RT_TASK_INFO info;

	RETURNS(rt_task_get_info(task, &info), 0);
	return info.period;
}

/* Without it each period gone by is one call. */
static void does_nothing_at_first(void)
{
	overruns(5);
	for (int n = 0; n < 5; n++)
		RETURNS(rt_task_wait_period(), RTE_TMROVRN);
}

static void restarts_periods(void)
{
	RTIME now;

	rt_wdset_policy(WD_RESYNC);
	overruns(5);
	now = rt_get_time();
	RETURNS(rt_task_wait_period(), RTE_TMROVRN);
	CHECK(rt_task_next_period() >= now + PERIOD && period(NULL) == PERIOD);
	/* A task in its grace period is left alone. */
	rt_wdset_policy(WD_KILL);
	rt_wdset_grace(1000000);
	overruns(3);
	RETURNS(rt_task_wait_period(), RTE_TMROVRN);
	rt_wdset_gracediv(1000000);
	rt_wdset_policy(WD_DEBUG);
}

static void stretches(void)
{
	RTIME now;

	rt_wdset_policy(WD_STRETCH);
	rt_wdset_stretch(50);
	for (int n = 1; n <= 3; n++) {
		if (n == 1)
			overruns(2);
		else
			rt_sleep_until(rt_task_next_period() + PERIOD);
		now = rt_get_time();
		RETURNS(rt_task_wait_period(), RTE_TMROVRN);
		/* By percents of the first period. */
		RETURNS(period(NULL), PERIOD + n * PERIOD / 2);
		CHECK(rt_task_next_period() >= now + period(NULL));
	}
}

static void slips(void)
{
	RTIME now;

	rt_wdset_policy(WD_SLIP);
	rt_wdset_slip(150);
	overruns(4);
	now = rt_get_time();
	RETURNS(rt_task_wait_period(), RTE_TMROVRN);
	CHECK(rt_get_time() >= now + 3 * PERIOD / 2);
}

static RT_TASK *volatile watched;
static volatile int passed;

static void *is_watched(void *argument)
{
	(void)argument;
	watched = rt_task_init(nam2num("WATCHD"), 3, 0, 0);
	overruns(2);
	passed = 1;
	RETURNS(rt_task_wait_period(), RTE_TMROVRN);
	passed = 2;
	return NULL;
}

/* A task that is suspended continues when it is resumed. */
static void suspends(void)
{
	pthread_t thread;
	RTIME now;

	watched = NULL;
	passed = 0;
	thread = begin(is_watched, NULL);
	UNTIL(watched && passed);
	/* Once it is suspended, one more makes two. */
	UNTIL(rt_task_suspend(watched) == 2 || (rt_task_resume(watched), false));
	sleep_ms(50);
	RETURNS(passed, 1);
	now = rt_get_time();
	RETURNS(rt_task_resume(watched), 0);
	RETURNS(rt_task_resume(watched), 0);
	join(thread);
	RETURNS(passed, 2);
	CHECK(rt_get_time() >= now);
}

static void by_policy_limit_and_safety(void)
{
	rt_wdset_policy(WD_SUSPEND);
	suspends();
	rt_wdset_policy(WD_RESYNC);
	rt_wdset_limit(1);
	suspends();
	rt_wdset_limit(-1);
	rt_wdset_safety(1);
	suspends();
	rt_wdset_safety(-1);
}

static volatile bool was_cleaned;

static void clean(void *argument)
{
	(void)argument;
	was_cleaned = true;
}

static void *is_ended(void *argument)
{
	pthread_cleanup_push(clean, NULL);
	CHECK(rt_task_init(nam2num("ENDED"), 3, 0, 0));
	overruns(2);
	rt_task_wait_period();
	pthread_cleanup_pop(0);
	return argument;
}

static void ends(void)
{
	rt_wdset_policy(WD_KILL);
	CHECK(join(begin(is_ended, rt_agent())) == NULL);
	CHECK(was_cleaned && rt_get_adr(nam2num("ENDED")) == NULL);
}

int main(void)
{
	CHECK(rt_task_init(nam2num("MAIN"), 5, 0, 0));
	does_nothing_at_first();
	has_settings();
	restarts_periods();
	stretches();
	slips();
	by_policy_limit_and_safety();
	ends();
	return 0;
}
