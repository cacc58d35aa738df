/* SPDX-License-Identifier: MIT */
/* Critical sections of this program, in place of those without interrupts. */
#include <errno.h>
#include <pthread.h>

unsigned long rtl_begin_critical_np(void);
void rtl_end_critical_np(unsigned long state);

static pthread_mutex_t section;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void begin(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	/* A thread that ends in the section has left it. */
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&section, &attr);
	pthread_mutexattr_destroy(&attr);
}

unsigned long rtl_begin_critical_np(void)
{
	pthread_once(&once, begin);
	if (pthread_mutex_lock(&section) == EOWNERDEAD)
		pthread_mutex_consistent(&section);
	return 1;
}

void rtl_end_critical_np(unsigned long state)
{
	(void)state;
	pthread_once(&once, begin);
	/* Refused where the thread is in no section. */
	pthread_mutex_unlock(&section);
}
