/* SPDX-License-Identifier: MIT */
/* Lock and unlock by libpunctual, as a program in C has it. */
#include <punctual.h>

#include <time.h>

static uint64_t executed(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static int measure(struct punctual *set, const struct punctual_task_attr *attr, uint64_t pairs,
		   double *per_pair)
{
	struct punctual_mutex *mutex;
	uint64_t begun = 0;
	int result = punctual_mutex_create(&mutex);

	if (result == 0)
		result = punctual_attach(set, attr, NULL);
	/* The first tenth is not timed. */
	for (uint64_t n = 0; result == 0 && n < pairs + pairs / 10; n++) {
		if (n == pairs / 10)
			begun = executed();
		result = punctual_mutex_lock(mutex);
		if (result == 0)
			result = punctual_mutex_unlock(mutex);
	}
	*per_pair = (double)(executed() - begun) / (double)pairs;
	punctual_detach();
	punctual_mutex_destroy(mutex);
	return result;
}

/* CPU time of a pair in a task of this period and budget on this CPU, ns; 0 or an error number. */
int bench_lock_calls(uint32_t cpu, uint64_t period, uint64_t budget, uint64_t pairs,
		     double *per_pair)
{
	struct punctual_task_attr task = PUNCTUAL_TASK_ATTR_INIT;
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual *set;
	int result;

	attr.cpus = &cpu;
	attr.cpu_count = 1;
	task.period = period;
	task.budget = budget;
	result = punctual_open(&attr, &set);
	if (result == 0) {
		result = measure(set, &task, pairs, per_pair);
		/* The error of the first call that failed stays. */
		if (result == 0)
			result = punctual_close(set);
		else
			punctual_close(set);
	}
	return result;
}
