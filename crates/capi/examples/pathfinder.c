/* SPDX-License-Identifier: MIT */
/*
 * What reset Mars Pathfinder in 1997: the bus task waits for a mutex that the weather task holds,
 * which communication preempts for long. With a mutex of POSIX, and with one that lends the waiting
 * task's budget to the holder.
 *
 *     cc -O2 -pthread -o pathfinder pathfinder.c $(pkg-config --cflags --libs punctual)
 *     ./pathfinder [CPU] [SECONDS]
 */
#include <punctual.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MS UINT64_C(1000000)

/* NULL: that of POSIX is used. */
static struct punctual_mutex *lending;
static pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;

static uint64_t executed(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

static void execute(uint64_t time)
{
	uint64_t end = executed() + time;

	while (executed() < end && punctual_is_over() == 0)
		;
}

static void with_bus(uint64_t time)
{
	if (lending) {
		if (punctual_mutex_lock(lending))
			return;
		execute(time);
		punctual_mutex_unlock(lending);
	} else {
		pthread_mutex_lock(&plain);
		execute(time);
		pthread_mutex_unlock(&plain);
	}
}

static void *bus(void *argument)
{
	do
		with_bus(1 * MS);
	while (punctual_wait_period(NULL) == 0);
	return argument;
}

static void *communication(void *argument)
{
	do
		execute(8 * MS);
	while (punctual_wait_period(NULL) == 0);
	return argument;
}

static void *weather(void *argument)
{
	do
		with_bus(4 * MS);
	while (punctual_wait_period(NULL) == 0);
	return argument;
}

static const struct {
	const char *name;
	void *(*function)(void *);
	uint64_t period, deadline, budget, offset;
} tasks[] = {
	{ "bus", bus, 20 * MS, 10 * MS, 6 * MS, 2 * MS },
	{ "communication", communication, 33 * MS, 33 * MS, 9 * MS, 1 * MS },
	{ "weather", weather, 55 * MS, 55 * MS, 8 * MS, 0 },
};

#define TASKS (sizeof(tasks) / sizeof(*tasks))

static int failed(const char *call)
{
	fprintf(stderr, "pathfinder: %s: %s\n", call, punctual_last_error());
	return EXIT_FAILURE;
}

static int run(uint32_t cpu, uint64_t seconds)
{
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual_task *handles[TASKS];
	struct punctual *set;

	attr.cpus = &cpu;
	attr.cpu_count = 1;
	attr.policy = PUNCTUAL_DM;
	if (punctual_open(&attr, &set))
		return failed("punctual_open");
	for (size_t n = 0; n < TASKS; n++) {
		struct punctual_task_attr task = PUNCTUAL_TASK_ATTR_INIT;

		task.name = tasks[n].name;
		task.period = tasks[n].period;
		task.deadline = tasks[n].deadline;
		task.budget = tasks[n].budget;
		task.offset = tasks[n].offset;
		if (punctual_task_create(set, &task, tasks[n].function, NULL, &handles[n]))
			return failed("punctual_task_create");
	}
	punctual_wait(set, punctual_clock() + seconds * 1000 * MS);
	for (size_t n = 0; n < TASKS; n++) {
		struct punctual_task_stats stats = PUNCTUAL_TASK_STATS_INIT;

		if (punctual_task_stats(handles[n], &stats))
			return failed("punctual_task_stats");
		printf("  %-14s %" PRIu64 " of %" PRIu64 " deadlines missed\n", tasks[n].name,
		       stats.misses, stats.periods);
	}
	if (punctual_close(set))
		return failed("punctual_close");
	for (size_t n = 0; n < TASKS; n++)
		punctual_task_join(handles[n], NULL);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	uint32_t cpu = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 1;
	unsigned long seconds = argc > 2 ? strtoul(argv[2], NULL, 10) : 3;

	if (seconds < 1 || seconds > 600)
		seconds = 3;
	puts("pthread_mutex_lock");
	if (run(cpu, seconds))
		return EXIT_FAILURE;
	puts("punctual_mutex_lock");
	if (punctual_mutex_create(&lending))
		return failed("punctual_mutex_create");
	if (run(cpu, seconds))
		return EXIT_FAILURE;
	punctual_mutex_destroy(lending);
	return EXIT_SUCCESS;
}
