/* SPDX-License-Identifier: MIT */
/* The tasks of RT-Linux 1, over a FIFO, as its programs use them. */
#include "check.h"

#include <linux/rtf.h>
#include <linux/rt_sched.h>

#define FIFO 1

static RT_TASK task, other;
static volatile int passed;

static void function(int data)
{
	CHECK(data == 7);
	for (;;) {
		rtf_put(FIFO, &data, sizeof(data));
		passed++;
		rt_task_wait();
	}
}

static void suspends_itself(int data)
{
	(void)data;
	for (;;) {
		passed++;
		RETURNS(rt_task_suspend(&other), 0);
	}
}

int main(void)
{
	RTIME now = rt_get_time();
	int before, data;

	CHECK(now > 0 && rt_get_time() >= now);
	RETURNS(rt_task_init(NULL, function, 7, 3000, 4), -EINVAL);
	RETURNS(rt_task_init(&task, NULL, 7, 3000, 4), -EINVAL);
	RETURNS(rt_task_init(&task, function, 7, -1, 4), -EINVAL);
	RETURNS(rt_task_init(&task, function, 7, 3000, -1), -EINVAL);
	RETURNS(rt_task_init(&task, function, 7, 3000, RT_LOWEST_PRIORITY + 1), -EINVAL);
	RETURNS(rt_task_make_periodic(&task, now, MS), -EINVAL);
	RETURNS(rt_task_delete(&task), -EINVAL);
	RETURNS(rt_task_suspend(NULL), -EINVAL);
	RETURNS(rt_task_wakeup(&task), -EINVAL);
	RETURNS(rt_task_wait(), -EINVAL);
	RETURNS(rtf_create(FIFO, 4000), 0);
	RETURNS(rt_task_init(&task, function, 7, 3000, 4), 0);
	/* It is dormant. */
	sleep_ms(30);
	CHECK(passed == 0);
	RETURNS(rt_task_make_periodic(&task, rt_get_time(), RT_TICKS_PER_SEC / 1000), 0);
	UNTIL(passed > 3);
	RETURNS(rtf_get(FIFO, &data, sizeof(data)), sizeof(data));
	CHECK(data == 7);
	RETURNS(rt_task_suspend(&task), 0);
	before = passed + 1;
	sleep_ms(5);
	CHECK(passed <= before);
	RETURNS(rt_task_wakeup(&task), 0);
	UNTIL(passed > before + 2);
	RETURNS(rt_task_make_periodic(&task, 0, -1), -EINVAL);
	RETURNS(rt_task_delete(&task), 0);
	RETURNS(rt_task_delete(&task), -EINVAL);
	before = passed;
	RETURNS(rt_task_init(&other, suspends_itself, 0, 3000, 1), 0);
	RETURNS(rt_task_wakeup(&other), 0);
	UNTIL(passed == before + 1);
	sleep_ms(5);
	CHECK(passed == before + 1);
	RETURNS(rt_task_wakeup(&other), 0);
	UNTIL(passed == before + 2);
	RETURNS(rt_task_delete(&other), 0);
	RETURNS(rtf_destroy(FIFO), 0);
	return 0;
}
