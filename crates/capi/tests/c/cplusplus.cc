// SPDX-License-Identifier: MIT
// The header in C++, from C++11 on.
#include <punctual.h>

static void observe(const struct punctual_report *report, void *)
{
	(void)report->kind;
}

static void *returns(void *argument)
{
	return argument;
}

int main()
{
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual_task_attr task_attr = PUNCTUAL_TASK_ATTR_INIT;
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	struct punctual_mutex_attr mutex_attr = PUNCTUAL_MUTEX_ATTR_INIT;
	struct punctual_sem_attr sem_attr = PUNCTUAL_SEM_ATTR_INIT;
	struct punctual_task_change change = PUNCTUAL_TASK_CHANGE_INIT;
	struct punctual_job_attr job = PUNCTUAL_JOB_ATTR_INIT;
	struct punctual_job_event event = PUNCTUAL_JOB_EVENT_INIT;
	struct punctual_period period = {};

	struct punctual_group group = PUNCTUAL_GROUP_INIT;
	struct punctual_budget_group node = PUNCTUAL_BUDGET_GROUP_INIT;
	attr.policy = PUNCTUAL_DM;
	attr.groups = &group;
	attr.observer = observe;
	attr.budget_groups = &node;
	attr.group_count = attr.budget_group_count = 1;
	attr.task_limit = 10001;
	task_attr.overrun = PUNCTUAL_SKIP;
	struct punctual *set = nullptr;
	struct punctual_task *task = nullptr;
	struct punctual_mutex *mutex = nullptr;
	struct punctual_sem *sem = nullptr;
	bool refused = punctual_open(&attr, &set) < 0 &&
		       punctual_task_create(set, &task_attr, returns, &period, &task) < 0 &&
		       punctual_task_change(task, &change) < 0 &&
		       punctual_task_join(task, &end) < 0 && punctual_wait_period(&period) < 0 &&
		       punctual_suspend(&period) < 0 && punctual_task_suspend(task) < 0 &&
		       punctual_task_resume(task) < 0;
	bool locks = punctual_mutex_create_with(&mutex_attr, &mutex) == 0 &&
		     punctual_mutex_lock(mutex) < 0 &&
		     punctual_mutex_destroy(mutex) == 0 &&
		     punctual_sem_create(&sem_attr, &sem) == 0 && punctual_sem_post(sem) == 0 &&
		     punctual_sem_destroy(sem) == 0;
	bool jobs = punctual_job_add(nullptr, &job, nullptr) < 0 &&
		    punctual_job_event(nullptr, &event, 0) < 0;
	return refused && locks && jobs && *punctual_last_error() ? 0 : 1;
}
