/* SPDX-License-Identifier: MIT */
/* Bad input: the documented error, and nothing changed. */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

static void *returns(void *argument)
{
	return argument;
}

static void calls_of_a_thread_that_is_no_task(void)
{
	struct punctual_period period = { 1, 2, 3, 4, 5 };

	FAILS(punctual_wait_period(&period), EPERM);
	FAILS(punctual_suspend(&period), EPERM);
	FAILS(punctual_current_period(&period), EPERM);
	FAILS(punctual_remaining_budget(), EPERM);
	FAILS(punctual_is_over(), EPERM);
	FAILS(punctual_detach(), EPERM);
	CHECK(strstr(punctual_last_error(), "no task"));
	CHECK(punctual_self() == NULL && period.number == 1 && period.reserved == 5);
}

static void sets_that_cannot_be_opened(void)
{
	struct {
		struct punctual_attr attr;
		uint64_t later;
	} newer = { .attr = PUNCTUAL_ATTR_INIT };
	const struct punctual_attr good = PUNCTUAL_ATTR_INIT;
	struct punctual_attr attr = good;
	uint32_t cpus[] = { 65535 };
	struct punctual *set = NULL;

	FAILS(punctual_open(NULL, NULL), EFAULT);
	attr.size = 0;
	FAILS(punctual_open(&attr, &set), EINVAL);
	CHECK(strstr(punctual_last_error(), "size"));
	attr.size = SIZE_MAX;
	FAILS(punctual_open(&attr, &set), EINVAL);
	newer.attr.size = sizeof(newer);
	newer.later = 1;
	FAILS(punctual_open(&newer.attr, &set), E2BIG);
	attr = good;
	attr.policy = PUNCTUAL_JOBS + 1;
	FAILS(punctual_open(&attr, &set), EINVAL);
	attr = good;
	attr.flags = 0x80;
	FAILS(punctual_open(&attr, &set), EINVAL);
	attr = good;
	attr.task_limit = 10001;
	FAILS(punctual_open(&attr, &set), EINVAL);
	attr = good;
	attr.cpu_count = 1;
	FAILS(punctual_open(&attr, &set), EINVAL);
	attr.cpus = cpus;
	FAILS(punctual_open(&attr, &set), EINVAL);
	CHECK(strstr(punctual_last_error(), "no CPU 65535"));
	attr.cpu_count = SIZE_MAX;
	FAILS(punctual_open(&attr, &set), EINVAL);
	attr = good;
	attr.owner = "\xff";
	FAILS(punctual_open(&attr, &set), EINVAL);
	CHECK(set == NULL);
}

/* Neither of this set nor of any. */
static void bad_handles(struct punctual *set, struct punctual_task *task)
{
	struct punctual_task_attr attr = task_attr("x", 10 * MS, MS);
	int local;
	void *bad[] = { NULL, &local, (void *)1, (void *)-1, task, (char *)set + 4096 };

	for (size_t n = 0; n < sizeof(bad) / sizeof(*bad); n++) {
		FAILS(punctual_attach(bad[n], &attr, NULL), EBADF);
		FAILS(punctual_task_create(bad[n], &attr, returns, NULL, NULL), EBADF);
		FAILS(punctual_wait(bad[n], 0), EBADF);
		FAILS(punctual_close(bad[n]), EBADF);
		if (bad[n] == task)
			bad[n] = set;
		FAILS(punctual_task_join(bad[n], NULL), EBADF);
		FAILS(punctual_task_close(bad[n]), EBADF);
		FAILS(punctual_task_suspend(bad[n]), EBADF);
		FAILS(punctual_task_resume(bad[n]), EBADF);
	}
}

