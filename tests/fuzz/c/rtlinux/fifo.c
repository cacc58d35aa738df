/* SPDX-License-Identifier: MIT */
/* FIFOs, and their handlers. */
#include "rtlinux.h"

static unsigned int fifo(struct stream *in)
{
	return stream_byte(in) % 8 ? stream_below(in, 3) : (unsigned int)number(in);
}

static int handler(unsigned int number)
{
	char buffer[16];

	MUST(number < RTF_NO);
	rtf_get(number, buffer, sizeof(buffer));
	return 0;
}

void call_fifo(struct stream *in)
{
	static char buffer[1 << 16];
	void *memory = stream_byte(in) % 16 ? buffer : NULL;
	unsigned int fifo_number = fifo(in);
	int (*function)(unsigned int) = stream_byte(in) % 8 ? handler : NULL;
	int count = number(in), result;

	/* What the buffer has, or what is refused. */
	if (count > (int)sizeof(buffer))
		count %= (int)sizeof(buffer);
	memset(buffer, 0x5a, 64);
	switch (stream_below(in, 14)) {
	case 0:
		count_or_errno(RTfifo_create(fifo_number, count));
		break;
	case 1:
		count_or_errno(RTfifo_destroy(fifo_number));
		break;
	case 2:
		result = count_or_errno(RTfifo_put(fifo_number, (const char *)memory, count));
		MUST(result == -1 || result == count);
		break;
	case 3:
		result = count_or_errno(RTfifo_get(fifo_number, (char *)memory, count));
		MUST(result == -1 || result == count);
		/* All or nothing, and nothing behind it. */
		for (int n = result < 0 ? 0 : result; memory && n < 64; n++)
			MUST(buffer[n] == 0x5a);
		break;
	case 4:
	case 5:
		count_or_negative_errno(rtf_create(fifo_number, count));
		break;
	case 6:
		count_or_negative_errno(rtf_destroy(fifo_number));
		break;
	case 7:
	case 8:
		result = count_or_negative_errno(rtf_put(fifo_number, memory, count));
		MUST(result < 0 || result == count);
		break;
	case 9:
		result = count_or_negative_errno(rtf_get(fifo_number, memory, count));
		MUST(result < 0 || result <= count);
		break;
	case 10:
		count_or_negative_errno(rtf_flush(fifo_number));
		break;
	case 11:
		count_or_negative_errno(rtf_isempty(fifo_number));
		break;
	case 12:
		count_or_negative_errno(rtf_create_handler(fifo_number, function));
		break;
	case 13:
		/* It calls itself as long as there is something. */
		count_or_negative_errno(rtf_create_rt_handler(fifo_number, function));
		break;
	}
}
