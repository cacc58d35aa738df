/* SPDX-License-Identifier: MIT */
/*
 * RT-Linux as its paper has it: M. Barabanov, V. Yodaiken, "A Real-Time Linux", 1996, section 3.
 *
 * A call that is refused returns -1, and errno says why.
 */
#ifndef RTLINUX_H
#define RTLINUX_H

#ifdef __cplusplus
extern "C" {
#endif

/* Time, in ticks since the machine was started; RT_TICKS_PER_SEC are a second. */
typedef long long RTime;
#define RT_TICKS_PER_SEC 1000000000

/*
 * Priorities are 0 to this: the smaller number is the more important one, as in RT-Linux 1. The
 * paper does not say it.
 */
#define RT_LOWEST_PRIORITY 1000000

/* FIFOs have the numbers 0 to this, less one. */
#define RT_MAX_FIFO 64

/*
 * Loads a program, the file of this name, and returns its process. The program executes nothing
 * before RTrun. Its memory is locked, and its resources are fixed: memory, stack and open files. It
 * ends with the program that loads it. ENOENT, EACCES, ENOEXEC: there is no such program. EAGAIN:
 * there are 64. EINVAL: PUNCTUAL_RTLINUX_MEMORY is no amount of memory.
 * Test: programs.c
 */
int RTload(const char *file);

/*
 * Starts a loaded program, at the priority RT_LOWEST_PRIORITY. Returns 0. ESRCH: this program has
 * not loaded it, or it has ended. EALREADY: it was started. EBUSY: it does not fit beside the other
 * tasks.
 * Test: programs.c
 */
int RTrun(int pid);

/*
 * Kills a loaded program, and returns 0 when it has ended. ESRCH: this program has not loaded it,
 * or it has ended.
 * Test: programs.c
 */
int RTkill(int pid);

/*
 * Waits until a loaded program has ended, and returns `pid`. `status`, unless it is NULL, is what
 * waitpid(2) returns. A program that ends by itself and not well is reported on standard error,
 * too. It is not the paper's. ESRCH: this program has not loaded it, or has waited for it; of those
 * that have ended, the latest 64 can be waited for.
 * Test: programs.c
 */
int RTwait(int pid, int *status);

/*
 * The time. EFAULT: `t` is NULL.
 * Test: paper.c
 */
int RTget_time(RTime *t);

/*
 * Gives the calling program other parameters: the start of its next period, its period, its
 * priority. NULL: it stays as it is. A period of 0: it has none. Where the program was not loaded,
 * the calling thread becomes a task. EINVAL: a value is out of its range. EAGAIN: the program that
 * has loaded this one takes no more requests now.
 * Test: paper.c
 */
int RTset_params(RTime *start, RTime *period, int priority);

/*
 * Suspends the calling program until its start, and gives it the priority then. The periods begin
 * there: the next one is `period` later. A start that is past is waited for no longer. EFAULT:
 * `start` is NULL. Others: as of RTset_params.
 * Test: paper.c
 */
int RTwait_start(RTime *start, RTime *period, int priority);

/*
 * Suspends the calling program until its next period begins, and returns 0. Where it has begun
 * already, once or more, it returns at once. EINVAL: it has no period.
 * Test: paper.c
 */
int RTwait_period(void);

/*
 * Makes a FIFO, in which there are at most `size` bytes. ENODEV: there is no such number. EBUSY:
 * there is this FIFO. EINVAL: the size is not 1 to 1 GiB. ENOMEM: there is not so much memory.
 * Test: fifos.c
 */
int RTfifo_create(unsigned int fifo, int size);

/*
 * Destroys a FIFO, whichever program has made it. ENODEV: there is no such number. EINVAL: there
 * is no such FIFO.
 * Test: fifos.c
 */
int RTfifo_destroy(unsigned int fifo);

/*
 * Takes `count` bytes out of a FIFO, or none. Returns `count`. EAGAIN: there are not so many.
 * EMSGSIZE: it never has so many. ENODEV: there is no such number. EINVAL: there is no such FIFO,
 * `count` is negative, or `buf` NULL. EBADMSG: another program damaged it.
 * Test: fifos.c
 */
int RTfifo_get(unsigned int fifo, char *buf, int count);

/*
 * Puts `count` bytes into a FIFO, or none. Returns `count`. EAGAIN: there is no room for so many
 * now. Others: as of RTfifo_get.
 * Test: fifos.c
 */
int RTfifo_put(unsigned int fifo, const char *buf, int count);

#ifdef __cplusplus
}
#endif

#endif
