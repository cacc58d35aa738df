/* SPDX-License-Identifier: MIT */
/* The FIFOs of RT-Linux 2 and 3: a put is all or nothing, a get is what there is. */
#include "check.h"

#include <limits.h>
#include <pthread.h>
#include <rtl_fifo.h>
#include <sched.h>

#define FIFO 3
#define MESSAGES 1000
#define WRITERS 3

static void *writes(void *argument)
{
	for (unsigned int n = 0; n < MESSAGES; n++) {
		unsigned int message[2] = { (unsigned int)(size_t)argument, n };
		int put;

		while ((put = rtf_put(FIFO, message, sizeof(message))) == -ENOSPC)
			sched_yield();
		RETURNS(put, sizeof(message));
	}
	return NULL;
}

/* Threads of a program put into one FIFO: nothing is lost, divided or out of order. */
static void has_many_writers(void)
{
	unsigned int next[WRITERS] = { 0 }, message[2];
	long long end = clock_ns() + LIVENESS;
	pthread_t threads[WRITERS];

	RETURNS(rtf_create(FIFO, 100), 0);
	for (size_t n = 0; n < WRITERS; n++)
		CHECK(pthread_create(&threads[n], NULL, writes, (void *)n) == 0);
	for (int n = 0; n < MESSAGES * WRITERS;) {
		int got = rtf_get(FIFO, message, sizeof(message));

		CHECK(got == 0 || got == (int)sizeof(message));
		CHECK(clock_ns() < end);
		if (!got) {
			sched_yield();
			continue;
		}
		CHECK(message[0] < WRITERS && message[1] == next[message[0]]++);
		n++;
	}
	for (size_t n = 0; n < WRITERS; n++)
		CHECK(pthread_join(threads[n], NULL) == 0);
	RETURNS(rtf_isempty(FIFO), 1);
	RETURNS(rtf_destroy(FIFO), 0);
}

int main(void)
{
	char buffer[16];

	/* As programs do at their beginning. */
	RETURNS(rtf_destroy(FIFO), -EINVAL);
	RETURNS(rtf_create(FIFO, 10), 0);
	RETURNS(rtf_create(FIFO, 10), -EBUSY);
	RETURNS(rtf_isempty(FIFO), 1);
	RETURNS(rtf_get(FIFO, buffer, sizeof(buffer)), 0);
	RETURNS(rtf_put(FIFO, "12345678", 8), 8);
	RETURNS(rtf_put(FIFO, "901", 3), -ENOSPC);
	RETURNS(rtf_put(FIFO, "90", 2), 2);
	RETURNS(rtf_put(FIFO, buffer, 11), -ENOSPC);
	RETURNS(rtf_isempty(FIFO), 0);
	RETURNS(rtf_get(FIFO, buffer, 3), 3);
	CHECK(memcmp(buffer, "123", 3) == 0);
	RETURNS(rtf_get(FIFO, buffer, sizeof(buffer)), 7);
	CHECK(memcmp(buffer, "4567890", 7) == 0);
	RETURNS(rtf_put(FIFO, "gone", 4), 4);
	RETURNS(rtf_flush(FIFO), 0);
	RETURNS(rtf_get(FIFO, buffer, sizeof(buffer)), 0);
	RETURNS(rtf_put(FIFO, NULL, 0), 0);
	RETURNS(rtf_put(FIFO, NULL, 1), -EINVAL);
	RETURNS(rtf_get(FIFO, NULL, 1), -EINVAL);
	RETURNS(rtf_put(FIFO, buffer, INT_MIN), -EINVAL);
	RETURNS(rtf_get(FIFO, buffer, -1), -EINVAL);
	RETURNS(rtf_destroy(FIFO), 0);
	RETURNS(rtf_put(FIFO, buffer, 1), -EINVAL);
	RETURNS(rtf_get(FIFO, buffer, 1), -EINVAL);
	RETURNS(rtf_flush(FIFO), -EINVAL);
	RETURNS(rtf_isempty(FIFO), -EINVAL);
	RETURNS(rtf_create(FIFO, 0), -EINVAL);
	RETURNS(rtf_create(RTF_NO, 10), -ENODEV);
	RETURNS(rtf_destroy(RTF_NO), -ENODEV);
	RETURNS(rtf_put(RTF_NO, buffer, 1), -ENODEV);
	RETURNS(rtf_get(RTF_NO, buffer, 1), -ENODEV);
	RETURNS(rtf_flush(UINT_MAX), -ENODEV);
	RETURNS(rtf_isempty(UINT_MAX), -ENODEV);
	has_many_writers();
	return 0;
}
