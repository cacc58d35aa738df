/* SPDX-License-Identifier: MIT */
/*
 * Semaphores of RTAI: counting, binary, resources, barriers and condition variables.
 *
 * Calls with a semaphore that is none, or is deleted, return RTE_OBJINV (SEM_ERR). A call that
 * waits returns RTE_OBJREM when its semaphore is deleted, and RTE_UNBLKD when another task, or a
 * handler of a signal, ends the wait of a task that is not hard.
 */
#ifndef RTAI_SEM_H
#define RTAI_SEM_H

#include "rtai_lxrt.h"
#include "rtai_nam2num.h"
#include "rtai_sched.h"
#include "rtai_types.h"

#define SEM_ERR RTE_OBJINV
#define SEM_TIMOUT RTE_TIMOUT

typedef struct rt_semaphore {
	int opaque;
} SEM;
typedef SEM CND;

/* An entry of rt_poll. */
struct rt_poll_s {
	void *what;
	unsigned long forwhat;
};

#define RT_POLL_NOT_TO_USE 0
#define RT_POLL_MBX_RECV 1
#define RT_POLL_MBX_SEND 2

RTAI_BEGIN_DECLS

/*
 * Makes a semaphore of this process, with which it ends: CNT_SEM with `value` units; BIN_SEM with
 * one at most; RES_SEM, free, whose owner inherits the priorities of the tasks that wait, with
 * `value` RESEM_RECURS, RESEM_CHEKWT or RESEM_BINSEM. Tasks wait by priority, with FIFO_Q as they
 * come. A name of 0 stands for one that no object has. NULL: the name is in use, or there is no
 * room.
 * Test: semaphores.c
 */
SEM *rt_typed_sem_init(unsigned long name, int value, int type);
#define rt_sem_init(name, value) rt_typed_sem_init(name, value, CNT_SEM)

/*
 * Deletes a semaphore: tasks that wait return RTE_OBJREM. -EFAULT: it is none.
 * Test: semaphores.c
 */
int rt_sem_delete(SEM *sem);

/*
 * Makes a semaphore of no process, or finds the one of this name. NULL: there is an object of
 * another kind, one of a process, or no room.
 * Test: semaphores.c
 */
SEM *rt_typed_named_sem_init(const char *name, int value, int type);
#define rt_named_sem_init(sem_name, value) rt_typed_named_sem_init(sem_name, value, CNT_SEM)

/*
 * Undoes one rt_typed_named_sem_init, the last one deletes the semaphore; returns how many are
 * left. -EFAULT: it is none.
 * Test: semaphores.c
 */
int rt_named_sem_delete(SEM *sem);

/*
 * Adds a unit, or releases a resource, which its owner had locked as often: the first task that
 * waits has it. Returns 0; RTE_PERM: it is a resource of another task.
 * Test: semaphores.c
 */
int rt_sem_signal(SEM *sem);

/*
 * Wakes all tasks that wait, and takes all units.
 * Test: semaphores.c
 */
int rt_sem_broadcast(SEM *sem);

/*
 * Takes a unit, or locks a resource, and waits for it. Returns the units there were; after a wait
 * what rt_sem_count does then; of a resource that the task owns, how often it has locked it, or
 * RTE_DEADLOK.
 * Test: semaphores.c
 */
int rt_sem_wait(SEM *sem);

/*
 * The same without a wait: 0, or a negative number, says that there was nothing to take.
 * Test: semaphores.c
 */
int rt_sem_wait_if(SEM *sem);

/*
 * As rt_sem_wait until a time at most: RTE_TIMOUT then.
 * Test: semaphores.c
 */
int rt_sem_wait_until(SEM *sem, RTIME time);

/*
 * The same for some counts.
 * Test: semaphores.c
 */
int rt_sem_wait_timed(SEM *sem, RTIME delay);

/*
 * The units of a semaphore; negative: how many tasks wait.
 * Test: semaphores.c
 */
int rt_sem_count(SEM *sem);

/*
 * Makes a semaphore the barrier of as many tasks as it has units, and waits until they are there:
 * 0 in the last one, -1 in the others.
 * Test: semaphores.c
 */
int rt_sem_wait_barrier(SEM *sem);

#define rt_cond_init(name) rt_typed_sem_init(name, 0, BIN_SEM)
#define rt_cond_delete(cnd) rt_sem_delete(cnd)
#define rt_cond_destroy(cnd) rt_sem_delete(cnd)
#define rt_cond_broadcast(cnd) rt_sem_broadcast(cnd)
#define rt_cond_timedwait(cnd, mtx, time) rt_cond_wait_until(cnd, mtx, time)

/*
 * Wakes the first task that waits for a condition.
 * Test: conditions.c
 */
int rt_cond_signal(CND *cnd);

/*
 * Releases a resource, waits for a condition, and locks the resource again, as often as it was.
 * RTE_PERM: the task does not own it.
 * Test: conditions.c
 */
int rt_cond_wait(CND *cnd, SEM *mutex);

/*
 * The same until a time at most: RTE_TIMOUT then; the resource is locked again after any wait.
 * Test: conditions.c
 */
int rt_cond_wait_until(CND *cnd, SEM *mutex, RTIME time);

/*
 * The same for some counts.
 * Test: conditions.c
 */
int rt_cond_wait_timed(CND *cnd, SEM *mutex, RTIME delay);

/*
 * Waits until one of `nr` entries is ready, each a mailbox and RT_POLL_MBX_RECV, there is something
 * in it, or RT_POLL_MBX_SEND, there is some room. A `timeout` of 0 has no end, one of 1 does not
 * wait, a negative one is that many counts, another one a time. Returns how many are ready: their
 * `what` is NULL then, or an error number as an address, and 0 if none is; RTE_TIMOUT; RTE_UNBLKD.
 * Test: mailboxes.c
 */
int rt_poll(struct rt_poll_s *pdsa, unsigned long nr, RTIME timeout);

RTAI_END_DECLS

#endif
