/* SPDX-License-Identifier: MIT */
/* Commands and running processes as tasks; changes while they run; figures; the overrun signal. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static void commands(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("command", 10 * MS, MS);
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	char *exits[] = { "sh", "-c", "exit 7", NULL }, *sleeps[] = { "sleep", "1000", NULL };
	char *missing[] = { "/no/such/command", NULL }, *empty[] = { NULL };
	struct punctual_task *task = NULL;

	FAILS(punctual_task_command(set, &attr, missing, &task), ENOENT);
	FAILS(punctual_task_command(set, &attr, empty, &task), EINVAL);
	FAILS(punctual_task_command(set, &attr, NULL, &task), EFAULT);
	FAILS(punctual_task_command(NULL, &attr, exits, &task), EBADF);
	CHECK(task == NULL);

	CHECK(punctual_task_command(set, &attr, exits, &task) == 0);
	CHECK(punctual_task_join(task, &end) == 0);
	CHECK(end.how == PUNCTUAL_EXITED && end.code == 7 && end.value == NULL);

	CHECK(punctual_task_command(set, &attr, sleeps, &task) == 0);
	FAILS(punctual_wait(set, punctual_clock() + 50 * MS), ETIMEDOUT);
	CHECK(punctual_task_stop(task) == 0);
	CHECK(punctual_task_join(task, &end) == 0);
	CHECK(end.how == PUNCTUAL_SIGNALLED && end.code == SIGKILL);
}

/* Another set closes, and the process has what it had. */
static void processes(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("process", 10 * MS, MS);
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	struct punctual_task *task = NULL;
	pid_t ended = fork(), child;

	if (ended == 0)
		_exit(0);
	CHECK(waitpid(ended, NULL, 0) == ended);
	child = fork();

	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("sleep", "sleep", "1000", (char *)NULL);
		_exit(127);
	}
	FAILS(punctual_task_pid(set, &attr, -1, &task), EINVAL);
	FAILS(punctual_task_pid(set, &attr, 0, &task), EINVAL);
	FAILS(punctual_task_pid(set, &attr, getpid(), &task), EINVAL);
	FAILS(punctual_task_pid(set, &attr, 1 << 30, &task), EINVAL);
	FAILS(punctual_task_pid(set, &attr, ended, &task), ESRCH);
	CHECK(task == NULL);
	CHECK(punctual_task_pid(set, &attr, child, &task) == 0);
	CHECK(punctual_task_stop(task) == 0);
	CHECK(punctual_task_join(task, &end) == 0 && end.how == PUNCTUAL_STOPPED);
	CHECK(sched_getscheduler(child) == SCHED_OTHER && waitpid(child, NULL, WNOHANG) == 0);
	CHECK(punctual_task_pid(set, &attr, child, &task) == 0);
	CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
	CHECK(punctual_task_join(task, &end) == 0 && end.how == PUNCTUAL_GONE);
}

static void *executes(void *argument)
{
	(void)argument;
	while (!punctual_is_over())
		;
	return NULL;
}

static void *waits(void *argument)
{
	while (punctual_wait_period(NULL) == 0)
		;
	return argument;
}

