/* SPDX-License-Identifier: MIT */
/* Buffers of mbuff, clocks, and critical sections. */
#include "rtlinux.h"

static const char *const buffers[] = { "a", "b/c", "", NULL, "0123456789012345678901234567890123" };

const char *buffer_name(uint32_t slot)
{
	return buffers[slot % (sizeof(buffers) / sizeof(*buffers))];
}

void call_buffer_or_clock(struct stream *in)
{
	uint32_t slot = stream_below(in, SLOTS);
	const char *name = buffer_name(slot);
	struct timespec time = { stream_below(in, 2), (long)stream_number(in) };
	long long until;
	int size = number(in);

	switch (stream_below(in, 10)) {
	case 0:
		if (size < 1 << 20 && !held.buffer[slot])
			held.buffer[slot] = mbuff_alloc(name, size);
		break;
	case 1:
		if (!held.buffer[slot])
			held.buffer[slot] = mbuff_mmap(name, size);
		break;
	case 2:
		mbuff_free(name, held.buffer[slot]);
		held.buffer[slot] = NULL;
		break;
	case 3:
		count_or_negative_errno(mbuff_size(name));
		break;
	case 4:
		zero_or_errno(rtl_setclockmode(number(in), number(in), (hrtime_t)stream_number(in)));
		break;
	case 5:
		clock_gethrtime(number(in));
		rtl_cpu_exists(number(in));
		break;
	case 6:
		/* This thread is woken. */
		zero_or_errno(clock_nanosleep(number(in), stream_below(in, 3), &time, &time));
		break;
	case 7:
		rtl_end_critical_np(stream_below(in, 2) ? rtl_begin_critical_np() : 0);
		break;
	case 8:
		until = soon(in);
		rtl_delay(until < 0 ? (long)until : (long)(until - gethrtime()));
		break;
	case 9:
		zero_or_errno(pthread_wait_np());
		break;
	}
}
