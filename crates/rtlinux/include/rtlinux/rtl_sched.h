/* SPDX-License-Identifier: MIT */
/*
 * Threads and periods of RT-Linux 2 and 3, and the tasks of RT-Linux 1.
 *
 * Threads that pthread_create makes in a file with this header are tasks; its other names of POSIX
 * are of these threads, too. Define RTL_NO_POSIX_NAMES to keep POSIX's own, and call those with
 * rtl_ before them. Calls of pthread_ and rtl_ return error numbers, those of rt_task_ negative
 * ones.
 */
#ifndef RTL_SCHED_H
#define RTL_SCHED_H

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stddef.h>
#include <unistd.h>

#include "rtl_time.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Attributes of a thread. Nothing of it is for programs. */
typedef struct rtl_pthread_attr {
	unsigned int magic;
	int priority, policy, cpu, detach_state, fp;
	size_t stack;
} rtl_pthread_attr_t;

typedef struct sched_param rtl_sched_param;

#define RTL_PTHREAD_STACK_MIN 8192

/* What rtl_pthread_kill takes. */
#define RTL_SIGNAL_NULL 0
#define RTL_SIGNAL_WAKEUP 1
#define RTL_SIGNAL_CANCEL 2
#define RTL_SIGNAL_SUSPEND 3

/*
 * Makes a thread, with attributes or without (NULL), that calls `start`. It begins some 20 ms
 * later, as a task; what keeps it from that is reported on standard error, and it is an ordinary
 * thread then. EAGAIN: there are 256. EINVAL: a pointer is NULL, or the attributes were not
 * initialized.
 * Test: threads.c
 */
int rtl_pthread_create(pthread_t *thread, const rtl_pthread_attr_t *attr, void *(*start)(void *),
		       void *argument);

/*
 * Waits for the end of a thread. ESRCH: there is no such thread. EINVAL: it is detached, or another
 * one waits for it. EDEADLK: it is the calling one.
 * Test: threads.c
 */
int rtl_pthread_join(pthread_t thread, void **value);

/*
 * Nothing joins the thread any more. Errors: as of rtl_pthread_join, but for EDEADLK.
 * Test: threads.c
 */
int rtl_pthread_detach(pthread_t thread);

/*
 * Has a thread end at its next cancellation point (pthreads(7)), which each wait of this header is.
 * ESRCH: there is no such thread.
 * Test: threads.c
 */
int rtl_pthread_cancel(pthread_t thread);

/*
 * As POSIX has it, but for PTHREAD_CANCEL_ASYNCHRONOUS, which is ENOTSUP.
 * Test: threads.c
 */
int rtl_pthread_setcanceltype(int type, int *before);

/*
 * Wakes, cancels or suspends a thread. 0: whether there is such a thread. ESRCH: there is none.
 * EINVAL: there is no such signal.
 * Test: periods.c
 */
int rtl_pthread_kill(pthread_t thread, int signal);

/*
 * Gives a thread a priority: 0 to 1,000,000, the larger number is the more important one. It holds
 * from the next 10 ms on, and this call may wait for ordinary threads, up to some 25 ms, or until a
 * thread that begins is a task. The policy has no effect. ESRCH: there is no such thread. EINVAL: a
 * value is out of its range.
 * Test: threads.c
 */
int rtl_pthread_setschedparam(pthread_t thread, int policy, const struct sched_param *parameters);

/*
 * The policy, SCHED_FIFO, and the priority of a thread. ESRCH: there is no such thread. EINVAL: a
 * pointer is NULL.
 * Test: threads.c
 */
int rtl_pthread_getschedparam(pthread_t thread, int *policy, struct sched_param *parameters);

/*
 * The default attributes: priority 0, any CPU. EINVAL: `attr` is NULL.
 * Test: attributes.c
 */
int rtl_pthread_attr_init(rtl_pthread_attr_t *attr);

/*
 * The attributes are of no use any more. EINVAL, here and below: they were not initialized, a
 * pointer is NULL, or a value is out of its range.
 * Test: attributes.c
 */
int rtl_pthread_attr_destroy(rtl_pthread_attr_t *attr);

/*
 * The priority.
 * Test: attributes.c
 */
int rtl_pthread_attr_setschedparam(rtl_pthread_attr_t *attr, const struct sched_param *parameters);

