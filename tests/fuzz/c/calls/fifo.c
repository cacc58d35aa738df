/* SPDX-License-Identifier: MIT */
/* Calls on FIFOs and their ends. */
#include "calls.h"

static unsigned char buffer[1 << 16];

void call_fifo(struct stream *in)
{
	static const char *const names[] = { NULL, "a", "0", "..", "a/b", "" };
	struct punctual_fifo_attr attr = PUNCTUAL_FIFO_ATTR_INIT;
	struct punctual_fifo_info info = PUNCTUAL_FIFO_INFO_INIT;
	const char *name = names[stream_below(in, 6)];

	switch (stream_byte(in) % 7) {
	case 0:
		attr.capacity = stream_number(in);
		/* Memory that the machine may have, and that is then locked. */
		if (attr.capacity <= 1ull << 30)
			attr.capacity %= 1 << 16;
		attr.flags = stream_byte(in) % 4 ? stream_below(in, 4) : (uint32_t)stream_number(in);
		attr.size = stream_byte(in) % 8 ? sizeof(attr) : stream_below(in, 64);
		checked(punctual_fifo_create(name, &attr, room(in, held.fifo)));
		break;
	case 1:
		checked(punctual_fifo_open(name, room(in, held.fifo)));
		break;
	case 2:
		checked(punctual_fifo_remove(name));
		break;
	case 3:
		checked(punctual_fifo_close(handle(in, held.fifo)));
		break;
	case 4:
		info.size = stream_byte(in) % 8 ? sizeof(info) : stream_below(in, sizeof(info));
		checked(punctual_fifo_info(handle(in, held.fifo), &info));
		break;
	case 5:
		checked(punctual_fifo_writer_open(handle(in, held.fifo), stream_below(in, 3),
						  room(in, held.writer)));
		break;
	case 6:
		checked(punctual_fifo_reader_open(handle(in, held.fifo), stream_below(in, 3),
						  room(in, held.reader)));
		break;
	}
}

void call_end(struct stream *in)
{
	void *writer = handle(in, held.writer), *reader = handle(in, held.reader);
	void *memory = stream_byte(in) % 16 ? buffer : NULL;
	/* What the buffer has, or more than any FIFO here. */
	size_t length = stream_number(in);
	uint64_t until = soon(in);

	if (length <= 1ull << 30)
		length %= sizeof(buffer) + 1;
	switch (stream_byte(in) % 8) {
	case 0:
		checked(punctual_fifo_put(writer, memory, length));
		break;
	case 1:
		checked(punctual_fifo_put_until(writer, memory, length, until));
		break;
	case 2:
		checked(punctual_fifo_get(reader, memory, length));
		break;
	case 3:
		checked(punctual_fifo_get_until(reader, memory, length, until));
		break;
	case 4:
		checked(punctual_fifo_get_some(reader, memory, length % (sizeof(buffer) + 1)));
		break;
	case 5:
		checked(punctual_fifo_writer_ready(writer, length));
		checked(punctual_fifo_writer_fd(writer));
		break;
	case 6:
		checked(punctual_fifo_reader_ready(reader));
		checked(punctual_fifo_reader_fd(reader));
		break;
	case 7:
		if (stream_byte(in) % 2)
			checked(punctual_fifo_writer_close(writer));
		else
			checked(punctual_fifo_reader_close(reader));
		break;
	}
}
