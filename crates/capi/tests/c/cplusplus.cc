// SPDX-License-Identifier: MIT
// The header in C++, from C++11 on.
#include <punctual.h>

static void *returns(void *argument)
{
	return argument;
}

int main()
{
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual_task_attr task_attr = PUNCTUAL_TASK_ATTR_INIT;
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	struct punctual_period period = {};

	attr.policy = PUNCTUAL_DM;
	attr.task_limit = 10001;
	task_attr.overrun = PUNCTUAL_SKIP;
	struct punctual *set = nullptr;
	struct punctual_task *task = nullptr;
	bool refused = punctual_open(&attr, &set) < 0 &&
		       punctual_task_create(set, &task_attr, returns, &period, &task) < 0 &&
		       punctual_task_join(task, &end) < 0 && punctual_wait_period(&period) < 0;
	return refused && *punctual_last_error() ? 0 : 1;
}
