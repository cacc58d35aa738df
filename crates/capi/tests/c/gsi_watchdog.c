/* SPDX-License-Identifier: MIT */
/* A process that could execute has no job for longer than the kernel's watchdog permits. */
#include "check.h"

#include <gsi.h>
#include <signal.h>
#include <sys/wait.h>

/* CPU time of a process, ns. */
static uint64_t executed_by(pid_t pid)
{
	struct timespec time;
	clockid_t clock;

	CHECK(clock_getcpuclockid(pid, &clock) == 0);
	CHECK(clock_gettime(clock, &time) == 0);
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

int main(void)
{
	uint64_t before, until;
	GSI_Event event;
	GSI_JOB job;
	pid_t pid;

	CHECK(GSI_register() == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			;
	memset(&job, 0, sizeof(job));
	job.pid = pid;
	job.starttime = GSI_now();
	job.finishtime = GSI_INFINITE;
	job.budget = GSI_msec_to_ticks(1);
	CHECK(GSI_addjob(&job, 1) == 1);
	CHECK(GSI_getevents(&event, 1) == 1 && event.reason == GSI_EXHAUSTED);
	job.starttime = GSI_now() + GSI_msec_to_ticks(3600000);
	CHECK(GSI_addjob(&job, 1) == 1);
	before = executed_by(pid);
	FAILS(GSI_getevents(&event, 1), ECANCELED);
	CHECK(GSI_now() < job.starttime);
	/* It is an ordinary process. */
	until = punctual_clock() + LIVENESS;
	while (executed_by(pid) < before + 20 * MS && punctual_clock() < until)
		sleep_ms(10);
	CHECK(executed_by(pid) >= before + 20 * MS);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	return 0;
}
