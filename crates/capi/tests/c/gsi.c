/* SPDX-License-Identifier: MIT */
/* Calls of gsi.h, right and wrong ones, and how jobs end. */
#include "check.h"

#include <gsi.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static GSI_JOB job_of(pid_t pid, GSI_TIME start, GSI_TIME length, GSI_TIME budget)
{
	GSI_JOB job;

	memset(&job, 0, sizeof(job));
	job.pid = pid;
	job.starttime = start;
	job.finishtime = length == GSI_INFINITE ? length : start + length;
	job.budget = budget;
	job.private = 77;
	return job;
}

/* A process that executes for ever, or one job of so many ms after the other. */
static pid_t start_process(bool endless)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid > 0)
		return pid;
	if (GSI_abort_job() < 0)
		_exit(1);
	for (;;) {
		uint64_t end = executed() + 2 * MS;

		while (executed() < end || endless)
			;
		if (GSI_abort_job() < 0)
			_exit(2);
	}
}

static GSI_Event next_event(void)
{
	GSI_Event event;

	CHECK(GSI_getevents(&event, 1) == 1);
	CHECK(event.type == GSI_EV_JOB_EXPIRED && event.private == 77);
	return event;
}

static void without_an_allocator(void)
{
	GSI_JOB job = job_of(getpid(), GSI_now(), 10, 1);
	GSI_QOS qos[4] = { -1, -1, -1, -1 };
	GSI_Event event;

	FAILS(GSI_addjob(&job, 1), EPERM);
	FAILS(GSI_getevents(&event, 1), EPERM);
	FAILS(GSI_setQOS(qos), EPERM);
	FAILS(GSI_unregister(), EPERM);
	FAILS(GSI_abort_job(), ESRCH);
	CHECK(GSI_msec_to_ticks(3) == 3000);
	CHECK(GSI_msec_to_ticks(INT64_MAX) == INT64_MAX);
	CHECK(GSI_now() > 0 && GSI_now() <= (GSI_TIME)(punctual_clock() / 1000));
	setenv("PUNCTUAL_GSI_CPU", "none", 1);
	FAILS(GSI_register(), EINVAL);
	unsetenv("PUNCTUAL_GSI_CPU");
}

static void *of_another_thread(void *argument)
{
	GSI_Event event;

	FAILS(GSI_register(), EBUSY);
	FAILS(GSI_getevents(&event, 1), EPERM);
	FAILS(GSI_unregister(), EPERM);
	return argument;
}

static void register_allocator(void)
{
	uint64_t until = punctual_clock() + LIVENESS;
	int result;

	/* Another dispatcher may have the CPU for a while. */
	while ((result = GSI_register()) == -EBUSY && punctual_clock() < until)
		sleep_ms(100);
	if (result == -EPERM) {
		puts(punctual_last_error());
		exit(MISSING);
	}
	CHECK(result == 0);
}

