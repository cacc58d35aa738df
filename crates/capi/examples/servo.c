/* SPDX-License-Identifier: MIT */
/*
 * A 1 kHz control loop with 250 us of guaranteed execution in every millisecond; prints its own
 * jitter.
 *
 *     cc -O2 -o servo servo.c $(pkg-config --cflags --libs punctual)
 *     ./servo [CPU] [SECONDS]
 *
 * Try it beside something greedy on the same CPU: taskset -c 1 sh -c 'while :; do :; done'
 */
#include <punctual.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define US INT64_C(1000)

/* Some 100 us of control law; the budget has room for the odd slow round. */
static void control(volatile double *state)
{
	while (punctual_remaining_budget() > 150 * US)
		*state = *state * 0.999 + 1.0;
}

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int failed(const char *call)
{
	fprintf(stderr, "servo: %s: %s\n", call, punctual_last_error());
	return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	uint32_t cpu = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
	unsigned long seconds = argc > 2 ? strtoul(argv[2], NULL, 10) : 5;
	struct punctual_task_attr task_attr = PUNCTUAL_TASK_ATTR_INIT;
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual_period period;
	struct punctual *set;
	volatile double state = 0;
	uint64_t *latencies, lost = 0;
	size_t jobs, count = 0;

	if (seconds < 1 || seconds > 600)
		seconds = 5;
	jobs = seconds * 1000;
	/* Room is made, and touched, before: nothing is allocated in the loop. */
	latencies = calloc(jobs, sizeof(*latencies));
	if (!latencies)
		return EXIT_FAILURE;
	for (size_t n = 0; n < jobs; n++)
		latencies[n] = UINT64_MAX;

	attr.cpus = &cpu;
	attr.cpu_count = 1;
	if (punctual_open(&attr, &set))
		return failed("punctual_open");
	task_attr.name = "servo";
	task_attr.period = 1000 * US;
	task_attr.budget = 250 * US;
	task_attr.overrun = PUNCTUAL_SKIP;
	printf("1 kHz on CPU %" PRIu32 " for %lu s ...\n", cpu, seconds);
	fflush(stdout);
	if (punctual_attach(set, &task_attr, NULL))
		return failed("punctual_attach");
	while (count < jobs && punctual_wait_period(&period) == 0) {
		latencies[count++] = punctual_clock() - period.release;
		lost += period.lost;
		control(&state);
	}
	punctual_detach();
	if (punctual_close(set))
		return failed("punctual_close");

	qsort(latencies, count, sizeof(*latencies), compare);
	if (count)
		printf("release to running, %zu jobs: median %.1f us, p99 %.1f us, worst %.1f us\n",
		       count, (double)latencies[count / 2] / 1e3,
		       (double)latencies[count * 99 / 100] / 1e3,
		       (double)latencies[count - 1] / 1e3);
	printf("releases lost: %" PRIu64 "\n", lost);
	free(latencies);
	return EXIT_SUCCESS;
}
