/* SPDX-License-Identifier: MIT */
/*
 * Tasks and time of RTAI LXRT.
 *
 * A thread becomes a task by rt_task_init. A thread that calls what makes a task wait, and is none,
 * becomes the least important one, without a name.
 */
#ifndef RTAI_LXRT_H
#define RTAI_LXRT_H

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>

#include "rtai_nam2num.h"
#include "rtai_sched.h"
#include "rtai_types.h"

#define RT_THREAD_STACK_MIN (16 * 1024)

RTAI_BEGIN_DECLS

/*
 * The object of this name, of any kind, of any program of this user; NULL: there is none.
 * Test: names.c
 */
void *rt_get_adr(unsigned long name);

/*
 * The name of an object; 0: there is no such object. Of NULL: a name that no object has.
 * Test: names.c
 */
unsigned long rt_get_name(void *adr);

/*
 * Makes the calling thread a task, and returns it; if it is one, it stays that one. `policy` is
 * SCHED_OTHER, SCHED_FIFO or SCHED_RR, and has no effect: a task that is not hard is an ordinary
 * thread. `cpus_allowed` has a bit for each CPU; 0: all. `stack_size` and `max_msg_size` have no
 * effect either: stacks and messages have what they need. NULL: the name is in use, a value is out
 * of its range, or there are 256 tasks. A name of 0 stands for one that no object has.
 * Test: tasks.c
 */
RT_TASK *rt_task_init_schmod(unsigned long name, int priority, int stack_size, int max_msg_size,
			     int policy, int cpus_allowed);

/*
 * The same with SCHED_FIFO and the first eight CPUs.
 * Test: tasks.c
 */
RT_TASK *rt_task_init(unsigned long name, int priority, int stack_size, int max_msg_size);

/*
 * The same as rt_task_init_schmod.
 * Test: tasks.c
 */
RT_TASK *rt_thread_init(unsigned long name, int priority, int max_msg_size, int policy,
			int cpus_allowed);

/*
 * Begins a thread with a stack of at least 256 KiB, and returns it; 0: it cannot be made. `fun` is
 * a void *(*)(void *). Where the calling task is hard, the thread is not.
 * Test: tasks.c
 */
long rt_thread_create(void *fun, void *args, int stack_size);

/*
 * Waits for the end of a thread of rt_thread_create, and returns what pthread_join does; ESRCH: it
 * is none, or was joined. The lower half of it is enough.
 * Test: tasks.c
 */
int rt_thread_join(long thread);

/*
 * Ends the calling thread's task, which NULL stands for; the thread continues. What the task owns
 * goes to the one that waits next. -EPERM: it is another thread's task. -EINVAL: it is no task.
 * The end of a thread, by whatever cause, ends its task too.
 * Test: tasks.c
 */
int rt_thread_delete(RT_TASK *task);
#define rt_task_delete(task) rt_thread_delete(task)

/*
 * The task of the calling thread; NULL: it is none.
 * Test: tasks.c
 */
RT_TASK *rt_agent(void);
#define rt_buddy() rt_agent()

/*
 * The thread's number in the kernel (gettid).
 * Test: tasks.c
 */
int rt_gettid(void);

/*
 * That of a task's thread; 0: there is no such task.
 * Test: tasks.c
 */
pid_t rt_get_linux_tid(RT_TASK *task);

/*
 * Lets other tasks of the same priority execute. Returns 0.
 * Test: tasks.c
 */
int rt_task_yield(void);

/*
 * Suspends a task, NULL: the calling one, until it was resumed as often as suspended. Another
 * thread's task is suspended from its next call of this library on: anywhere else it may hold a
 * lock that others need. One that owns a resource semaphore is suspended when it has released it.
 * Returns how often it is suspended; RTE_UNBLKD: its wait was ended; -EINVAL: there is no such
 * task.
 * Test: tasks.c
 */
int rt_task_suspend(RT_TASK *task);

/*
 * Takes one resumption in advance, if there is one, and returns how often the task is suspended;
 * negative: resumed in advance.
 * Test: tasks.c
 */
int rt_task_suspend_if(RT_TASK *task);

/*
 * As rt_task_suspend until a time at most: RTE_TIMOUT then, RTE_TMROVRN if it is past.
 * Test: tasks.c
 */
int rt_task_suspend_until(RT_TASK *task, RTIME time);

/*
 * The same for some counts.
 * Test: tasks.c
 */
int rt_task_suspend_timed(RT_TASK *task, RTIME delay);

/*
 * Resumes a task; if it is not suspended, its next suspension has no effect. Returns 0; -EINVAL:
 * there is no such task.
 * Test: tasks.c
 */
int rt_task_resume(RT_TASK *task);

