/* SPDX-License-Identifier: MIT */
/*
 * gsi.h - the general scheduling interface of RED-Linux: an allocator in user space.
 *
 * As K.-J. Lin and Y.-C. Wang print it ("The Design and Implementation of Real-Time Schedulers in
 * RED-Linux", Proceedings of the IEEE 91(7), 2003, IV and V; Figs. 3 to 5), on libpunctual. The
 * program is the allocator: it sends jobs of processes to the dispatcher, and receives their ends.
 *
 *     #include <gsi.h>
 *
 *     GSI_JOB job = { 0 };
 *     GSI_Event event;
 *
 *     GSI_register();
 *     job.pid = pid;
 *     job.starttime = GSI_now() + GSI_msec_to_ticks(50);
 *     job.finishtime = job.starttime + GSI_msec_to_ticks(10);
 *     job.budget = GSI_msec_to_ticks(3);
 *     GSI_addjob(&job, 1);
 *     while (GSI_getevents(&event, 1) == 1)
 *             next_job_of(&event);
 *
 *     cc allocator.c $(pkg-config --cflags --libs punctual)
 *
 * Times and budgets are ticks of a microsecond; times are of CLOCK_MONOTONIC. Calls return 0 or a
 * count, or a negative error number; punctual_last_error(3) of punctual.h explains it. docs/gsi.md
 * has an overview, and what differs from RED-Linux. The man pages are made of the comments below.
 */
#ifndef GSI_H
#define GSI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
/* C++ keeps the name for itself. */
#define GSI_PRIVATE private_data
#else
#define GSI_PRIVATE private
#endif

/* A time or a length, ticks. */
typedef int64_t GSI_TIME;

/* Never, as a finish; without a limit, as a budget. */
#define GSI_INFINITE INT64_MAX

/* Scheduling groups have the numbers 1 to this, and budget groups have. */
#define GSI_GROUPS 32

/* An attribute by which jobs are ordered; -1: none. */
typedef int GSI_QOS;

enum {
	QOS_PRIORITY,   /* the larger priority first */
	QOS_STARTTIME,  /* the earlier start first */
	QOS_FINISHTIME, /* the earlier finish first */
	QOS_BUDGET      /* the smaller remaining budget first */
};

/* A job: what a process may execute once. */
typedef struct {
	GSI_TIME starttime;   /* not before */
	GSI_TIME finishtime;  /* not at or after */
	GSI_TIME budget;      /* execution time */
	int priority;         /* the larger, the more important */
	int pid;              /* the process that executes; 0: it is a job of a group */
	int group;            /* scheduling group in which it competes; 0: the top one */
	int server;           /* scheduling group that executes on it; 0 or its own group: none */
	int budget_group;     /* budget group that limits it; 0: none */
	int budget_server;    /* budget group that has it as a budget; 0 or its own one: none */
	intptr_t GSI_PRIVATE; /* private (C++: private_data): comes back with its event */
} GSI_JOB;

/* Types of events. */
enum {
	GSI_EV_JOB_EXPIRED = 1 /* a job has ended, in whatever way: see its reason */
};

/* How a job ended. */
enum {
	GSI_COMPLETED, /* its process called GSI_abort_job(3) */
	GSI_EXHAUSTED, /* its budget was used up */
	GSI_EXPIRED,   /* its finish came */
	GSI_CANCELLED, /* the dispatcher did not take it: no room, or a group in itself */
	GSI_GONE       /* its process has ended */
};

/* What the dispatcher reports. */
typedef struct {
	int type;             /* GSI_EV_JOB_EXPIRED */
	int reason;           /* GSI_COMPLETED, ... */
	GSI_TIME budget;      /* what remains of the job's budget */
	GSI_TIME time;        /* when */
	int pid;              /* the process of the job; 0: it was of a group */
	int reserved;
	intptr_t GSI_PRIVATE; /* private (C++: private_data) of the job */
} GSI_Event;

/*
 * GSI_register - become the allocator
 *
 * Starts a dispatcher on the last CPU that the program may use, or on PUNCTUAL_GSI_CPU of the
 * environment. The calling thread is the allocator from here on, and the other calls are its own.
 * It executes on that CPU before all jobs, for at most a millisecond in every ten; the jobs of all
 * processes together may have nine of the ten. PUNCTUAL_GSI_TRACE in the environment names a file
 * for a trace of the run. With PUNCTUAL_GSI_HOST=kernel the dispatcher is inside the kernel, by
 * sched_ext; else it is a thread of the program.
 *
 * Needs what punctual_open(3) needs; inside the kernel what docs/kernel-host.md says. A program has
 * one allocator.
 *
 * Errors:
 * EBUSY the program has an allocator, another dispatcher has the CPU, or sched_ext is in use
 * EALREADY the calling thread is a task of punctual_attach(3)
 * EPERM privileges are missing; this is the child of a process that used Punctual
 * EINVAL the environment names no CPU of this machine, or no host
 * EIO the machine refuses it
 * EMFILE there are no descriptors left
 */
int GSI_register(void);