static void tasks_change_while_they_run(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("changes", 20 * MS, 2 * MS);
	struct punctual_task_stats stats = PUNCTUAL_TASK_STATS_INIT;
	struct punctual_stats all = PUNCTUAL_STATS_INIT;
	uint64_t until = punctual_clock() + LIVENESS;
	struct punctual_task *task, *other;

	CHECK(punctual_task_create(set, &attr, executes, NULL, &task) == 0);
	FAILS(punctual_task_set_budget(task, 0), EINVAL);
	FAILS(punctual_task_set_budget(task, 21 * MS), EINVAL);
	FAILS(punctual_task_set_budget(task, 19 * MS), EBUSY);
	FAILS(punctual_task_set_budget(NULL, MS), EBADF);
	CHECK(punctual_task_set_budget(task, 4 * MS) == 0);
	attr = task_attr("other", 20 * MS, MS);
	CHECK(punctual_task_create(set, &attr, waits, &attr, &other) == 0);

	FAILS(punctual_task_stats(NULL, &stats), EBADF);
	FAILS(punctual_task_stats(task, NULL), EFAULT);
	stats.size = 1;
	FAILS(punctual_task_stats(task, &stats), EINVAL);
	stats.size = sizeof(stats);
	do {
		CHECK(punctual_clock() < until);
		sleep_ms(20);
		CHECK(punctual_task_stats(task, &stats) == 0);
		/* It got the new budget. */
	} while (stats.periods < 5 || stats.assigned <= stats.periods * 2 * MS);
	CHECK(stats.size == sizeof(stats) && stats.period == 20 * MS && stats.budget == 2 * MS);
	CHECK(stats.deadline == 20 * MS && stats.received > 0 && stats.overruns > 0);

	FAILS(punctual_stats(NULL, &all), EBADF);
	FAILS(punctual_stats(set, NULL), EFAULT);
	CHECK(punctual_stats(set, &all) == 0);
	CHECK(all.alive == 2 && all.tasks > 2 && all.periods >= stats.periods);
	CHECK(all.duration > 0 && all.dispatcher_events > 0 && all.dispatcher_cpu > 0);

	CHECK(punctual_task_stop(task) == 0 && punctual_task_stop(other) == 0);
	CHECK(punctual_task_join(other, NULL) == 0);
	CHECK(punctual_wait(set, until) == 0);
	FAILS(punctual_task_stop(task), ESRCH);
	FAILS(punctual_task_set_budget(task, MS), ESRCH);
	CHECK(punctual_task_stats(task, &stats) == 0);
	CHECK(punctual_task_join(task, NULL) == 0);
	FAILS(punctual_task_stats(task, &stats), EBADF);
}

/* How long the latest period of a task is; 0 before the first. */
static uint64_t period_length;

static void *measures_its_periods(void *argument)
{
	struct punctual_period period;

	while (punctual_wait_period(&period) == 0)
		__atomic_store_n(&period_length, period.deadline - period.release, __ATOMIC_SEQ_CST);
	return argument;
}

static void await_period(uint64_t length)
{
	uint64_t until = punctual_clock() + LIVENESS;

	while (__atomic_load_n(&period_length, __ATOMIC_SEQ_CST) != length) {
		CHECK(punctual_clock() < until);
		sleep_ms(5);
	}
}

static void periods_change_while_the_task_runs(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("periods", 20 * MS, 2 * MS);
	const struct punctual_task_change same = PUNCTUAL_TASK_CHANGE_INIT;
	struct punctual_task_change change = same;
	struct punctual_task *task;

	CHECK(punctual_task_create(set, &attr, measures_its_periods, NULL, &task) == 0);
	await_period(20 * MS);
	FAILS(punctual_task_change(NULL, &same), EBADF);
	FAILS(punctual_task_change(task, NULL), EFAULT);
	change.size = 8;
	FAILS(punctual_task_change(task, &change), EINVAL);
	change = same;
	change.flags = 2;
	FAILS(punctual_task_change(task, &change), EINVAL);
	change = same;
	change.reserved = 1;
	FAILS(punctual_task_change(task, &change), EINVAL);
	change = same;
	change.period = 1;
	FAILS(punctual_task_change(task, &change), EINVAL);
	change.period = UINT64_MAX;
	FAILS(punctual_task_change(task, &change), EINVAL);
	change.period = 10 * MS;
	change.deadline = 11 * MS;
	FAILS(punctual_task_change(task, &change), EINVAL);
	change.deadline = 0;
	change.budget = 10 * MS;
	FAILS(punctual_task_change(task, &change), EBUSY);
	CHECK(punctual_task_change(task, &same) == 0);
	change.budget = 0;
	change.priority = 5;
	change.flags = PUNCTUAL_CHANGE_PRIORITY;
	CHECK(punctual_task_change(task, &change) == 0);
	await_period(10 * MS);
	CHECK(punctual_task_stop(task) == 0);
	while (punctual_task_change(task, &change) == 0)
		sleep_ms(1);
	FAILS(punctual_task_change(task, &change), ESRCH);
	CHECK(punctual_task_join(task, NULL) == 0);
	FAILS(punctual_task_change(task, &change), EBADF);
}

