/* SPDX-License-Identifier: MIT */
/*
 * Types and constants of RTAI, for programs in user space.
 */
#ifndef RTAI_TYPES_H
#define RTAI_TYPES_H

#ifdef __cplusplus
#define RTAI_BEGIN_DECLS extern "C" {
#define RTAI_END_DECLS }
#else
#define RTAI_BEGIN_DECLS
#define RTAI_END_DECLS
#endif

#ifdef __GNUC__
#define RTAI_PRINTF __attribute__((format(printf, 1, 2)))
#else
#define RTAI_PRINTF
#endif

/* Order of tasks that wait: by priority, or as they came. */
#define PRIO_Q 0
#define FIFO_Q 4
#define RES_Q 3

/* Types of semaphores; FIFO_Q may be added to the first two. */
#define BIN_SEM 1
#define CNT_SEM 2
#define RES_SEM 3

/*
 * Values of a resource semaphore: its owner may lock it again; would wait for itself, as with a
 * binary one, which any task may signal; gets RTE_DEADLOK.
 */
#define RESEM_RECURS 1
#define RESEM_BINSEM 0
#define RESEM_CHEKWT (-1)

#define RT_SCHED_FIFO 0
#define RT_SCHED_RR 1

/* Time, in counts: here ns of CLOCK_MONOTONIC. */
typedef long long RTIME;

#endif
