/* SPDX-License-Identifier: MIT */
/* A wait in which a thread may end: no function of Rust can be unwound by pthread_exit. */
#include <pthread.h>
#include <stddef.h>

/* periods.rs */
int punctual__rtai_wait_period(int *ends);

int rt_task_wait_period(void)
{
	int ends = 0, result = punctual__rtai_wait_period(&ends);

	if (ends)
		pthread_exit(NULL);
	return result;
}