/* How often a task came back from its own suspension, and what it missed then. */
static uint64_t turns, missed;

static void *suspends_itself(void *argument)
{
	struct punctual_period period;

	while (punctual_suspend(&period) == 0) {
		missed = period.lost;
		__atomic_fetch_add(&turns, 1, __ATOMIC_SEQ_CST);
	}
	return argument;
}

/* Until so many further periods of a task are counted. */
static void await_periods(struct punctual_task *task, uint64_t more)
{
	struct punctual_task_stats stats = PUNCTUAL_TASK_STATS_INIT;
	uint64_t until = punctual_clock() + LIVENESS;

	CHECK(punctual_task_stats(task, &stats) == 0);
	for (more += stats.periods; stats.periods < more; sleep_ms(5)) {
		CHECK(punctual_clock() < until);
		CHECK(punctual_task_stats(task, &stats) == 0);
	}
}

static void tasks_are_suspended_and_resumed(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("suspends", 10 * MS, MS);
	uint64_t until = punctual_clock() + LIVENESS, seen;
	char *sleeps[] = { "sleep", "1000", NULL };
	struct punctual_task *task, *command;

	CHECK(punctual_task_create(set, &attr, suspends_itself, NULL, &task) == 0);
	/* It is suspended at some time, and not before. */
	while (punctual_task_resume(task) == -EALREADY) {
		CHECK(punctual_clock() < until);
		sleep_ms(1);
	}
	while (__atomic_load_n(&turns, __ATOMIC_SEQ_CST) == 0) {
		CHECK(punctual_clock() < until);
		sleep_ms(1);
	}
	/* Once more than it does itself. */
	CHECK(punctual_task_suspend(task) == 0);
	seen = __atomic_load_n(&turns, __ATOMIC_SEQ_CST);
	CHECK(seen == 1);
	await_periods(task, 5);
	CHECK(punctual_task_resume(task) == 0);
	await_periods(task, 5);
	CHECK(__atomic_load_n(&turns, __ATOMIC_SEQ_CST) == 1);
	CHECK(punctual_task_resume(task) == 0);
	while (__atomic_load_n(&turns, __ATOMIC_SEQ_CST) == 1) {
		CHECK(punctual_clock() < until);
		sleep_ms(1);
	}
	CHECK(missed > 0);

	attr = task_attr("frozen", 10 * MS, MS);
	CHECK(punctual_task_command(set, &attr, sleeps, &command) == 0);
	CHECK(punctual_task_suspend(command) == 0);
	await_periods(command, 3);
	CHECK(punctual_task_resume(command) == 0);
	FAILS(punctual_task_resume(command), EALREADY);
	CHECK(punctual_task_suspend(command) == 0 && punctual_task_stop(command) == 0);
	CHECK(punctual_task_join(command, NULL) == 0);

	CHECK(punctual_task_stop(task) == 0);
	FAILS(punctual_task_suspend(task), ESRCH);
	FAILS(punctual_task_resume(task), ESRCH);
	CHECK(punctual_task_join(task, NULL) == 0);
	FAILS(punctual_task_suspend(task), EBADF);
}

/* What the overrun handler of a task sees. */
struct handled {
	pthread_t thread;
	volatile sig_atomic_t calls, elsewhere;
};

static void handles(void *argument)
{
	struct handled *handled = argument;

	if (pthread_equal(pthread_self(), handled->thread))
		handled->calls++;
	else
		handled->elsewhere++;
}

