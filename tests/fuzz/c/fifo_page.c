/* SPDX-License-Identifier: MIT */
/*
 * The shared memory of a FIFO, into which a process of the same user writes what the fuzzer
 * chooses: the ends stay within their memory, and each call returns.
 *
 * Each end has its side alone. The mutex of a side that is shared is the C library's, and a process
 * that may write there may keep it locked.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <punctual.h>

#include "numbers.h"

#define CAPACITY 4096u
#define HEADER 4096u
#define FIFO "page"

/* Longer than all that is put or got; what lies behind the end of a get must stay. */
static unsigned char buffer[2 * CAPACITY];

static unsigned char *map_page(void)
{
	const char *folder = getenv("PUNCTUAL_SHM_DIR");
	char path[128];
	void *page;
	int fd;

	MUST(folder);
	snprintf(path, sizeof(path), "%s/fifo/%s/memory", folder, FIFO);
	fd = open(path, O_RDWR | O_CLOEXEC);
	MUST(fd >= 0);
	page = mmap(NULL, HEADER + CAPACITY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(page != MAP_FAILED);
	close(fd);
	return page;
}

/* One word of the header, or of a message's. */
static void scribble(struct stream *in, unsigned char *page)
{
	/* The positions and requests of both sides are in the first KiB. */
	static const uint32_t ranges[] = { 1024, HEADER + CAPACITY - 8 };
	uint32_t range = ranges[stream_byte(in) % 2];
	uint32_t high = stream_byte(in);
	uint32_t at = (high * 256 + stream_byte(in)) % range & ~3u;
	uint64_t value = stream_number(in);

	/* Also: near what was there. */
	if (stream_byte(in) % 2) {
		uint64_t old;

		memcpy(&old, page + at, sizeof(old));
		value = old + (int8_t)stream_byte(in) * (stream_byte(in) % 2 ? 8 : 1);
	}
	memcpy(page + at, &value, sizeof(value));
}

static size_t length_of(struct stream *in)
{
	uint64_t length = stream_number(in);

	return length <= CAPACITY || length > UINT32_MAX ? length : length % CAPACITY;
}

static void get(struct stream *in, struct punctual_fifo_reader *reader)
{
	size_t length = length_of(in) % (CAPACITY + 1);
	ssize_t got;

	memset(buffer, 0x5a, sizeof(buffer));
	got = stream_byte(in) % 2 ? punctual_fifo_get(reader, buffer, length) :
				   punctual_fifo_get_some(reader, buffer, length);
	MUST(got <= (ssize_t)length);
	for (size_t i = got < 0 ? 0 : length; i < sizeof(buffer); i++)
		MUST(buffer[i] == 0x5a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream in = { data, size };
	struct punctual_fifo_attr attr = PUNCTUAL_FIFO_ATTR_INIT;
	struct punctual_fifo_writer *writer = NULL;
	struct punctual_fifo_reader *reader = NULL;
	struct punctual_fifo *fifo;
	unsigned char *page;

	attr.capacity = CAPACITY;
	attr.flags = stream_byte(&in) % 2 ? PUNCTUAL_FIFO_MESSAGES : 0;
	MUST(punctual_fifo_create(FIFO, &attr, &fifo) == 0);
	page = map_page();
	for (int calls = 0; in.left > 0 && calls < 64; calls++) {
		struct punctual_fifo_info info = PUNCTUAL_FIFO_INFO_INIT;
		uint64_t soon = punctual_clock() + 1000;
		struct punctual_fifo *again;

		switch (stream_byte(&in) % 12) {
		case 0:
		case 1:
		case 2:
			scribble(&in, page);
			break;
		case 3:
			if (!writer)
				punctual_fifo_writer_open(fifo, 0, &writer);
			break;
		case 4:
			if (!reader)
				punctual_fifo_reader_open(fifo, 0, &reader);
			break;
		case 5:
			punctual_fifo_put(writer, buffer, length_of(&in));
			break;
		case 6:
			punctual_fifo_put_until(writer, buffer, length_of(&in), soon);
			break;
		case 7:
		case 8:
			get(&in, reader);
			break;
		case 9:
			MUST(punctual_fifo_get_until(reader, buffer, CAPACITY, soon) <= CAPACITY);
			punctual_fifo_reader_ready(reader);
			punctual_fifo_reader_fd(reader);
			break;
		case 10:
			punctual_fifo_writer_ready(writer, length_of(&in));
			punctual_fifo_writer_fd(writer);
			punctual_fifo_info(fifo, &info);
			break;
		case 11:
			/* A program that comes later. */
			if (punctual_fifo_open(FIFO, &again) == 0)
				MUST(punctual_fifo_close(again) == 0);
			if (stream_byte(&in) % 2) {
				punctual_fifo_writer_close(writer);
				writer = NULL;
			} else {
				punctual_fifo_reader_close(reader);
				reader = NULL;
			}
			break;
		}
	}
	punctual_fifo_writer_close(writer);
	punctual_fifo_reader_close(reader);
	MUST(punctual_fifo_close(fifo) == 0);
	munmap(page, HEADER + CAPACITY);
	return 0;
}
