/* SPDX-License-Identifier: MIT */
/*
 * The calls of librtlinux, in any order, with right and wrong arguments: each returns what its
 * header says, whatever number it gets.
 *
 * Threads are ordinary ones here: tasks of a dispatcher are what `calls` is for. A thread wakes all
 * others all the time, so that no wait is without an end.
 */
#include "rtlinux/rtlinux.h"

struct held held;

static void *wakes_all(void *argument)
{
	pthread_t main_thread = *(pthread_t *)argument;

	for (;;) {
		struct timespec time = { 0, 500000 };

		nanosleep(&time, NULL);
		pthread_wakeup_np(main_thread);
	}
	return NULL;
}

static void release_all(void)
{
	for (int n = 0; n < SLOTS; n++) {
		if (held.thread[n])
			pthread_delete_np(held.thread[n]);
		rt_task_delete(&held.task[n]);
		if (held.pid[n] > 0)
			RTkill(held.pid[n]);
		if (held.buffer[n])
			mbuff_free(buffer_name((uint32_t)n), held.buffer[n]);
		rtf_destroy((unsigned int)n);
	}
	memset(&held, 0, sizeof(held));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static pthread_t self, waker;
	static RTime none;

	(void)argc;
	(void)argv;
	/* scripts/fuzz sets it: named objects of others stay out of it. */
	MUST(getenv("PUNCTUAL_SHM_DIR"));
	setenv("PUNCTUAL_RTLINUX_HOST", "none", 1);
	/* This thread takes part, so that it can be woken. */
	self = pthread_self();
	MUST(RTset_params(NULL, &none, 1) == 0);
	MUST(pthread_create(&waker, NULL, wakes_all, &self) == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const calls[])(struct stream *) = { call_thread, call_attr, call_fifo,
							  call_fifo, call_paper, call_task,
							  call_buffer_or_clock };
	struct stream in = { data, size };

	count_thread_numbers();
	for (int n = 0; in.left > 0 && n < 64; n++) {
		uint32_t choice = stream_below(&in, 64);

		/* Seldom: a process takes some ms. */
		if (choice == 63)
			call_program(&in);
		else
			calls[choice % (sizeof(calls) / sizeof(*calls))](&in);
	}
	release_all();
	return 0;
}
