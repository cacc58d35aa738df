/* SPDX-License-Identifier: MIT */
/* A program that is the allocator of its task (RED-Linux, Figs. 3 and 4), and bad input. */
#include "check.h"

#include <poll.h>
#include <stddef.h>

#define PERIOD (40 * MS)
#define BUDGET (12 * MS)

/* Each job executes 2 ms. */
static void *executes(void *argument)
{
	do {
		uint64_t end = executed() + 2 * MS;

		while (executed() < end && !punctual_is_over())
			;
	} while (punctual_wait_period(NULL) == 0);
	return argument;
}

static struct punctual_job_event next_of(struct punctual_job_events *events)
{
	struct punctual_job_event event = PUNCTUAL_JOB_EVENT_INIT;

	CHECK(punctual_job_event(events, &event, punctual_clock() + LIVENESS) == 0);
	CHECK(event.size == sizeof(event) && !event.dropped);
	return event;
}

/* Mandatory and optional parts in turn, as the paper has them: every end is followed by a job. */
static void alternate(struct punctual_jobs *jobs, struct punctual_job_events *events)
{
	struct punctual_job_attr job = PUNCTUAL_JOB_ATTR_INIT;
	bool is_optional = false;
	int completed = 0;

	job.start = punctual_clock() + 50 * MS;
	job.finish = job.start + PERIOD;
	job.budget = BUDGET;
	job.priority = 2;
	for (uint64_t n = 0; completed < 6; n++) {
		struct punctual_job_event event;
		uint64_t number;

		job.cookie = n;
		CHECK(punctual_job_add(jobs, &job, &number) == 0);
		event = next_of(events);
		CHECK(event.job == number && event.cookie == n);
		CHECK(event.end <= PUNCTUAL_JOB_EXPIRED && !event.error);
		CHECK(event.remaining <= job.budget);
		completed += event.end == PUNCTUAL_JOB_COMPLETED;
		if (is_optional) {
			job.start += PERIOD;
			job.finish = job.start + PERIOD;
			job.budget = BUDGET;
			job.priority = 2;
		} else {
			job.budget = event.remaining;
			job.priority = 1;
		}
		is_optional = !is_optional;
	}
}

static void is_refused(struct punctual_jobs *jobs, struct punctual_job_events *events)
{
	uint64_t at = punctual_clock() + 10000 * MS, first, second;
	struct punctual_job_attr job = { sizeof(job), at, at + PERIOD, MS, 0, 7 }, bad = job;
	struct punctual_job_event event = PUNCTUAL_JOB_EVENT_INIT;
	struct pollfd poller = { .fd = punctual_job_events_fd(events), .events = POLLIN };

	bad.finish = at;
	FAILS(punctual_job_add(jobs, &bad, NULL), EINVAL);
	bad.finish = at + PERIOD + 1;
	FAILS(punctual_job_add(jobs, &bad, NULL), EINVAL);
	bad = job;
	bad.budget = BUDGET + 1;
	FAILS(punctual_job_add(jobs, &bad, NULL), EDQUOT);
	bad.size = 1;
	FAILS(punctual_job_add(jobs, &bad, NULL), EINVAL);
	FAILS(punctual_job_add(jobs, NULL, NULL), EFAULT);
	FAILS(punctual_job_add(NULL, &job, NULL), EBADF);
	FAILS(punctual_job_cancel((struct punctual_jobs *)events, 1), EBADF);
	FAILS(punctual_job_complete(NULL, 1), EBADF);
	FAILS(punctual_job_event(events, &event, 0), ETIMEDOUT);
	FAILS(punctual_job_event(events, NULL, 0), EFAULT);
	FAILS(punctual_job_event(NULL, &event, 0), EBADF);
	FAILS(punctual_job_events_fd(NULL), EBADF);
	CHECK(poller.fd >= 0 && poll(&poller, 1, 0) == 0);
	CHECK(punctual_job_add(jobs, &job, &first) == 0);
	job.cookie = 8;
	CHECK(punctual_job_add(jobs, &job, &second) == 0);
	CHECK(poll(&poller, 1, (int)(LIVENESS / MS)) == 1);
	/* The event stays where it cannot be put. */
	event.size = offsetof(struct punctual_job_event, error);
	FAILS(punctual_job_event(events, &event, 0), EINVAL);
	event = next_of(events);
	CHECK(event.job == second && event.cookie == 8);
	CHECK(event.end == PUNCTUAL_JOB_REFUSED && event.error == -EBUSY);
	/* It has not begun. */
	CHECK(punctual_job_complete(jobs, first) == 0);
	CHECK(punctual_job_cancel(jobs, first) == 0);
	event = next_of(events);
	CHECK(event.job == first && event.cookie == 7);
	CHECK(event.end == PUNCTUAL_JOB_CANCELLED && !event.used && event.remaining == MS);
}

int main(void)
{
	struct punctual_task_attr of = task_attr("task", PERIOD, BUDGET);
	const uint32_t by[] = { PUNCTUAL_ORDER_FINISH, PUNCTUAL_ORDER_PRIORITY,
				PUNCTUAL_ORDER_FINISH, 9 };
	struct punctual_job_event event = PUNCTUAL_JOB_EVENT_INIT;
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual_job_attr job = PUNCTUAL_JOB_ATTR_INIT;
	struct punctual_job_events *events, *more;
	struct punctual_task *task;
	struct punctual_jobs *jobs, *again;
	struct punctual *set;

	set = open_set(&attr);
	CHECK(punctual_task_create(set, &of, executes, NULL, &task) == 0);
	FAILS(punctual_jobs_open(task, &jobs), EINVAL);
	FAILS(punctual_job_events_open(set, &events), EINVAL);
	FAILS(punctual_jobs_order(set, NULL, by, 1), EINVAL);
	CHECK(punctual_close(set) == 0);

	attr.policy = PUNCTUAL_JOBS;
	set = open_set(&attr);
	CHECK(punctual_job_events_open(set, &events) == 0);
	FAILS(punctual_job_events_open(set, &more), EBUSY);
	FAILS(punctual_job_events_open(set, NULL), EFAULT);
	CHECK(punctual_task_create(set, &of, executes, NULL, &task) == 0);
	FAILS(punctual_jobs_open(task, NULL), EFAULT);
	CHECK(punctual_jobs_open(task, &jobs) == 0);
	FAILS(punctual_jobs_open(task, &again), EBUSY);
	FAILS(punctual_jobs_open(NULL, &again), EBADF);
	is_refused(jobs, events);
	alternate(jobs, events);
	CHECK(punctual_jobs_order(set, NULL, by, 2) == 0);
	FAILS(punctual_jobs_order(set, NULL, by, 0), EINVAL);
	FAILS(punctual_jobs_order(set, NULL, by, 3), EINVAL);
	FAILS(punctual_jobs_order(set, NULL, by, 4), EINVAL);
	FAILS(punctual_jobs_order(set, NULL, NULL, 1), EFAULT);
	alternate(jobs, events);

	/* A thread that waits for a job ends. */
	CHECK(punctual_task_stop(task) == 0);
	CHECK(punctual_task_join(task, NULL) == 0);
	CHECK(punctual_close(set) == 0);
	job.finish = job.budget = MS;
	FAILS(punctual_job_add(jobs, &job, NULL), ECANCELED);
	FAILS(punctual_job_event(events, &event, UINT64_MAX), ECANCELED);
	CHECK(punctual_jobs_close(jobs) == 0 && punctual_job_events_close(events) == 0);
	FAILS(punctual_jobs_close(jobs), EBADF);
	FAILS(punctual_job_events_close(events), EBADF);
	return 0;
}
