/* SPDX-License-Identifier: MIT */
/* What the jobs of the figures execute; the paper leaves that to the application. */
#ifndef APPLICATION_H
#define APPLICATION_H

#include <stdio.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <punctual.h>

/* Executes for so many microseconds of the process's own time. */
static void execute(long us)
{
    struct timespec time;
    long long end = -1, now;

    do {
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
        now = time.tv_sec * 1000000000LL + time.tv_nsec;
        if (end < 0)
            end = now + us * 1000LL;
    } while (now < end);
}

/*
 * A process that waits for its first job, then executes a job of each length in turn, so many times
 * both, and ends in the middle of another one.
 */
static pid_t start_application(int rounds, long first_us, long second_us)
{
    pid_t pid = fork();

    if (pid != 0)
        return pid;
    if (GSI_abort_job() < 0)
        _exit(1);
    for (int round = 0; round < rounds; round++) {
        execute(first_us);
        if (GSI_abort_job() < 0)
            _exit(1);
        execute(second_us);
        if (GSI_abort_job() < 0)
            _exit(1);
    }
    _exit(0);
}

/* The exit code of a program that the machine does not permit: 77. */
static int cannot(void)
{
    fprintf(stderr, "%s\n", punctual_last_error());
    return 77;
}

#endif
