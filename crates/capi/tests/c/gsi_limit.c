/* SPDX-License-Identifier: MIT */
/* One process more than a CPU of the kernel host has room for; then the allocator is killed. */
#include "check.h"

#include <gsi.h>
#include <signal.h>
#include <sys/wait.h>

#define MOST 255
/* Those that are forked before the program has an allocator. Each later one leaves a copy of all
 * pages to which the host's threads write, and a guest has little memory. */
#define BEFORE 250

/* A process that sleeps for ever. */
static pid_t start_process(void)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static int add(pid_t pid)
{
	GSI_JOB job;

	memset(&job, 0, sizeof(job));
	job.pid = pid;
	job.starttime = GSI_now() + GSI_msec_to_ticks(3600000);
	job.finishtime = job.budget = GSI_INFINITE;
	return GSI_addjob(&job, 1);
}

int main(void)
{
	pid_t processes[MOST], first, last;
	GSI_Event event;

	for (int n = 0; n < BEFORE; n++)
		processes[n] = start_process();
	CHECK(GSI_register() == 0);
	for (int n = BEFORE; n < MOST; n++)
		processes[n] = start_process();
	for (int n = 0; n < MOST; n++)
		CHECK(add(processes[n]) == 1);
	first = processes[0];
	last = start_process();
	FAILS(add(last), ENOSPC);
	/* The end of one makes room. */
	CHECK(kill(first, SIGKILL) == 0);
	CHECK(GSI_getevents(&event, 1) == 1);
	CHECK(event.pid == first && event.reason == GSI_GONE);
	CHECK(waitpid(first, NULL, 0) == first);
	CHECK(add(last) == 1);
	puts("full");
	fflush(stdout);
	/* Its processes live on. */
	return raise(SIGKILL);
}
