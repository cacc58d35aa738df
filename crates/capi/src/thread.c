/* SPDX-License-Identifier: MIT */
/*
 * Threads of tasks. Their first function is C, because pthread_exit and pthread_cancel unwind it,
 * and no frame of Rust may be unwound by them. The end of the thread then ends the task, by the
 * destructor of the thread's own storage.
 */
#include <pthread.h>
#include <stdbool.h>

/* thread.rs */
bool punctual__begin_thread(void *start, void *(**function)(void *), void **argument);
int punctual__create_thread(pthread_t *thread, size_t stack, void *start);

static void *first_function(void *start)
{
	void *(*function)(void *);
	void *argument;

	if (!punctual__begin_thread(start, &function, &argument))
		return NULL;
	return function(argument);
}

/* A stack of 0: as large as usual. */
int punctual__create_thread(pthread_t *thread, size_t stack, void *start)
{
	pthread_attr_t attr;
	int refused = pthread_attr_init(&attr);

	if (refused)
		return refused;
	if (stack)
		refused = pthread_attr_setstacksize(&attr, stack);
	if (!refused)
		refused = pthread_create(thread, &attr, first_function, start);
	pthread_attr_destroy(&attr);
	return refused;
}
