/* SPDX-License-Identifier: MIT */
/* Clocks and figures of the programs here: lines of a name, a tab and a number. Included first. */
#ifndef FIGURES_H
#define FIGURES_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000ULL

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(126);
}

static inline uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static inline void sleep_until(uint64_t time)
{
	struct timespec t = { .tv_sec = time / SECOND, .tv_nsec = time % SECOND };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

static inline int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static inline void distribution(const char *name, uint64_t *values, int count)
{
	qsort(values, count, sizeof(*values), by_size);
	printf("%s_p50\t%llu\n", name, (unsigned long long)values[count / 2]);
	printf("%s_p99\t%llu\n", name, (unsigned long long)values[(count - 1) * 99 / 100]);
	printf("%s_max\t%llu\n", name, (unsigned long long)values[count - 1]);
}

#endif
