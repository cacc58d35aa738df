// SPDX-License-Identifier: MIT
/* Forks all the time, on the CPU named: up to 40 children at once, each executing for 3 ms. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN 40
#define CHILD_NS 3000000ULL

static unsigned long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static _Noreturn void child(void)
{
	unsigned long long end = now() + CHILD_NS;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (now() < end)
		for (volatile int i = 0; i < 1000; i++)
			;
	_exit(0);
}

int main(int argc, char **argv)
{
	cpu_set_t cpus;
	int alive = 0;

	CPU_ZERO(&cpus);
	CPU_SET(argc == 2 ? atoi(argv[1]) : 0, &cpus);
	if (argc != 2 || sched_setaffinity(0, sizeof(cpus), &cpus)) {
		fprintf(stderr, "storm: CPU\n");
		return 126;
	}
	for (;;) {
		pid_t pid = alive < CHILDREN ? fork() : -1;

		if (!pid)
			child();
		alive += pid > 0;
		while (alive > 0 && waitpid(-1, NULL, alive < CHILDREN ? WNOHANG : 0) > 0)
			alive--;
	}
}