/*
 * Ends the wait of a task, as far as it is for what `mask` has (RT_SCHED_SUSPENDED and the like):
 * what it waits in returns RTE_UNBLKD. Returns RTE_UNBLKD if the task waited, else 0; -EINVAL:
 * there is no such task.
 * Test: tasks.c
 */
int rt_task_masked_unblock(RT_TASK *task, unsigned long mask);
#define rt_task_wakeup_sleeping(task) rt_task_masked_unblock(task, RT_SCHED_DELAYED)

/*
 * Gives a task another priority of its own, and returns the one before; -EINVAL: a negative one, or
 * no such task.
 * Test: tasks.c
 */
int rt_change_prio(RT_TASK *task, int priority);

/*
 * Gives the periodic tasks that may execute on a CPU priorities by their periods, the shortest one
 * the best; `cpuid` that is no CPU stands for the one on which the caller executes.
 * Test: tasks.c
 */
void rt_spv_RMS(int cpuid);

/*
 * The priority of a task, which it may have inherited from those that wait for what it owns, and
 * its own. Those of tasks that are not hard are 1,000,000,000 more than they were given. -EINVAL:
 * there is no such task, or a pointer is NULL.
 * Test: tasks.c
 */
int rt_get_priorities(RT_TASK *task, int *priority, int *base_priority);

/*
 * The base priority alone. -EINVAL: there is no such task.
 * Test: tasks.c
 */
int rt_get_prio(RT_TASK *task);

/*
 * The priority with what it has inherited. -EINVAL: there is no such task.
 * Test: tasks.c
 */
int rt_get_inher_prio(RT_TASK *task);

/*
 * The same, with the period in counts.
 * Test: tasks.c
 */
int rt_task_get_info(RT_TASK *task, RT_TASK_INFO *task_info);

/*
 * Sleeps for some counts. RTE_TMROVRN: for none; RTE_UNBLKD: the sleep was ended.
 * Test: tasks.c
 */
int rt_sleep(RTIME delay);

/*
 * The same until a time; RTE_TMROVRN: it is past.
 * Test: tasks.c
 */
int rt_sleep_until(RTIME time);

/*
 * The CPUs on which a task may execute, a bit for each: a hard one has one of them when it becomes
 * hard, others move at once. Bits of CPUs that are not there have no effect.
 * Test: tasks.c
 */
void rt_set_runnable_on_cpus(RT_TASK *task, unsigned long cpu_mask);

/*
 * The same with one CPU.
 * Test: tasks.c
 */
void rt_set_runnable_on_cpuid(RT_TASK *task, unsigned int cpuid);

/*
 * Needs to do nothing: the kernel keeps the floating-point registers of every thread. -EINVAL:
 * there is no such task.
 * Test: tasks.c
 */
int rt_task_use_fpu(RT_TASK *task, int use_fpu_flag);

/*
 * Writes three times of a task: its execution time, when it began, and now, in counts.
 * Test: tasks.c
 */
void rt_get_exectime(RT_TASK *task, RTIME *exectime);

/*
 * Takes the next `incr` bytes of the stack into memory, and locks the memory of the program there.
 * Test: tasks.c
 */
void rt_grow_and_lock_stack(int incr);

/*
 * Makes the calling thread's task hard: a task of Punctual, in the group of hard tasks of its
 * program or, if it has one, on its own budget. Returns when it has its first release. Where the
 * machine does not permit it, standard error says so once, and the task stays soft.
 * Test: hard.c
 */
void rt_make_hard_real_time(void);

/*
 * Makes the calling thread's task soft: an ordinary thread again, unless it has a budget.
 * Test: hard.c
 */
void rt_make_soft_real_time(void);

/*
 * 1: the task, NULL for the calling one, is hard.
 * Test: hard.c
 */
int rt_is_hard_real_time(RT_TASK *task);
#define rt_is_soft_real_time(task) (!rt_is_hard_real_time(task))

/*
 * Needs to do nothing: by the service every user's tasks may be hard.
 * Test: hard.c
 */
void rt_allow_nonroot_hrt(void);

/*
 * Needs to do nothing: a hard task calls the kernel itself, as SYNC_LINUX_SYSCALL has it, and is
 * released again when the call returns. Returns the task, NULL for the calling one; NULL: there is
 * no such task.
 * Test: hard.c
 */
void *rt_linux_syscall_server_create(RT_TASK *task);

/*
 * Makes a task periodic from a time on, in counts, and takes its budget back if it had one: the
 * calling task waits for that time here, another one in its next call. -EINVAL: there is no such
 * task.
 * Test: hard.c
 */
int rt_task_make_periodic(RT_TASK *task, RTIME start_time, RTIME period);

/*
 * The same from some ns after now on.
 * Test: hard.c
 */
int rt_task_make_periodic_relative_ns(RT_TASK *task, RTIME start_delay, RTIME period);

