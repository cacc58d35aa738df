/* SPDX-License-Identifier: MIT */
/* Calls on tasks, and on the calling one. */
#include <limits.h>
#include <sys/types.h>

#include "calls.h"

/* Some end with a mutex locked, while the first thread may wait for it, or destroy it. */
static void *work(void *argument)
{
	struct punctual_mutex *mutex = __atomic_load_n(&held.mutex[0], __ATOMIC_RELAXED);

	if ((uintptr_t)argument % 16 > 7)
		checked(punctual_mutex_lock_until(mutex, punctual_clock() + MS));
	for (uintptr_t i = 0; i < (uintptr_t)argument % 4; i++)
		if (punctual_wait_period(NULL) < 0)
			break;
	return argument;
}

static void overran(void *argument)
{
	(void)argument;
}

static void choose(struct stream *in, struct punctual_task_attr *attr)
{
	static const char *const names[] = { NULL, "a", "b", "", "\xff\x01", "much too long ..."
		"................................................................." };
	int usual = stream_byte(in) % 4;

	attr->name = names[stream_below(in, 6)];
	attr->period = usual ? 5 * MS : stream_number(in);
	attr->budget = usual ? MS / 2 : stream_number(in);
	attr->deadline = usual > 1 ? 0 : stream_number(in);
	attr->offset = stream_number(in) % (2 * MS);
	attr->priority = usual > 2 ? 0 : (int64_t)stream_number(in);
	attr->overrun = stream_byte(in) % 8 ? PUNCTUAL_CARRY : stream_below(in, 6);
	attr->cpu = stream_byte(in) % 8 ? 0 : (uint32_t)stream_number(in);
	attr->stack = stream_byte(in) % 8 ? 0 : stream_number(in) % (1 << 20);
	/* With the handler of this process it is refused; without, it is called. */
	attr->overrun_handler = stream_byte(in) % 8 ? NULL : overran;
	attr->group = stream_byte(in) % 4 ? NULL : "a";
	attr->budget_group = stream_byte(in) % 4 ? NULL : "a";
	if (stream_byte(in) % 16 == 1)
		attr->size = stream_below(in, 4) * 40;
}

/* Of a task whose releases are waited for. */
static void choose_thread(struct stream *in, struct punctual_task_attr *attr)
{
	choose(in, attr);
	if (attr->period > 20 * MS)
		attr->period = 20 * MS;
}

void call_task(struct stream *in)
{
	struct punctual_task_attr attr = PUNCTUAL_TASK_ATTR_INIT;
	struct punctual_task_stats stats = PUNCTUAL_TASK_STATS_INIT;
	struct punctual_task_change change = PUNCTUAL_TASK_CHANGE_INIT;
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	char *const commands[][3] = { { "true", NULL }, { "sleep", "9", NULL }, { "/none", NULL },
				      { NULL } };
	struct punctual_task *task;

	switch (stream_byte(in) % 12) {
	case 0:
		choose_thread(in, &attr);
		attr.group = attr.group ? "b" : NULL;
		checked(punctual_attach(handle(in, held.set), &attr, room(in, held.task)));
		break;
	case 1:
		choose_thread(in, &attr);
		checked(punctual_task_create(handle(in, held.set), &attr, work,
					     (void *)(uintptr_t)stream_byte(in),
					     room(in, held.task)));
		break;
	case 2:
		choose(in, &attr);
		checked(punctual_task_command(handle(in, held.set), &attr,
					      commands[stream_below(in, 4)], room(in, held.task)));
		break;
	case 3: {
		/* None of another program's: it would be parked. */
		static const pid_t pids[] = { 0, -1, INT_MIN, INT_MAX };

		choose(in, &attr);
		checked(punctual_task_pid(handle(in, held.set), &attr, pids[stream_below(in, 4)],
					  room(in, held.task)));
		break;
	}
	case 4:
		task = handle(in, held.task);
		checked(punctual_task_stop(task));
		break;
	case 5:
		task = handle(in, held.task);
		punctual_task_stop(task);
		end.size = stream_byte(in) % 8 ? sizeof(end) : stream_below(in, sizeof(end));
		checked(punctual_task_join(task, stream_byte(in) % 4 ? &end : NULL));
		break;
	case 6:
		task = handle(in, held.task);
		/* One that waits for a job does not end by itself. */
		punctual_task_stop(task);
		checked(punctual_task_close(task));
		break;
	case 7:
		task = handle(in, held.task);
		checked(punctual_task_set_budget(task, stream_number(in)));
		break;
	case 8:
		stats.size = stream_byte(in) % 8 ? sizeof(stats) : stream_below(in, sizeof(stats));
		checked(punctual_task_stats(handle(in, held.task), &stats));
		break;
	case 9:
		change.size = stream_byte(in) % 8 ? sizeof(change) : stream_below(in, 64);
		change.period = stream_byte(in) % 2 ? 0 : stream_number(in);
		/* So long as its end may be waited for. */
		if (change.period > 20 * MS && change.period < 1ull << 62)
			change.period = 20 * MS;
		change.budget = stream_byte(in) % 2 ? 0 : stream_number(in);
		change.deadline = stream_byte(in) % 2 ? 0 : stream_number(in);
		change.priority = (int64_t)stream_number(in);
		change.flags = stream_below(in, 3);
		checked(punctual_task_change(handle(in, held.task),
					     stream_byte(in) % 8 ? &change : NULL));
		break;
	case 10:
		task = handle(in, held.task);
		/* No thread would resume the calling one. */
		if (task != punctual_self())
			checked(punctual_task_suspend(task));
		break;
	case 11:
		checked(punctual_task_resume(handle(in, held.task)));
		break;
	}
}

void call_current(struct stream *in)
{
	struct punctual_period period;

	switch (stream_byte(in) % 6) {
	case 0:
		checked(punctual_wait_period(stream_byte(in) % 2 ? &period : NULL));
		break;
	case 1:
		checked(punctual_current_period(stream_byte(in) % 2 ? &period : NULL));
		break;
	case 2:
		checked(punctual_remaining_budget());
		break;
	case 3:
		checked(punctual_is_over());
		break;
	case 4:
		punctual_self();
		break;
	case 5:
		checked(punctual_detach());
		break;
	}
}