static void *is_handled_twice(void *argument)
{
	struct handled *handled = argument;

	handled->thread = pthread_self();
	while (handled->calls < 2 && !punctual_is_over())
		;
	return argument;
}

static void each_task_has_its_overrun_handler(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr(NULL, 10 * MS, MS);
	char *command[] = { "true", NULL };
	struct punctual_task *task[2];
	struct handled of[2] = { 0 };

	attr.overrun_handler = handles;
	FAILS(punctual_task_create(set, &attr, is_handled_twice, of, task), EINVAL);
	CHECK(strstr(punctual_last_error(), "overrun policy"));
	attr.overrun = PUNCTUAL_SIGNAL;
	FAILS(punctual_task_command(set, &attr, command, task), EINVAL);
	for (int n = 0; n < 2; n++) {
		attr.overrun_argument = &of[n];
		CHECK(punctual_task_create(set, &attr, is_handled_twice, &of[n], &task[n]) == 0);
	}
	for (int n = 0; n < 2; n++)
		CHECK(punctual_task_join(task[n], NULL) == 0);
	CHECK(of[0].calls >= 2 && of[1].calls >= 2 && !of[0].elsewhere && !of[1].elsewhere);
}

static volatile sig_atomic_t overruns;
static pthread_t task_thread;

static void overrun(int signal)
{
	(void)signal;
	if (pthread_equal(pthread_self(), task_thread))
		overruns++;
}

static void *overruns_twice(void *argument)
{
	task_thread = pthread_self();
	while (overruns < 2 && !punctual_is_over())
		;
	return argument;
}

static void the_overrun_signal_reaches_its_task(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("overruns", 10 * MS, MS);
	struct sigaction action = { .sa_handler = overrun, .sa_flags = SA_RESTART };
	struct punctual_task *task;

	CHECK(sigaction(SIGXCPU, &action, NULL) == 0);
	attr.overrun = PUNCTUAL_SIGNAL;
	CHECK(punctual_task_create(set, &attr, overruns_twice, &attr, &task) == 0);
	CHECK(punctual_task_join(task, NULL) == 0 && overruns >= 2);
	attr.overrun_handler = handles;
	FAILS(punctual_task_create(set, &attr, overruns_twice, &attr, &task), EINVAL);
	CHECK(strstr(punctual_last_error(), "handler of its own"));
}

/* Handles of tasks outlive their set. */
static void tasks_of_a_closed_set(struct punctual *set)
{
	struct punctual_task_attr attr = task_attr("command", 10 * MS, MS);
	struct punctual_task_stats stats = PUNCTUAL_TASK_STATS_INIT;
	struct punctual_task_end end = PUNCTUAL_TASK_END_INIT;
	char *sleeps[] = { "sleep", "1000", NULL };
	struct punctual_task *task;

	CHECK(punctual_task_command(set, &attr, sleeps, &task) == 0);
	CHECK(punctual_close(set) == 0);
	FAILS(punctual_task_stop(task), ECANCELED);
	FAILS(punctual_task_set_budget(task, MS), ECANCELED);
	FAILS(punctual_task_suspend(task), ECANCELED);
	FAILS(punctual_task_resume(task), ECANCELED);
	FAILS(punctual_task_stats(task, &stats), ECANCELED);
	CHECK(punctual_task_join(task, &end) == 0);
	CHECK(end.how == PUNCTUAL_STOPPED || end.how == PUNCTUAL_SIGNALLED);
}

int main(void)
{
	struct punctual *set = open_set(NULL);

	commands(set);
	processes(set);
	tasks_change_while_they_run(set);
	periods_change_while_the_task_runs(set);
	tasks_are_suspended_and_resumed(set);
	each_task_has_its_overrun_handler(set);
	the_overrun_signal_reaches_its_task(set);
	tasks_of_a_closed_set(set);
	return 0;
}
