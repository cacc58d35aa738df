/* SPDX-License-Identifier: MIT */
/* Tasks of RT-Linux 1, over the threads of RT-Linux 2 and 3. */
#include <errno.h>
#include <rtl_sched.h>

#define MAGIC 0x52544c31u

static void *first_function(void *argument)
{
	RT_TASK *task = (RT_TASK *)argument;

	/* Dormant until it has periods, or is woken. */
	pthread_wait_np();
	task->function(task->data);
	return NULL;
}

/* What is refused has the errors of RT-Linux 1. */
static int result(int refused)
{
	return refused == 0 ? 0 : refused == EAGAIN || refused == ENOMEM ? -ENOMEM : -EINVAL;
}

int rt_task_init(RT_TASK *task, void (*function)(int), int data, int stack_size, int priority)
{
	struct sched_param parameters;
	pthread_attr_t attr;
	int refused;

	if (!task || !function || stack_size < 0)
		return -EINVAL;
	if (priority < 0 || priority > RT_LOWEST_PRIORITY)
		return -EINVAL;
	pthread_attr_init(&attr);
	parameters.sched_priority = RT_LOWEST_PRIORITY - priority;
	pthread_attr_setschedparam(&attr, &parameters);
	task->function = function;
	task->data = data;
	refused = pthread_create(&task->thread, &attr, first_function, task);
	task->magic = refused ? 0 : MAGIC;
	return result(refused);
}

int rt_task_delete(RT_TASK *task)
{
	if (!task || task->magic != MAGIC)
		return -EINVAL;
	task->magic = 0;
	return result(pthread_delete_np(task->thread));
}

int rt_task_make_periodic(RT_TASK *task, RTIME start_time, RTIME period)
{
	if (!task || task->magic != MAGIC)
		return -EINVAL;
	return result(pthread_make_periodic_np(task->thread, start_time, period));
}

int rt_task_wait(void)
{
	return result(pthread_wait_np());
}

int rt_task_suspend(RT_TASK *task)
{
	if (!task || task->magic != MAGIC)
		return -EINVAL;
	return result(pthread_suspend_np(task->thread));
}

int rt_task_wakeup(RT_TASK *task)
{
	if (!task || task->magic != MAGIC)
		return -EINVAL;
	return result(pthread_wakeup_np(task->thread));
}

RTIME rt_get_time(void)
{
	return gethrtime();
}
