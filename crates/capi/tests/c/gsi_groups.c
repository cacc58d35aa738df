/* SPDX-License-Identifier: MIT */
/* Scheduling groups and budget groups of gsi.h: RED-Linux, Figs. 6 to 8. */
#include "check.h"

#include <gsi.h>
#include <signal.h>
#include <sys/wait.h>

static GSI_TIME ms(int64_t milliseconds)
{
	return GSI_msec_to_ticks(milliseconds);
}

/* A job without limits of time, whose event has this number. */
static GSI_JOB job_of(pid_t pid, GSI_TIME budget, int priority, intptr_t number)
{
	GSI_JOB job;

	memset(&job, 0, sizeof(job));
	job.pid = pid;
	job.starttime = GSI_now();
	job.finishtime = GSI_INFINITE;
	job.budget = budget;
	job.priority = priority;
	job.private = number;
	return job;
}

static void send(const GSI_JOB *job)
{
	CHECK(GSI_addjob(job, 1) == 1);
}

/* A job in a scheduling group and a budget group. */
static void send_in(GSI_JOB job, int group, int budget_group)
{
	job.group = group;
	job.budget_group = budget_group;
	send(&job);
}

/* A server job of a scheduling group. */
static void serve(int server, int group, GSI_TIME budget, intptr_t number)
{
	GSI_JOB job = job_of(0, budget, 0, number);

	job.server = server;
	job.group = group;
	send(&job);
}

/* A budget of a budget group. */
static void supply(int budget_server, int budget_group, GSI_TIME budget, intptr_t number)
{
	GSI_JOB job = job_of(0, budget, 0, number);

	job.budget_server = budget_server;
	job.budget_group = budget_group;
	send(&job);
}

static void event_is(intptr_t number, int reason)
{
	GSI_Event event;

	CHECK(GSI_getevents(&event, 1) == 1);
	if (event.private != number || event.reason != reason) {
		fprintf(stderr, "event of %ld for reason %d\n", (long)event.private, event.reason);
		CHECK(event.private == number && event.reason == reason);
	}
}

/* A process that executes for ever, without a call. */
static pid_t start_process(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			;
	return pid;
}

/* It is no process of the allocator's any more; the event of the job that it has comes. */
static void end_process(pid_t pid, intptr_t number)
{
	CHECK(kill(pid, SIGKILL) == 0);
	if (number)
		event_is(number, GSI_GONE);
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static void what_is_wrong(void)
{
	const GSI_QOS qos[4] = { QOS_STARTTIME, -1, -1, -1 };
	pid_t pid = start_process();
	GSI_JOB job = job_of(pid, ms(1), 0, 1), bad = job;
	GSI_Event event;

	FAILS(GSI_setgroupQOS(-1, qos), ENOENT);
	FAILS(GSI_setgroupQOS(GSI_GROUPS + 1, qos), ENOENT);
	FAILS(GSI_setgroupQOS(1, NULL), EFAULT);
	bad.group = GSI_GROUPS + 1;
	FAILS(GSI_addjob(&bad, 1), ENOENT);
	bad = job;
	bad.server = -1;
	FAILS(GSI_addjob(&bad, 1), ENOENT);
	bad = job;
	bad.budget_group = 7;
	FAILS(GSI_addjob(&bad, 1), ENOENT);
	bad = job;
	bad.server = 1;
	FAILS(GSI_addjob(&bad, 1), EINVAL);
	bad.pid = 0;
	bad.budget_server = 1;
	FAILS(GSI_addjob(&bad, 1), EINVAL);
	bad.server = bad.group = 1;
	FAILS(GSI_addjob(&bad, 1), EINVAL);
	/* Groups in a circle, which the dispatcher finds. */
	serve(30, 29, ms(1), 2);
	serve(29, 30, ms(1), 3);
	event_is(3, GSI_CANCELLED);
	/* Nothing is left of which an event could come: the job of group 30 has no end. */
	CHECK(GSI_getevents(&event, 1) == 0);
	end_process(pid, 0);
}

/* Fig. 7 with the budgets of Table 3, in ms. */
static void budgets_are_shared(void)
{
	pid_t j2 = start_process(), j3 = start_process(), j4 = start_process();
	pid_t other = start_process();

	supply(1, 0, ms(30), 10);
	supply(2, 1, ms(80), 11);
	send_in(job_of(j3, ms(40), 9, 3), 0, 2);
	send_in(job_of(j4, ms(30), 8, 4), 0, 2);
	send_in(job_of(j2, ms(50), 7, 2), 0, 1);
	/* J_0 limits J_3 to 30 of its 40. */
	event_is(10, GSI_EXHAUSTED);
	/* Those below it wait, and others do not. */
	send_in(job_of(other, ms(5), 1, 5), 0, 0);
	event_is(5, GSI_EXHAUSTED);
	/* 10 for the rest of J_3, 30 for J_4, 5 for J_2. */
	supply(1, 0, ms(45), 12);
	event_is(3, GSI_EXHAUSTED);
	event_is(4, GSI_EXHAUSTED);
	event_is(12, GSI_EXHAUSTED);
	end_process(j2, 2);
	end_process(j3, 0);
	end_process(j4, 0);
	end_process(other, 0);
}

/* Fig. 6: a group in another one, each with an order of its own. */
static void groups_execute_on_server_jobs(void)
{
	const GSI_QOS by_finish[4] = { QOS_FINISHTIME, -1, -1, -1 };
	pid_t first = start_process(), second = start_process(), other = start_process();
	GSI_JOB early, late;

	CHECK(GSI_setgroupQOS(2, by_finish) == 0);
	/* Its priority is the lower one, but that is not what orders its group. */
	early = job_of(first, ms(6), 1, 1);
	late = job_of(second, ms(6), 9, 2);
	early.finishtime = early.starttime + ms(3600000);
	send_in(late, 2, 0);
	send_in(early, 2, 0);
	/* Nothing executes in group 2 yet, and then nothing in group 1. */
	send_in(job_of(other, ms(5), 0, 3), 0, 0);
	event_is(3, GSI_EXHAUSTED);
	serve(2, 1, ms(100), 20);
	send_in(job_of(other, ms(5), 0, 4), 0, 0);
	event_is(4, GSI_EXHAUSTED);
	/* 6 for the earlier one, 3 of the other one's 6. */
	serve(1, 0, ms(9), 21);
	event_is(1, GSI_EXHAUSTED);
	event_is(21, GSI_EXHAUSTED);
	serve(1, 0, ms(9), 22);
	event_is(2, GSI_EXHAUSTED);
	end_process(first, 0);
	end_process(second, 0);
	end_process(other, 0);
}

int main(void)
{
	uint64_t until = punctual_clock() + LIVENESS;
	int result;

	while ((result = GSI_register()) == -EBUSY && punctual_clock() < until)
		sleep_ms(100);
	if (result == -EPERM) {
		puts(punctual_last_error());
		exit(MISSING);
	}
	CHECK(result == 0);
	what_is_wrong();
	budgets_are_shared();
	groups_execute_on_server_jobs();
	CHECK(GSI_unregister() == 0);
	return 0;
}