/*
 * The priority.
 * Test: attributes.c
 */
int rtl_pthread_attr_getschedparam(const rtl_pthread_attr_t *attr, struct sched_param *parameters);

/*
 * SCHED_FIFO, SCHED_RR or SCHED_OTHER, without effect.
 * Test: attributes.c
 */
int rtl_pthread_attr_setschedpolicy(rtl_pthread_attr_t *attr, int policy);

/*
 * The policy.
 * Test: attributes.c
 */
int rtl_pthread_attr_getschedpolicy(const rtl_pthread_attr_t *attr, int *policy);

/*
 * Bytes of the stack, at least RTL_PTHREAD_STACK_MIN. A thread has 256 KiB in any case.
 * Test: attributes.c
 */
int rtl_pthread_attr_setstacksize(rtl_pthread_attr_t *attr, size_t size);

/*
 * Bytes of the stack, as they were set; 0: they were not.
 * Test: attributes.c
 */
int rtl_pthread_attr_getstacksize(const rtl_pthread_attr_t *attr, size_t *size);

/*
 * PTHREAD_CREATE_JOINABLE or PTHREAD_CREATE_DETACHED.
 * Test: attributes.c
 */
int rtl_pthread_attr_setdetachstate(rtl_pthread_attr_t *attr, int state);

/*
 * Whether nothing joins the thread.
 * Test: attributes.c
 */
int rtl_pthread_attr_getdetachstate(const rtl_pthread_attr_t *attr, int *state);

/*
 * The CPU of the thread; else it is the last one of the program.
 * Test: attributes.c
 */
int pthread_attr_setcpu_np(rtl_pthread_attr_t *attr, int cpu);

/*
 * The CPU, as it was set; -1: it was not.
 * Test: attributes.c
 */
int pthread_attr_getcpu_np(const rtl_pthread_attr_t *attr, int *cpu);

/*
 * Without effect: each thread has floating point.
 * Test: attributes.c
 */
int pthread_attr_setfp_np(rtl_pthread_attr_t *attr, int flag);

/*
 * The flag, as it was set.
 * Test: attributes.c
 */
int pthread_attr_getfp_np(const rtl_pthread_attr_t *attr, int *flag);

/*
 * Without effect. ESRCH: there is no such thread.
 * Test: threads.c
 */
int pthread_setfp_np(pthread_t thread, int flag);

/*
 * A thread has periods from `start_time` on, a time of gethrtime or of CLOCK_REALTIME. A period of
 * 0: it has a single release. HRTIME_INFINITY: it has none. A suspended thread continues at the
 * first release. ESRCH: there is no such thread. EINVAL: a negative period.
 * Test: periods.c
 */
int pthread_make_periodic_np(pthread_t thread, hrtime_t start_time, hrtime_t period);

/*
 * The calling thread waits for its next release. Where that is past, once or more, it returns at
 * once; the later releases stay where they are. A thread without periods waits until it is woken,
 * or gets some. Returns 0. EPERM: the thread is not one of pthread_create.
 * Test: periods.c
 */
int pthread_wait_np(void);

/*
 * Suspends a thread until it is woken, or gets periods: the calling one at once, another one when
 * it waits next, because anywhere else it may hold a lock that others need. ESRCH: there is no such
 * thread.
 * Test: periods.c
 */
int pthread_suspend_np(pthread_t thread);

/*
 * Ends the wait of a thread, whatever it waits for by a call of this header. One that does not wait
 * does not wait for a wake-up next time. ESRCH: there is no such thread.
 * Test: periods.c
 */
int pthread_wakeup_np(pthread_t thread);

/*
 * Cancels a thread, and waits for its end. The calling thread ends at once. ESRCH: there is no such
 * thread. ETIMEDOUT: it has not come to a cancellation point for 5 s; it is detached then.
 * Test: threads.c
 */
int pthread_delete_np(pthread_t thread);

/*
 * Sleeps for a time, or until one (TIMER_ABSTIME), as clock_nanosleep(2). EINTR: the thread was
 * woken. The parking of a task is no interruption.
 * Test: periods.c
 */
int rtl_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
			struct timespec *left);

/*
 * The same as nanosleep(2).
 * Test: periods.c
 */
