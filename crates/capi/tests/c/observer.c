/* SPDX-License-Identifier: MIT */
/* The observer of a set. */
#include "check.h"

#include <pthread.h>

static struct punctual *set;
static struct punctual_task *waiter;

static struct {
	pthread_mutex_t lock;
	uint64_t periods, ended, overran, last;
	int how, code, wrong;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Checks are made where they can end the program in order. */
static void observe(const struct punctual_report *report, void *argument)
{
	struct punctual_stats stats = PUNCTUAL_STATS_INIT;

	pthread_mutex_lock(&seen.lock);
	seen.wrong |= argument != &seen || report->size != sizeof(*report);
	seen.wrong |= class_of_this_thread() != SCHED_OTHER;
	if (report->kind == PUNCTUAL_REPORT_PERIOD && !strcmp(report->task, "waits")) {
		/* In order, each once. */
		seen.wrong |= report->number != seen.periods++;
		seen.wrong |= report->number && report->release != seen.last + 10 * MS;
		seen.wrong |= report->deadline != report->release + 10 * MS;
		seen.wrong |= report->assigned != MS || report->text;
		if (report->completed != PUNCTUAL_NEVER) {
			seen.wrong |= report->completed < report->release;
			seen.wrong |= (report->flags & PUNCTUAL_PERIOD_OVERRAN) != 0;
		}
		seen.last = report->release;
	} else if (report->kind == PUNCTUAL_REPORT_PERIOD) {
		seen.overran += (report->flags & PUNCTUAL_PERIOD_OVERRAN) && report->received;
	} else if (report->kind == PUNCTUAL_REPORT_ENDED) {
		seen.ended++;
		if (!strcmp(report->task, "command")) {
			seen.how = (int)report->how;
			seen.code = report->code;
		}
	}
	/* The set waits for this call. */
	seen.wrong |= set && punctual_stats(set, &stats) != -EDEADLK;
	seen.wrong |= waiter && punctual_task_stop(waiter) != -EDEADLK;
	seen.wrong |= waiter && punctual_task_close(waiter) != -EDEADLK;
	pthread_mutex_unlock(&seen.lock);
}

static void *waits(void *argument)
{
	while (punctual_wait_period(NULL) == 0)
		;
	return argument;
}

static void *executes(void *argument)
{
	while (!punctual_is_over())
		;
	return argument;
}

static uint64_t read_of(const uint64_t *value)
{
	uint64_t now;

	pthread_mutex_lock(&seen.lock);
	CHECK(!seen.wrong);
	now = *value;
	pthread_mutex_unlock(&seen.lock);
	return now;
}

static void await(const uint64_t *value, uint64_t least)
{
	uint64_t until = punctual_clock() + LIVENESS;

	while (read_of(value) < least) {
		CHECK(punctual_clock() < until);
		sleep_ms(5);
	}
}

int main(void)
{
	struct punctual_task_attr of = task_attr("waits", 10 * MS, MS);
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	char *command[] = { "sh", "-c", "exit 7", NULL };
	struct punctual_stats stats = PUNCTUAL_STATS_INIT;
	struct punctual *opened;
	struct punctual_task *task, *other;

	attr.observer = observe;
	attr.observer_argument = &seen;
	opened = open_set(&attr);
	CHECK(punctual_task_create(opened, &of, waits, NULL, &task) == 0);
	pthread_mutex_lock(&seen.lock);
	set = opened;
	waiter = task;
	pthread_mutex_unlock(&seen.lock);
	await(&seen.periods, 5);
	of.name = "executes";
	CHECK(punctual_task_create(set, &of, executes, NULL, &other) == 0);
	await(&seen.overran, 3);
	of.name = "command";
	CHECK(punctual_task_command(set, &of, command, NULL) == 0);
	await(&seen.ended, 1);
	CHECK(seen.how == PUNCTUAL_EXITED && seen.code == 7);
	/* Elsewhere the calls work. */
	CHECK(punctual_stats(set, &stats) == 0 && stats.alive == 2);
	CHECK(punctual_task_stop(task) == 0 && punctual_task_stop(other) == 0);
	await(&seen.ended, 3);
	CHECK(punctual_close(set) == 0);
	CHECK(read_of(&seen.ended) == 3);
	return 0;
}