static void wrong_arguments(void)
{
	GSI_TIME now = GSI_now(), length = GSI_msec_to_ticks(10);
	GSI_JOB job = job_of(getpid(), now, length, 1), bad;
	GSI_QOS qos[4] = { QOS_FINISHTIME, QOS_FINISHTIME, QOS_BUDGET, QOS_STARTTIME };
	pthread_t thread;
	GSI_Event event;
	pid_t ended;

	FAILS(GSI_register(), EBUSY);
	CHECK(pthread_create(&thread, NULL, of_another_thread, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	FAILS(GSI_abort_job(), ESRCH);
	/* No job is left of which an event could come. */
	CHECK(GSI_getevents(&event, 1) == 0);
	FAILS(GSI_getevents(&event, 0), EINVAL);
	FAILS(GSI_getevents(&event, -1), EINVAL);
	FAILS(GSI_getevents(NULL, 1), EFAULT);
	CHECK(GSI_setQOS(qos) == 0);
	qos[1] = 4;
	FAILS(GSI_setQOS(qos), EINVAL);
	qos[1] = -2;
	FAILS(GSI_setQOS(qos), EINVAL);
	FAILS(GSI_setQOS(NULL), EFAULT);
	qos[0] = -1;
	CHECK(GSI_setQOS(qos) == 0);
	CHECK(GSI_addjob(&job, 0) == 0);
	FAILS(GSI_addjob(&job, -1), EINVAL);
	FAILS(GSI_addjob(NULL, 1), EFAULT);
	bad = job;
	bad.finishtime = bad.starttime;
	FAILS(GSI_addjob(&bad, 1), EINVAL);
	bad = job;
	bad.budget = -1;
	FAILS(GSI_addjob(&bad, 1), EINVAL);
	bad = job;
	bad.starttime = INT64_MIN;
	FAILS(GSI_addjob(&bad, 1), EINVAL);
	bad = job;
	bad.pid = 0;
	FAILS(GSI_addjob(&bad, 1), EINVAL);
	bad.pid = -1;
	FAILS(GSI_addjob(&bad, 1), EINVAL);
	bad.pid = INT32_MAX;
	FAILS(GSI_addjob(&bad, 1), ESRCH);
	/* The allocator is no process of its own. */
	CHECK(GSI_addjob(&job, 1) < 0);
	/* One that has ended and was not waited for. */
	ended = fork();
	if (ended == 0)
		_exit(0);
	CHECK(waitid(P_PID, (id_t)ended, &(siginfo_t){ 0 }, WEXITED | WNOWAIT) == 0);
	bad.pid = ended;
	FAILS(GSI_addjob(&bad, 1), ESRCH);
	CHECK(waitpid(ended, NULL, 0) == ended);
	CHECK(GSI_getevents(&event, 1) == 0);
}

/* Sends a job until it executed, which a late program may have kept it from. */
static GSI_Event ended_job(pid_t pid, GSI_TIME length, GSI_TIME budget, int reason)
{
	uint64_t until = punctual_clock() + LIVENESS;
	GSI_Event event;

	do {
		GSI_JOB job = job_of(pid, GSI_now(), length, budget);

		CHECK(punctual_clock() < until);
		CHECK(GSI_addjob(&job, 1) == 1);
		event = next_event();
		CHECK(event.pid == pid && event.budget >= 0 && event.budget <= budget);
		CHECK(event.time <= GSI_now());
	} while (event.reason != reason || (reason == GSI_EXPIRED && event.budget == budget));
	return event;
}

static void how_jobs_end(void)
{
	GSI_TIME ms = GSI_msec_to_ticks(1);
	pid_t turns = start_process(false), endless = start_process(true);
	GSI_JOB both[2], job;
	GSI_Event event, events[4];
	int seen = 0;

	/* It has 2 ms to execute in each, and is frozen between them. */
	for (int n = 0; n < 5; n++)
		CHECK(ended_job(turns, GSI_INFINITE, 50 * ms, GSI_COMPLETED).budget < 50 * ms);
	CHECK(ended_job(endless, GSI_INFINITE, 3 * ms, GSI_EXHAUSTED).budget < ms);
	CHECK(ended_job(endless, 30 * ms, 30000 * ms, GSI_EXPIRED).budget < 30000 * ms);
	/* Nothing to execute, or no time. */
	job = job_of(endless, GSI_now(), 10 * ms, 0);
	CHECK(GSI_addjob(&job, 1) == 1);
	CHECK(next_event().reason == GSI_EXHAUSTED);
	job = job_of(endless, 0, 10 * ms, ms);
	CHECK(GSI_addjob(&job, 1) == 1);
	event = next_event();
	CHECK(event.reason == GSI_EXPIRED && event.budget == ms);

	/* Several at once: up to the first that is refused. */
	both[0] = job_of(turns, GSI_now() + 20 * ms, GSI_INFINITE, 50 * ms);
	both[1] = both[0];
	CHECK(GSI_addjob(both, 2) == 1);
	FAILS(GSI_addjob(both, 1), EBUSY);
	both[1] = job_of(endless, GSI_now(), GSI_INFINITE, ms);
	CHECK(GSI_addjob(&both[1], 1) == 1);
	while (seen < 2) {
		int n = GSI_getevents(events, 4);

		CHECK(n > 0 && n <= 2);
		for (int k = 0; k < n; k++)
			CHECK(events[k].pid == turns || events[k].pid == endless);
		seen += n;
	}
	CHECK(seen == 2 && GSI_getevents(events, 4) == 0);

	/* The end of a process ends its job, and it gets no other one. */
	job = job_of(endless, GSI_now(), GSI_INFINITE, GSI_INFINITE);
	CHECK(GSI_addjob(&job, 1) == 1);
	CHECK(kill(endless, SIGKILL) == 0);
	event = next_event();
	CHECK(event.reason == GSI_GONE && event.pid == endless);
	FAILS(GSI_addjob(&job, 1), ESRCH);
	CHECK(waitpid(endless, NULL, 0) == endless);
	CHECK(kill(turns, SIGKILL) == 0 && waitpid(turns, NULL, 0) == turns);
	/* Also when it ended between two jobs. */
	job.pid = turns;
	if (GSI_addjob(&job, 1) == 1)
		CHECK(next_event().reason == GSI_GONE);
	FAILS(GSI_addjob(&job, 1), ESRCH);
	CHECK(GSI_getevents(events, 4) == 0);
}

/* A process that was forked and has called exec. */
static void after_exec(const char *program)
{
	GSI_TIME ms = GSI_msec_to_ticks(1);
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		execl(program, program, "job", (char *)NULL);
		_exit(3);
	}
	for (int n = 0; n < 3; n++)
		ended_job(pid, GSI_INFINITE, 50 * ms, GSI_COMPLETED);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

static void handler(int signal)
{
	(void)signal;
}

static void signals_end_no_wait(void)
{
	struct sigaction action = { .sa_handler = handler };
	struct itimerspec soon = { { 0, 20000000 }, { 0, 20000000 } };
	pid_t pid = start_process(true);
	GSI_JOB job = job_of(pid, GSI_now() + GSI_msec_to_ticks(200), GSI_INFINITE, 1000);
	GSI_Event event;
	timer_t timer;

	CHECK(GSI_addjob(&job, 1) == 1);
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	CHECK(timer_create(CLOCK_MONOTONIC, NULL, &timer) == 0);
	CHECK(timer_settime(timer, 0, &soon, NULL) == 0);
	/* It came to its first call before this job, or in it. */
	event = next_event();
	CHECK(event.reason == GSI_EXHAUSTED || event.reason == GSI_COMPLETED);
	CHECK(timer_delete(timer) == 0);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
}

/* Processes are ordinary ones after the end, and their calls return. */
static void the_end(void)
{
	pid_t pid = start_process(false);
	int status;

	ended_job(pid, GSI_INFINITE, GSI_msec_to_ticks(50), GSI_COMPLETED);
	CHECK(GSI_unregister() == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	/* Of its first call or a later one. */
	CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 2));
	without_an_allocator();
	CHECK(class_of_this_thread() == SCHED_OTHER);
}

int main(int count, char *words[])
{
	if (count > 1) {
		for (;;) {
			uint64_t end = executed() + 2 * MS;

			if (GSI_abort_job() < 0)
				return 1;
			while (executed() < end)
				;
		}
	}
	without_an_allocator();
	register_allocator();
	wrong_arguments();
	how_jobs_end();
	after_exec(words[0]);
	signals_end_no_wait();
	the_end();
	/* Another time. */
	register_allocator();
	the_end();
	return 0;
}
