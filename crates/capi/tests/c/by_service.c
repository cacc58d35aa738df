/* SPDX-License-Identifier: MIT */
/* Tasks by the service, which listens at PUNCTUAL_SOCKET. */
#include "check.h"

#include <pthread.h>

static struct {
	pthread_mutex_t lock;
	char warning[512];
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void observe(const struct punctual_report *report, void *argument)
{
	(void)argument;
	pthread_mutex_lock(&seen.lock);
	if (report->kind == PUNCTUAL_REPORT_WARNING && !*seen.warning)
		snprintf(seen.warning, sizeof(seen.warning), "%s", report->text);
	pthread_mutex_unlock(&seen.lock);
}

/* The first warning of a set on this host is that. */
static void warns(uint32_t host, const char *words)
{
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	uint64_t until = punctual_clock() + LIVENESS;
	struct punctual *set;
	bool warned = false;

	*seen.warning = 0;
	attr.host = host;
	attr.observer = observe;
	set = open_set(&attr);
	while (!warned) {
		CHECK(punctual_clock() < until);
		sleep_ms(5);
		pthread_mutex_lock(&seen.lock);
		warned = *seen.warning;
		CHECK(!warned || strstr(seen.warning, words));
		pthread_mutex_unlock(&seen.lock);
	}
	CHECK(punctual_close(set) == 0);
}

/* Another dispatcher of this machine may have the CPU of the service's for a while. */
static bool is_taken(int result)
{
	static uint64_t until;

	if (!until)
		until = punctual_clock() + LIVENESS;
	if (result != -EIO || !strstr(punctual_last_error(), "already has a dispatcher"))
		return false;
	sleep_ms(100);
	return punctual_clock() < until;
}

static void locks_nothing(void)
{
	struct punctual_sem_attr of = PUNCTUAL_SEM_ATTR_INIT;
	struct punctual_mutex *mutex;
	struct punctual_cond *cond;
	struct punctual_sem *sem;
	struct punctual_barrier *barrier;

	of.units = 1;
	of.maximum = 1;
	CHECK(punctual_mutex_create(&mutex) == 0 && punctual_cond_create(&cond) == 0);
	CHECK(punctual_sem_create(&of, &sem) == 0 && punctual_barrier_create(1, &barrier) == 0);
	FAILS(punctual_mutex_lock(mutex), ENOTSUP);
	CHECK(strstr(punctual_last_error(), "lends no jobs"));
	FAILS(punctual_mutex_trylock(mutex), ENOTSUP);
	FAILS(punctual_mutex_unlock(mutex), ENOTSUP);
	FAILS(punctual_cond_wait(cond, mutex), ENOTSUP);
	FAILS(punctual_sem_wait(sem), ENOTSUP);
	FAILS(punctual_barrier_wait(barrier), ENOTSUP);
	CHECK(punctual_mutex_destroy(mutex) == 0 && punctual_cond_destroy(cond) == 0);
	CHECK(punctual_sem_destroy(sem) == 0 && punctual_barrier_destroy(barrier) == 0);
}

/* Resumes a task once it is suspended. */
static void *resumes(void *task)
{
	int result;

	while ((result = punctual_task_resume(task)) == -EALREADY)
		usleep(1000);
	CHECK(result == 0);
	return NULL;
}

static void this_thread(struct punctual *set)
{
	pthread_t other;
	struct punctual_task_attr of = task_attr("attached", 10 * MS, MS);
	struct punctual_period period, current;
	struct punctual_task *task;
	uint64_t next;
	int result;

	do {
		result = punctual_attach(set, &of, &task);
	} while (is_taken(result));
	CHECK(result == 0 && punctual_self() == task);
	FAILS(punctual_attach(set, &of, NULL), EALREADY);
	CHECK(punctual_wait_period(&period) == 0);
	for (int i = 0; i < 10; i++) {
		next = period.number;
		CHECK(punctual_wait_period(&period) == 0 && period.number > next);
		CHECK(period.deadline == period.release + 10 * MS);
	}
	CHECK(punctual_current_period(&current) == 0 && current.number >= period.number);
	CHECK(punctual_remaining_budget() >= 0 && punctual_remaining_budget() <= (int64_t)(2 * MS));
	CHECK(punctual_is_over() == 0);
	CHECK(pthread_create(&other, NULL, resumes, task) == 0);
	CHECK(punctual_suspend(NULL) == 0 && pthread_join(other, NULL) == 0);
	locks_nothing();
	CHECK(punctual_detach() == 0 && punctual_task_close(task) == 0);
	FAILS(punctual_wait_period(NULL), EPERM);
	CHECK(class_of_this_thread() == SCHED_OTHER);
}

static void *waits(void *argument)
{
	int result;

	while ((result = punctual_wait_period(NULL)) == 0)
		;
	CHECK(result == -ECANCELED && punctual_is_over() == 1);
	return argument;
}

static void other_tasks(struct punctual *set)
{
	struct punctual_task_attr of = task_attr("waits", 10 * MS, MS);
	struct punctual_task_change change = { .size = sizeof(change), .period = 20 * MS };
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	struct punctual_stats stats = PUNCTUAL_STATS_INIT;
	char *command[] = { "sh", "-c", "exit 7", NULL };
	struct punctual_task *task, *program;
	int result;

	do {
		result = punctual_task_create(set, &of, waits, &end, &task);
	} while (is_taken(result));
	CHECK(result == 0);
	CHECK(punctual_task_set_budget(task, 2 * MS) == 0);
	FAILS(punctual_task_set_budget(task, 11 * MS), EINVAL);
	CHECK(punctual_task_change(task, &change) == 0);
	CHECK(punctual_task_suspend(task) == 0 && punctual_task_resume(task) == 0);
	FAILS(punctual_task_resume(task), EALREADY);
	of.name = "much";
	of.budget = 9 * MS;
	FAILS(punctual_task_create(set, &of, waits, NULL, NULL), EBUSY);
	of.budget = MS;
	of.name = "command";
	CHECK(punctual_task_command(set, &of, command, &program) == 0);
	CHECK(punctual_task_join(program, &end) == 0);
	CHECK(end.how == PUNCTUAL_EXITED && end.code == 7);
	CHECK(punctual_stats(set, &stats) == 0 && stats.alive == 1);
	CHECK(punctual_task_stop(task) == 0 && punctual_task_join(task, &end) == 0);
	CHECK(end.how == PUNCTUAL_RETURNED && end.value == &end);
}

static void handler(void *argument)
{
	(void)argument;
}

static void refusals(struct punctual *set)
{
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual_group group = PUNCTUAL_GROUP_INIT;
	struct punctual_task_attr of = task_attr("handles", 10 * MS, MS);
	struct punctual *other;

	attr.host = PUNCTUAL_HOST_SERVICE + 1;
	FAILS(punctual_open(&attr, &other), EINVAL);
	attr.host = PUNCTUAL_HOST_SERVICE;
	attr.reserved = 1;
	FAILS(punctual_open(&attr, &other), EINVAL);
	attr.reserved = 0;
	attr.policy = PUNCTUAL_RM;
	FAILS(punctual_open(&attr, &other), EINVAL);
	CHECK(strstr(punctual_last_error(), "schedules by edf"));
	attr.policy = PUNCTUAL_EDF;
	attr.flags = PUNCTUAL_OVERLOAD;
	FAILS(punctual_open(&attr, &other), EINVAL);
	attr.flags = 0;
	group.name = "group";
	group.period = 10 * MS;
	group.budget = MS;
	attr.groups = &group;
	attr.group_count = 1;
	FAILS(punctual_open(&attr, &other), EINVAL);
	of.overrun = PUNCTUAL_SIGNAL;
	of.overrun_handler = handler;
	FAILS(punctual_attach(set, &of, NULL), EINVAL);
	CHECK(strstr(punctual_last_error(), "no overrun handlers"));
}

int main(void)
{
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual *set;

	attr.host = PUNCTUAL_HOST_SERVICE;
	CHECK(punctual_open(&attr, &set) == 0);
	this_thread(set);
	other_tasks(set);
	refusals(set);
	CHECK(punctual_close(set) == 0);
	warns(PUNCTUAL_HOST_AUTO, "the service host: punctuald serves");
	CHECK(setenv("PUNCTUAL_SOCKET", "/none", 1) == 0);
	FAILS(punctual_open(&attr, &set), ECONNREFUSED);
	warns(PUNCTUAL_HOST_AUTO, "the user host, in this program: no punctuald listens");
	return 0;
}
