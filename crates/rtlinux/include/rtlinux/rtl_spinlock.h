/* SPDX-License-Identifier: MIT */
/*
 * Spin locks, with POSIX's names by macros. All of them are the critical section of rtl_sync.h: a
 * thread that spins would keep the CPU from a less important one that has the lock.
 */
#ifndef RTL_SPINLOCK_H
#define RTL_SPINLOCK_H

#include "rtl_sched.h"
#include "rtl_sync.h"

/* A lock. Nothing of it is for programs. */
typedef struct rtl_spinlock {
	int reserved;
} rtl_spinlock_t;

/* ENOTSUP: a lock that is shared with other programs. */
static inline int rtl_pthread_spin_init(rtl_spinlock_t *lock, int shared)
{
	lock->reserved = 0;
	return shared == PTHREAD_PROCESS_SHARED ? ENOTSUP : 0;
}

static inline int rtl_pthread_spin_destroy(rtl_spinlock_t *lock)
{
	(void)lock;
	return 0;
}

static inline int rtl_pthread_spin_lock(rtl_spinlock_t *lock)
{
	(void)lock;
	rtl_begin_critical_np();
	return 0;
}

static inline int rtl_pthread_spin_unlock(rtl_spinlock_t *lock)
{
	(void)lock;
	rtl_end_critical_np(0);
	return 0;
}

#ifndef RTL_NO_POSIX_NAMES
#define pthread_spinlock_t rtl_spinlock_t
#define pthread_spin_init rtl_pthread_spin_init
#define pthread_spin_destroy rtl_pthread_spin_destroy
#define pthread_spin_lock rtl_pthread_spin_lock
#define pthread_spin_unlock rtl_pthread_spin_unlock
#endif

#endif
