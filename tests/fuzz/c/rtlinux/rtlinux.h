/* SPDX-License-Identifier: MIT */
/* What the calls of librtlinux have: what is held, and numbers for it. */
#pragma once

#include <errno.h>
#include <limits.h>
#include <stdbool.h>

#include <mbuff.h>
#include <rtl.h>
#include <rtl_fifo.h>
#include <rtlinux.h>

#include "../numbers.h"

#define SLOTS 6

extern struct held {
	pthread_t thread[SLOTS];
	pthread_attr_t attr[SLOTS];
	RT_TASK task[SLOTS];
	int pid[SLOTS];
	bool is_started[SLOTS];
	void *buffer[SLOTS];
} held;

/* The name of the buffer in a slot. */
const char *buffer_name(uint32_t slot);

/* 0, or an error number. */
static inline void zero_or_errno(int result)
{
	MUST(result >= 0 && result < 4096);
}

/* 0 or more, or a negative error number. */
static inline int count_or_negative_errno(int result)
{
	MUST(result > -4096);
	return result;
}

/* 0 or more, or -1 with an error number. */
static inline int count_or_errno(int result)
{
	MUST(result >= 0 || (result == -1 && errno > 0 && errno < 4096));
	return result;
}

static inline int number(struct stream *in)
{
	static const int bounds[] = { 0,    1,       -1,      2,       7,      63, 64,
		4096, 1000000, 1000001, INT_MIN, INT_MAX };
	uint32_t choice = stream_below(in, sizeof(bounds) / sizeof(*bounds) + 2);

	return choice < sizeof(bounds) / sizeof(*bounds) ? bounds[choice] : (int)stream_number(in);
}

/* A time that may be waited for. */
static inline long long soon(struct stream *in)
{
	long long time = (long long)stream_number(in), latest = gethrtime() + 1000000;

	return time < latest ? time : latest;
}

/* One call of its kind. */
void call_thread(struct stream *in);
void call_attr(struct stream *in);
void call_task(struct stream *in);
void call_fifo(struct stream *in);
void call_buffer_or_clock(struct stream *in);
void call_paper(struct stream *in);
void call_program(struct stream *in);

/* Counts the numbers of threads that the machine has used: leaks.c. To be called now and then. */
void count_thread_numbers(void);
