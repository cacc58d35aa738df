/* SPDX-License-Identifier: MIT */
/*
 * Priorities, states and error numbers of RTAI.
 */
#ifndef RTAI_SCHED_H
#define RTAI_SCHED_H

#include "rtai_types.h"

/* The smaller number is the more important priority. Tasks that are not hard come after these. */
#define RT_SCHED_HIGHEST_PRIORITY 0
#define RT_SCHED_LOWEST_PRIORITY 0x3fffFfff
#define RT_SCHED_LINUX_PRIORITY 0x7fffFfff

/* What a task waits for, as rt_task_masked_unblock takes it. */
#define RT_SCHED_READY 1
#define RT_SCHED_SUSPENDED 2
#define RT_SCHED_DELAYED 4
#define RT_SCHED_SEMAPHORE 8
#define RT_SCHED_SEND 16
#define RT_SCHED_RECEIVE 32
#define RT_SCHED_RPC 64
#define RT_SCHED_RETURN 128
#define RT_SCHED_MBXSUSP 256
#define RT_SCHED_POLL 1024

#define RT_TMROVRN 1
#define RT_UNBLKD 2
#define RT_TIMOUT 3
#define RT_OBJREM 4
#define RT_OBJINV 5
#define RT_PERM 6
#define RT_DEADLOK 7
#define RT_NETIMOUT 8
#define RT_CHGPORTOK 9
#define RT_CHGPORTERR 10
#define RT_RWLINV 11

#define RTE_BASE 0x3FFFFF00
#define RTE_TMROVRN (RTE_BASE + RT_TMROVRN) /* the time is past already */
#define RTE_UNBLKD (RTE_BASE + RT_UNBLKD) /* another task, or a signal, ended the wait */
#define RTE_TIMOUT (RTE_BASE + RT_TIMOUT) /* the time has come */
#define RTE_OBJREM (RTE_BASE + RT_OBJREM) /* what the task waited for was deleted */
#define RTE_OBJINV (RTE_BASE + RT_OBJINV) /* there is no such object */
#define RTE_PERM (RTE_BASE + RT_PERM) /* the task does not own it */
#define RTE_DEADLOK (RTE_BASE + RT_DEADLOK) /* the task owns it, and would wait for itself */
#define RTE_NETIMOUT (RTE_BASE + RT_NETIMOUT)
#define RTE_CHGPORTOK (RTE_BASE + RT_CHGPORTOK)
#define RTE_CHGPORTERR (RTE_BASE + RT_CHGPORTERR)
#define RTE_RWLINV (RTE_BASE + RT_RWLINV)
#define RTE_HIGERR RTE_RWLINV
#define RTE_LOWERR RTE_TMROVRN

#define RT_EINTR RTE_UNBLKD

/* Whether a result is an error. */
#define rt_is_reterr(i) ((i) >= RTE_LOWERR)

/*
 * A task. Addresses of tasks and of other objects are passed on, and never used: they are no
 * addresses of memory.
 */
typedef struct rt_task_struct {
	int opaque;
} RT_TASK;

typedef struct rt_task_info {
	RTIME period;
	long base_priority, priority;
} RT_TASK_INFO;

#endif
