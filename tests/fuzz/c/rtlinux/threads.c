/* SPDX-License-Identifier: MIT */
/* Threads, their attributes, and the tasks of RT-Linux 1. */
#include "rtlinux.h"

/* A thread of these, or no thread. */
static pthread_t thread(struct stream *in)
{
	uint8_t choice = stream_byte(in);

	if (choice < 200)
		return held.thread[choice % SLOTS];
	return choice < 230 ? pthread_self() : (pthread_t)stream_number(in);
}

static void *waits(void *argument)
{
	for (size_t n = (size_t)argument; ; n++)
		switch (n % 4) {
		case 0:
			pthread_wait_np();
			break;
		case 1:
			pthread_suspend_np(pthread_self());
			break;
		case 2:
			usleep(1000);
			break;
		case 3:
			pthread_make_periodic_np(pthread_self(), gethrtime(), 100000);
			break;
		}
	return NULL;
}

static void function(int data)
{
	waits((void *)(size_t)data);
}

void call_thread(struct stream *in)
{
	struct sched_param parameters = { .sched_priority = number(in) };
	uint32_t slot = stream_below(in, SLOTS);
	pthread_attr_t *attr = stream_byte(in) % 4 ? &held.attr[slot] : NULL;
	pthread_t to;
	int value;

	switch (stream_below(in, 12)) {
	case 0:
		if (!held.thread[slot])
			zero_or_errno(pthread_create(&held.thread[slot], attr,
					       stream_byte(in) % 8 ? waits : NULL,
					       (void *)(size_t)stream_byte(in)));
		break;
	case 1:
		if (pthread_delete_np(held.thread[slot]) == 0)
			held.thread[slot] = 0;
		break;
	case 2:
		zero_or_errno(pthread_cancel(held.thread[slot]));
		break;
	case 3:
		/* One that was cancelled, now or before, ends. */
		pthread_cancel(held.thread[slot]);
		zero_or_errno(pthread_join(held.thread[slot], NULL));
		held.thread[slot] = 0;
		break;
	case 4:
		pthread_cancel(held.thread[slot]);
		zero_or_errno(pthread_detach(held.thread[slot]));
		held.thread[slot] = 0;
		break;
	case 5:
		to = thread(in);
		value = stream_below(in, 2) ? RTL_SIGNAL_NULL : number(in);
		/* The fuzzer's own thread, which is a task by now perhaps, must not end. */
		if (value != RTL_SIGNAL_CANCEL || !pthread_equal(to, pthread_self()))
			zero_or_errno(pthread_kill(to, value));
		break;
	case 6:
		zero_or_errno(pthread_setschedparam(thread(in), stream_below(in, 4), &parameters));
		break;
	case 7:
		zero_or_errno(pthread_getschedparam(thread(in), &value, &parameters));
		break;
	case 8:
		zero_or_errno(pthread_setfp_np(thread(in), 1));
		break;
	case 9:
		zero_or_errno(pthread_make_periodic_np(thread(in), (hrtime_t)stream_number(in),
						 (hrtime_t)stream_number(in)));
		break;
	case 10:
		zero_or_errno(pthread_suspend_np(held.thread[slot]));
		break;
	case 11:
		zero_or_errno(pthread_wakeup_np(thread(in)));
		break;
	}
}

void call_attr(struct stream *in)
{
	pthread_attr_t *attr = stream_byte(in) % 8 ? &held.attr[stream_below(in, SLOTS)] : NULL;
	struct sched_param parameters = { .sched_priority = number(in) };
	size_t size = (size_t)stream_number(in);
	int value = number(in);

	switch (stream_below(in, 14)) {
	case 0:
	case 1:
		zero_or_errno(pthread_attr_init(attr));
		break;
	case 2:
		zero_or_errno(pthread_attr_destroy(attr));
		break;
	case 3:
		zero_or_errno(pthread_attr_setschedparam(attr, &parameters));
		break;
	case 4:
		zero_or_errno(pthread_attr_getschedparam(attr, stream_below(in, 2) ? &parameters : NULL));
		break;
	case 5:
		/* What a thread may have. */
		zero_or_errno(pthread_attr_setstacksize(attr, size % (1 << 20)));
		break;
	case 6:
		zero_or_errno(pthread_attr_getstacksize(attr, &size));
		break;
	case 7:
		zero_or_errno(pthread_attr_setdetachstate(attr, value));
		break;
	case 8:
		zero_or_errno(pthread_attr_getdetachstate(attr, &value));
		break;
	case 9:
		zero_or_errno(pthread_attr_setcpu_np(attr, value));
		break;
	case 10:
		zero_or_errno(pthread_attr_getcpu_np(attr, &value));
		break;
	case 11:
		zero_or_errno(pthread_attr_setschedpolicy(attr, value));
		zero_or_errno(pthread_attr_getschedpolicy(attr, &value));
		break;
	case 12:
		zero_or_errno(pthread_attr_setfp_np(attr, value));
		break;
	case 13:
		zero_or_errno(pthread_attr_getfp_np(attr, &value));
		break;
	}
}

void call_task(struct stream *in)
{
	RT_TASK *task = stream_byte(in) % 8 ? &held.task[stream_below(in, SLOTS)] : NULL;

	switch (stream_below(in, 6)) {
	case 0:
		/* The memory of one that was not deleted is in use. */
		if (!task || task->magic == 0)
			count_or_negative_errno(rt_task_init(task, stream_byte(in) % 8 ? function : NULL,
					      number(in), number(in), number(in)));
		break;
	case 1:
		count_or_negative_errno(rt_task_delete(task));
		break;
	case 2:
		count_or_negative_errno(rt_task_make_periodic(task, (RTIME)stream_number(in),
					       (RTIME)stream_number(in)));
		break;
	case 3:
		count_or_negative_errno(rt_task_suspend(task));
		break;
	case 4:
		count_or_negative_errno(rt_task_wakeup(task));
		break;
	case 5:
		/* Of a thread that is no task, or is woken. */
		count_or_negative_errno(rt_task_wait());
		break;
	}
}