/*
 * GSI_unregister - end the dispatcher
 *
 * All processes are ordinary ones again. What waits in GSI_abort_job(3) returns.
 *
 * Errors:
 * EPERM the calling thread is not the allocator
 * EIO something could not be restored: see punctual clean
 */
int GSI_unregister(void);

/*
 * GSI_setQOS - choose how the dispatcher orders the jobs of the top group
 *
 * From now on, by the attributes of qos, an array of four, the most important one first: up to the
 * first that is -1. Without any, and before the first call, it is by QOS_PRIORITY. A repeated
 * attribute is ignored. Of jobs that are equal the one that was sent first is first.
 *
 * Errors:
 * EINVAL an attribute is unknown
 * EAGAIN the dispatcher has not taken 64 requests for groups
 * EPERM the calling thread is not the allocator
 * ECANCELED the dispatcher has ended
 * EFAULT qos is NULL
 */
int GSI_setQOS(const GSI_QOS *qos);

/*
 * GSI_setgroupQOS - choose how the dispatcher orders the jobs of a scheduling group
 *
 * As GSI_setQOS(3), for the scheduling group with this number; 0 is the top one. RED-Linux prints
 * no call for that.
 *
 * Real-time safe.
 *
 * Errors:
 * ENOENT there is no such group
 * EINVAL an attribute is unknown
 * EAGAIN the dispatcher has not taken 64 requests for groups
 * EPERM the calling thread is not the allocator
 * ECANCELED the dispatcher has ended
 * EFAULT qos is NULL
 */
int GSI_setgroupQOS(int group, const GSI_QOS *qos);

/*
 * GSI_addjob - send jobs to the dispatcher
 *
 * Sends count jobs of the array job, which is read and not kept. A process has one job at a time,
 * which may wait for its start. It executes on its jobs alone, from its first one on, with all its
 * threads and children. What it is in the middle of when a job ends it continues on the next one.
 * A start that has passed is now. A job whose finish has passed, or whose budget is 0, ends at
 * once. Each job that was sent has one event.
 *
 * A job with pid 0 is one of a group, which may have several at one time. With server it is a
 * server job: the jobs in that scheduling group execute on it, when it is selected in its own
 * group. With budget_server it is a budget of that budget group, from its start to its finish: what
 * the jobs execute that name the budget group, or another one below it, is taken from the one that
 * ends first. While a budget group has none, its jobs wait. The first job of a group fixes which
 * group is above it, and a budget group has had a budget before a job names it.
 *
 * The first job of a process takes some 50 ms; others are sent without waiting for anything.
 *
 * Returns how many jobs were sent: where one is refused, those before it. Real-time safe.
 *
 * Errors:
 * EINVAL the finish is not after the start; a time or budget is negative; the job has neither a
 * process nor serves a group, or several of that
 * ENOENT there is no such group; the budget group has had no budget
 * EBUSY the process has a job that has not ended, or whose event was not received
 * ESRCH there is no such process, or it has ended; or the dispatcher has
 * ENOSPC 256 processes have jobs (inside the kernel 255), or 256 jobs of groups have not ended
 * EAGAIN the dispatcher has not taken what was sent: 16 requests of the process, or 64 of groups
 * EMFILE there are no descriptors left
 * EPERM the process may not be scheduled; the calling thread is not the allocator
 * ECANCELED the dispatcher has ended
 * EFAULT job is NULL
 */
int GSI_addjob(const GSI_JOB *job, int count);

/*
 * GSI_getevents - wait for events of the dispatcher
 *
 * Waits until there is an event, and stores up to count of them in the array event.
 *
 * Returns how many; 0 where no job is left of which one could come: none of a process, and of
 * groups those without a finish. Real-time safe.
 *
 * Errors:
 * EINVAL count is not positive
 * EPERM the calling thread is not the allocator
 * ECANCELED the dispatcher has ended
 * EFAULT event is NULL
 */
int GSI_getevents(GSI_Event *event, int count);

/*
 * GSI_abort_job - give up the rest of the job
 *
 * For the processes of jobs: ends the job on which the process executes, and returns at the start
 * of its next one. A process that has had no job yet waits for its first one. (What it executes
 * before that call, when its first job has begun, is on that job, and the call ends it.) The
 * process was forked by its allocator, or by such a process, after GSI_register(3); it may have
 * called exec since. Where its allocator has ended, it is an ordinary one.
 *
 * Errors:
 * ESRCH the process has no allocator, or is the allocator
 * ECANCELED the allocator has ended, or has called GSI_unregister(3)
 */
int GSI_abort_job(void);

/*
 * GSI_now - the time
 *
 * Returns ticks of CLOCK_MONOTONIC. Real-time safe.
 */
GSI_TIME GSI_now(void);

/*
 * GSI_msec_to_ticks - milliseconds as ticks
 *
 * Returns ticks; of what is too large the largest time. Real-time safe.
 */
GSI_TIME GSI_msec_to_ticks(GSI_TIME milliseconds);

#ifdef __cplusplus
}
#endif

#endif
