/* SPDX-License-Identifier: MIT */
/* What the calls of libpunctual have: open handles, right and wrong ones. */
#pragma once

#include <punctual.h>

#include "../numbers.h"

#define MS 1000000ull
#define SLOTS 4

/* Where it may have real-time priorities and a CPU: tasks execute in it. */
extern struct punctual *running;
/* Of a task of it, and of all: they can be opened once. */
extern struct punctual_jobs *running_jobs;
extern struct punctual_job_events *running_events;

extern struct held {
	struct punctual *set[SLOTS];
	struct punctual_task *task[SLOTS];
	struct punctual_fifo *fifo[SLOTS];
	struct punctual_fifo_writer *writer[SLOTS];
	struct punctual_fifo_reader *reader[SLOTS];
	struct punctual_mutex *mutex[SLOTS];
	struct punctual_cond *cond[SLOTS];
	struct punctual_sem *sem[SLOTS];
	struct punctual_barrier *barrier[SLOTS];
	struct punctual_shared_mutex *shared_mutex[SLOTS];
	struct punctual_shared_cond *shared_cond[SLOTS];
	struct punctual_shared_sem *shared_sem[SLOTS];
	struct punctual_shared_barrier *shared_barrier[SLOTS];
	struct punctual_jobs *jobs[SLOTS];
	struct punctual_job_events *events[SLOTS];
} held;

/* Of a call: 0 or more, or an errno with its text. */
int64_t checked(int64_t result);
/* A handle: one of `slots`, NULL, or another number. */
void *handle(struct stream *in, void *slots);
/* Where a call puts a handle: a free slot, or nowhere. */
void *room(struct stream *in, void *slots);
/* A time that may be waited for. */
uint64_t soon(struct stream *in);
/* The name of a group, or none. */
const char *group_name(struct stream *in);

/* One call on an object of its kind. */
void call_set(struct stream *in);
void call_task(struct stream *in);
void call_current(struct stream *in);
void call_fifo(struct stream *in);
void call_end(struct stream *in);
void call_mutex(struct stream *in);
void call_queue(struct stream *in);
void call_jobs(struct stream *in);
void call_shared_mutex(struct stream *in);
void call_shared_queue(struct stream *in);