int rtl_nanosleep(const struct timespec *time, struct timespec *left);

/*
 * The same as usleep(3).
 * Test: periods.c
 */
int rtl_usleep(unsigned int microseconds);

/*
 * Returns 0: the more important thread executes already.
 * Test: periods.c
 */
int rtl_schedule(void);

/*
 * The CPU on which the calling thread executes.
 * Test: time.c
 */
int rtl_getcpuid(void);

/*
 * Whether this program may use a CPU.
 * Test: time.c
 */
int rtl_cpu_exists(int cpu);

/* RT-Linux 1. RTIME has ticks of 1 ns. */
typedef long long RTIME;

#ifndef RT_TICKS_PER_SEC
#define RT_TICKS_PER_SEC 1000000000
#endif
#ifndef RT_LOWEST_PRIORITY
#define RT_LOWEST_PRIORITY 1000000
#endif

/* A task. Nothing of it is for programs; it is there until it was deleted. */
typedef struct rt_task_struct {
	unsigned int magic;
	int data;
	pthread_t thread;
	void (*function)(int);
} RT_TASK;

/*
 * Makes a task, dormant, that calls `function` with `data`. `priority`: 0 to RT_LOWEST_PRIORITY,
 * the smaller number is the more important one. -EINVAL: a value is out of its range. -ENOMEM:
 * there are 256 threads.
 * Test: tasks.c
 */
int rt_task_init(RT_TASK *task, void (*function)(int), int data, int stack_size, int priority);

/*
 * Ends a task: see pthread_delete_np. -EINVAL, here and below: it is no task.
 * Test: tasks.c
 */
int rt_task_delete(RT_TASK *task);

/*
 * See pthread_make_periodic_np.
 * Test: tasks.c
 */
int rt_task_make_periodic(RT_TASK *task, RTIME start_time, RTIME period);

/*
 * See pthread_wait_np.
 * Test: tasks.c
 */
int rt_task_wait(void);

/*
 * See pthread_suspend_np.
 * Test: tasks.c
 */
int rt_task_suspend(RT_TASK *task);

/*
 * See pthread_wakeup_np.
 * Test: tasks.c
 */
int rt_task_wakeup(RT_TASK *task);

/*
 * The time since the machine was started.
 * Test: tasks.c
 */
RTIME rt_get_time(void);

#ifdef __cplusplus
}
#endif

#ifndef RTL_NO_POSIX_NAMES
#define pthread_attr_t rtl_pthread_attr_t
#define pthread_create rtl_pthread_create
#define pthread_join rtl_pthread_join
#define pthread_detach rtl_pthread_detach
#define pthread_cancel rtl_pthread_cancel
#define pthread_setcanceltype rtl_pthread_setcanceltype
#define pthread_kill rtl_pthread_kill
#define pthread_setschedparam rtl_pthread_setschedparam
#define pthread_getschedparam rtl_pthread_getschedparam
#define pthread_attr_init rtl_pthread_attr_init
#define pthread_attr_destroy rtl_pthread_attr_destroy
#define pthread_attr_setschedparam rtl_pthread_attr_setschedparam
#define pthread_attr_getschedparam rtl_pthread_attr_getschedparam
#define pthread_attr_setschedpolicy rtl_pthread_attr_setschedpolicy
#define pthread_attr_getschedpolicy rtl_pthread_attr_getschedpolicy
#define pthread_attr_setstacksize rtl_pthread_attr_setstacksize
#define pthread_attr_getstacksize rtl_pthread_attr_getstacksize
#define pthread_attr_setdetachstate rtl_pthread_attr_setdetachstate
#define pthread_attr_getdetachstate rtl_pthread_attr_getdetachstate
#define pthread_attr_setcpu pthread_attr_setcpu_np
#define pthread_attr_getcpu pthread_attr_getcpu_np
#define pthread_attr_setfp pthread_attr_setfp_np
#define pthread_attr_getfp pthread_attr_getfp_np
#define clock_nanosleep rtl_clock_nanosleep
#define nanosleep rtl_nanosleep
#define usleep rtl_usleep
#define sched_get_priority_max(policy) ((void)(policy), 1000000)
#define sched_get_priority_min(policy) ((void)(policy), 0)
#endif

#endif
