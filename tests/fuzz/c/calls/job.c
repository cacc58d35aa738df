/* SPDX-License-Identifier: MIT */
/* Calls on jobs that the program adds. */
#include "calls.h"

static void choose_job(struct stream *in, struct punctual_job_attr *job)
{
	int usual = stream_byte(in) % 4;

	job->start = usual ? punctual_clock() + stream_number(in) % MS : stream_number(in);
	job->finish = usual > 1 ? job->start + 4 * MS : stream_number(in);
	job->budget = usual > 2 ? MS / 4 : stream_number(in);
	job->priority = (int64_t)stream_number(in);
	job->cookie = stream_number(in);
	job->size = stream_byte(in) % 16 ? sizeof(*job) : stream_below(in, sizeof(*job));
}

void call_jobs(struct stream *in)
{
	struct punctual_job_event event = PUNCTUAL_JOB_EVENT_INIT;
	struct punctual_job_attr job = PUNCTUAL_JOB_ATTR_INIT;
	struct punctual_jobs *jobs = handle(in, held.jobs);
	struct punctual_job_events *events = handle(in, held.events);
	uint32_t by[5];
	uint64_t number;

	switch (stream_byte(in) % 9) {
	case 0:
		checked(punctual_jobs_open(handle(in, held.task), room(in, held.jobs)));
		break;
	case 1:
		if (jobs != running_jobs)
			checked(punctual_jobs_close(jobs));
		break;
	case 2:
		for (int i = 0; i < 5; i++)
			by[i] = stream_below(in, 6);
		checked(punctual_jobs_order(handle(in, held.set), group_name(in),
					    by, stream_below(in, 6)));
		break;
	case 3:
	case 4:
		choose_job(in, &job);
		if (checked(punctual_job_add(jobs, &job, &number)) == 0 && stream_byte(in) % 4 == 0)
			checked(punctual_job_cancel(jobs, number));
		break;
	case 5:
		checked(punctual_job_cancel(jobs, stream_number(in)));
		checked(punctual_job_complete(jobs, stream_number(in)));
		break;
	case 6:
		checked(punctual_job_events_open(handle(in, held.set), room(in, held.events)));
		break;
	case 7:
		checked(punctual_job_events_fd(events));
		if (events != running_events)
			checked(punctual_job_events_close(events));
		break;
	case 8:
		event.size = stream_byte(in) % 8 ? sizeof(event) : stream_below(in, sizeof(event));
		if (checked(punctual_job_event(events, &event, soon(in))) == 0) {
			MUST(event.end <= PUNCTUAL_JOB_REFUSED);
			MUST((event.end == PUNCTUAL_JOB_REFUSED) == (event.error < 0));
		}
		break;
	}
}