static void tasks_that_cannot_be(struct punctual *set)
{
	struct punctual_task_attr good = task_attr("good", 10 * MS, MS), attr = good;
	struct punctual_task *task = NULL, *other = NULL;
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;

	FAILS(punctual_attach(set, NULL, &task), EINVAL);
	CHECK(strstr(punctual_last_error(), "period"));
	attr.size = 1;
	FAILS(punctual_attach(set, &attr, &task), EINVAL);
	attr = task_attr("x", 1, 1);
	FAILS(punctual_attach(set, &attr, &task), EINVAL);
	attr = task_attr("x", 10 * MS, 20 * MS);
	FAILS(punctual_task_create(set, &attr, returns, NULL, &task), EINVAL);
	attr = task_attr("x", UINT64_MAX, MS);
	FAILS(punctual_attach(set, &attr, &task), EINVAL);
	attr = task_attr("", 10 * MS, MS);
	FAILS(punctual_attach(set, &attr, &task), EINVAL);
	attr = task_attr("\xff", 10 * MS, MS);
	FAILS(punctual_attach(set, &attr, &task), EINVAL);
	attr = good;
	attr.overrun = 4;
	FAILS(punctual_attach(set, &attr, &task), EINVAL);
	attr.overrun = PUNCTUAL_SIGNAL;
	FAILS(punctual_task_create(set, &attr, returns, NULL, &task), EINVAL);
	CHECK(strstr(punctual_last_error(), "SIGXCPU has no handler"));
	attr = good;
	attr.cpu = 65535;
	FAILS(punctual_attach(set, &attr, &task), EINVAL);
	attr = good;
	attr.stack = 1;
	FAILS(punctual_task_create(set, &attr, returns, NULL, &task), EINVAL);
	FAILS(punctual_task_create(set, &good, NULL, NULL, &task), EFAULT);

	/* The error of admission has the least change that would make it fit. */
	attr = task_attr("too much", 10 * MS, 95 * MS / 10);
	FAILS(punctual_attach(set, &attr, &task), EBUSY);
	CHECK(strstr(punctual_last_error(), "90 %"));
	FAILS(punctual_task_create(set, &attr, returns, NULL, &task), EBUSY);
	CHECK(strstr(punctual_last_error(), "90 %"));
	CHECK(task == NULL && punctual_self() == NULL && class_of_this_thread() == SCHED_OTHER);

	CHECK(punctual_attach(set, &good, &task) == 0);
	FAILS(punctual_task_create(set, &good, returns, NULL, &other), EEXIST);
	attr = task_attr("one more", 10 * MS, MS);
	FAILS(punctual_task_create(set, &attr, returns, NULL, &other), ENOSPC);
	bad_handles(set, task);
	CHECK(punctual_wait_period(NULL) == 0 && other == NULL);
	CHECK(punctual_detach() == 0);
	end.size = 0;
	FAILS(punctual_task_join(task, &end), EINVAL);
	CHECK(punctual_task_join(task, NULL) == 0);
	bad_handles(set, task);
}

/* The child has neither its parent's task nor the set. */
static void a_child_of_fork(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("parent", 10 * MS, 2 * MS);
	struct punctual_task *task;
	int status;
	pid_t child;

	CHECK(punctual_attach(set, &attr, &task) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct punctual *other = NULL;

		calls_of_a_thread_that_is_no_task();
		FAILS(punctual_attach(set, &attr, NULL), EBADF);
		FAILS(punctual_close(set), EBADF);
		FAILS(punctual_task_join(task, NULL), EBADF);
		FAILS(punctual_open(NULL, &other), EPERM);
		/* With the destructors of the thread's storage. */
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(punctual_wait_period(NULL) == 0 && punctual_detach() == 0);
	CHECK(punctual_task_join(task, NULL) == 0);
}

static void a_cpu_has_one_dispatcher(void)
{
	struct punctual *second = NULL;

	FAILS(punctual_open(NULL, &second), EBUSY);
	CHECK(second == NULL && strstr(punctual_last_error(), "refused.c's owner"));
}

int main(void)
{
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual *set;

	CHECK(*punctual_last_error() == 0);
	calls_of_a_thread_that_is_no_task();
	bad_handles(NULL, NULL);
	sets_that_cannot_be_opened();
	attr.task_limit = 1;
	attr.owner = "refused.c's owner";
	set = open_set(&attr);
	a_cpu_has_one_dispatcher();
	tasks_that_cannot_be(set);
	a_child_of_fork(set);
	CHECK(punctual_close(set) == 0);
	/* A closed handle is none, also when another set is open. */
	struct punctual *second = open_set(&attr);

	CHECK(second != set);
	FAILS(punctual_close(set), EBADF);
	bad_handles(set, NULL);
	CHECK(punctual_close(second) == 0);
	return 0;
}