/*
 * The same with a budget: so much execution time in each period, guaranteed and enforced (Perng,
 * Liu and Kuo, 3.2). The first period begins at `start_time`, or later, by a period and some 25 ms
 * at most. When its budget is used up, the task waits for the next period; if the program has a
 * handler of SIGBUDGET at this call, the handler is called then, on the next budget. -EBUSY: it
 * does not fit beside other budgets, and -EINVAL: a value is out of its range, or there is no such
 * task; the task is periodic without a budget then. Where the machine permits no budgets, standard
 * error says so once, and the result is 0.
 * Test: hard.c
 */
int rt_task_make_periodic_budget(RT_TASK *task, RTIME start_time, RTIME period, RTIME budget);

/* Says that a budget is used up. A handler may call rt_task_wait_period. */
#define SIGBUDGET SIGXCPU

/*
 * Waits for the next period. RTE_TMROVRN, at once: that has begun already; the wait counts, so that
 * the task catches up, one call for each period. RTE_UNBLKD: the wait was ended.
 * Test: hard.c
 */
int rt_task_wait_period(void);

/*
 * When the next period of the calling task begins.
 * Test: hard.c
 */
RTIME rt_task_next_period(void);

/*
 * Gives a task another period. -EINVAL: there is no such task, or its budget is longer.
 * Test: hard.c
 */
int rt_set_period(RT_TASK *task, RTIME new_period);

/*
 * Starts the timer, and returns `period`. Time passes in any case; what starts and stops is what
 * rt_is_hard_timer_running returns, to all programs of this user.
 * Test: time.c
 */
RTIME start_rt_timer(int period);
#define start_rt_timer_ns(period) start_rt_timer((int)nano2count(period))

/*
 * Stops the timer.
 * Test: time.c
 */
void stop_rt_timer(void);

/*
 * 1: the timer was started, and not stopped since.
 * Test: time.c
 */
int rt_is_hard_timer_running(void);

/*
 * Stops the timer. As in RTAI since 3.9, both modes have the same counts, and any time may be
 * waited for.
 * Test: time.c
 */
void rt_set_oneshot_mode(void);

/*
 * The same as rt_set_oneshot_mode.
 * Test: time.c
 */
void rt_set_periodic_mode(void);

/*
 * The time, in counts.
 * Test: time.c
 */
RTIME rt_get_time(void);
#define rt_get_tscnt rt_get_time

/*
 * The time, in ns.
 * Test: time.c
 */
RTIME rt_get_time_ns(void);

/*
 * The same as rt_get_time_ns.
 * Test: time.c
 */
RTIME rt_get_cpu_time_ns(void);

/*
 * The same as rt_get_time: all CPUs have one time.
 * Test: time.c
 */
RTIME rt_get_time_cpuid(unsigned int cpuid);

/*
 * The same as rt_get_time_ns.
 * Test: time.c
 */
RTIME rt_get_time_ns_cpuid(unsigned int cpuid);

/*
 * The time since 1970, in counts. It is no time to wait for.
 * Test: time.c
 */
RTIME rt_get_real_time(void);

/*
 * The same in ns.
 * Test: time.c
 */
RTIME rt_get_real_time_ns(void);

/*
 * Counts as ns: one is one.
 * Test: time.c
 */
RTIME count2nano(RTIME timercounts);

/*
 * ns as counts.
 * Test: time.c
 */
RTIME nano2count(RTIME nanosecs);

/*
 * The same as count2nano.
 * Test: time.c
 */
RTIME count2nano_cpuid(RTIME timercounts, unsigned int cpuid);

/*
 * The same as nano2count.
 * Test: time.c
 */
RTIME nano2count_cpuid(RTIME nanosecs, unsigned int cpuid);

/*
 * Counts in a second: 1,000,000,000.
 * Test: time.c
 */
unsigned int rt_get_cpu_freq(void);

/*
 * Executes for so many ns.
 * Test: time.c
 */
void rt_busy_sleep(int nanosecs);

/*
 * Prints up to 255 characters on standard error, and returns how many there were.
 * Test: print.c
 */
RTAI_PRINTF int rt_printk(const char *format, ...);

/*
 * The same.
 * Test: print.c
 */
RTAI_PRINTF int rtai_print_to_screen(const char *format, ...);

/* ns as counts of a clock, and back. */
static inline RTIME nanos2tscnts(RTIME nanos, unsigned int cpu_freq)
{
	return (RTIME)((long double)nanos * cpu_freq / 1000000000.0L);
}

static inline RTIME tscnts2nanos(RTIME tscnts, unsigned int cpu_freq)
{
	return (RTIME)((long double)tscnts * 1000000000.0L / cpu_freq);
}

RTAI_END_DECLS

#endif
