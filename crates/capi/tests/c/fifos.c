/* SPDX-License-Identifier: MIT */
/* FIFOs between threads and processes, and what they refuse. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>

static void bytes(void)
{
	struct punctual_fifo_attr attr = PUNCTUAL_FIFO_ATTR_INIT;
	struct punctual_fifo_info info = PUNCTUAL_FIFO_INFO_INIT;
	struct punctual_fifo_writer *writer;
	struct punctual_fifo_reader *reader;
	struct punctual_fifo *fifo;
	char got[8] = "", large[5000] = "";

	attr.capacity = 1;
	CHECK(punctual_fifo_create(NULL, &attr, &fifo) == 0);
	CHECK(punctual_fifo_writer_open(fifo, 0, &writer) == 0);
	CHECK(punctual_fifo_reader_open(fifo, 0, &reader) == 0);
	FAILS(punctual_fifo_get(reader, got, 1), EAGAIN);
	FAILS(punctual_fifo_get_some(reader, got, 1), EAGAIN);
	CHECK(punctual_fifo_reader_ready(reader) == 0);
	CHECK(punctual_fifo_put(writer, "abcdef", 6) == 0);
	CHECK(punctual_fifo_reader_ready(reader) == 1);
	CHECK(punctual_fifo_get(reader, got, 4) == 4 && memcmp(got, "abcd", 4) == 0);
	FAILS(punctual_fifo_get(reader, got, 4), EAGAIN);
	CHECK(punctual_fifo_info(fifo, &info) == 0);
	CHECK(info.capacity == 4096 && info.used == 2 && info.flags == 0 && info.in_use == 0);
	CHECK(info.sole_writer == getpid() && info.sole_reader == getpid());
	CHECK(punctual_fifo_get_some(reader, got, 4) == 2 && memcmp(got, "ef", 2) == 0);
	CHECK(punctual_fifo_put(writer, NULL, 0) == 0);

	FAILS(punctual_fifo_put(writer, large, sizeof(large)), EMSGSIZE);
	FAILS(punctual_fifo_put(writer, large, SIZE_MAX), EMSGSIZE);
	FAILS(punctual_fifo_put_until(writer, large, sizeof(large), UINT64_MAX), EMSGSIZE);
	FAILS(punctual_fifo_get(reader, large, SIZE_MAX), EMSGSIZE);
	FAILS(punctual_fifo_writer_ready(writer, 4097), EMSGSIZE);
	FAILS(punctual_fifo_put(writer, NULL, 1), EFAULT);
	FAILS(punctual_fifo_get(reader, NULL, 1), EFAULT);
	CHECK(punctual_fifo_put(writer, large, 4096) == 0);
	CHECK(punctual_fifo_writer_ready(writer, 1) == 0);
	FAILS(punctual_fifo_put(writer, large, 1), EAGAIN);
	FAILS(punctual_fifo_put_until(writer, large, 1, punctual_clock()), ETIMEDOUT);

	/* Ends outlive the handle of the FIFO. */
	CHECK(punctual_fifo_close(fifo) == 0);
	CHECK(punctual_fifo_get_some_until(reader, large, 5000, UINT64_MAX) == 4096);
	FAILS(punctual_fifo_get_until(reader, got, 1, punctual_clock() + MS), ETIMEDOUT);
	CHECK(punctual_fifo_writer_close(writer) == 0 && punctual_fifo_reader_close(reader) == 0);
}

/* Ends, handles and names that are not, or not any more. */
static void bad_handles(void)
{
	struct punctual_fifo_info info = PUNCTUAL_FIFO_INFO_INIT;
	struct punctual_fifo_writer *writer, *second = NULL;
	struct punctual_fifo_reader *reader;
	struct punctual_fifo *fifo;
	char byte = 0;

	CHECK(punctual_fifo_create(NULL, NULL, &fifo) == 0);
	CHECK(punctual_fifo_writer_open(fifo, 0, &writer) == 0);
	CHECK(punctual_fifo_writer_close(writer) == 0);

	int local;
	void *bad[] = { NULL, &local, (void *)1, (void *)-1, fifo, writer };

	CHECK(punctual_fifo_writer_open(fifo, 0, &second) == 0 && second != writer);
	CHECK(punctual_fifo_reader_open(fifo, 0, &reader) == 0);
	for (size_t n = 0; n < sizeof(bad) / sizeof(*bad); n++) {
		FAILS(punctual_fifo_put(bad[n], &byte, 1), EBADF);
		FAILS(punctual_fifo_put_until(bad[n], &byte, 1, 0), EBADF);
		FAILS(punctual_fifo_get(bad[n], &byte, 1), EBADF);
		FAILS(punctual_fifo_get_until(bad[n], &byte, 1, 0), EBADF);
		FAILS(punctual_fifo_get_some(bad[n], &byte, 1), EBADF);
		FAILS(punctual_fifo_get_some_until(bad[n], &byte, 1, 0), EBADF);
		FAILS(punctual_fifo_writer_ready(bad[n], 1), EBADF);
		FAILS(punctual_fifo_reader_ready(bad[n]), EBADF);
		FAILS(punctual_fifo_writer_fd(bad[n]), EBADF);
		FAILS(punctual_fifo_reader_fd(bad[n]), EBADF);
		FAILS(punctual_fifo_writer_close(bad[n]), EBADF);
		FAILS(punctual_fifo_reader_close(bad[n]), EBADF);
		if (bad[n] == fifo)
			continue;
		FAILS(punctual_fifo_info(bad[n], &info), EBADF);
		FAILS(punctual_fifo_writer_open(bad[n], 0, &second), EBADF);
		FAILS(punctual_fifo_close(bad[n]), EBADF);
	}
	/* A reader is no writer. */
	FAILS(punctual_fifo_put((void *)reader, &byte, 1), EBADF);
	FAILS(punctual_fifo_get((void *)second, &byte, 1), EBADF);
	CHECK(punctual_fifo_put(second, &byte, 1) == 0);

	FAILS(punctual_fifo_writer_open(fifo, 0, &writer), EBUSY);
	FAILS(punctual_fifo_writer_open(fifo, PUNCTUAL_FIFO_SHARED, &writer), EBUSY);
	FAILS(punctual_fifo_writer_open(fifo, 2, &writer), EINVAL);
	FAILS(punctual_fifo_reader_open(fifo, 0, NULL), EFAULT);
	FAILS(punctual_fifo_info(fifo, NULL), EFAULT);
	CHECK(punctual_fifo_writer_close(second) == 0);
	CHECK(punctual_fifo_writer_open(fifo, PUNCTUAL_FIFO_SHARED, &writer) == 0);
	CHECK(punctual_fifo_writer_open(fifo, PUNCTUAL_FIFO_SHARED, &second) == 0);
	CHECK(punctual_fifo_put(writer, &byte, 1) == 0 && punctual_fifo_put(second, &byte, 1) == 0);
	CHECK(punctual_fifo_writer_close(writer) == 0 && punctual_fifo_writer_close(second) == 0);
	CHECK(punctual_fifo_reader_close(reader) == 0 && punctual_fifo_close(fifo) == 0);
}

static void names(void)
{
	struct punctual_fifo_attr attr = PUNCTUAL_FIFO_ATTR_INIT;
	struct punctual_fifo *fifo = NULL, *second = NULL;

	FAILS(punctual_fifo_open("none", &fifo), ENOENT);
	FAILS(punctual_fifo_remove("none"), ENOENT);
	FAILS(punctual_fifo_open(NULL, &fifo), EFAULT);
	FAILS(punctual_fifo_remove(NULL), EFAULT);
	FAILS(punctual_fifo_open("none", NULL), EFAULT);
	FAILS(punctual_fifo_create("../x", NULL, &fifo), EINVAL);
	FAILS(punctual_fifo_create("\xff", NULL, &fifo), EINVAL);
	attr.capacity = SIZE_MAX;
	FAILS(punctual_fifo_create("x", &attr, &fifo), EINVAL);
	attr.capacity = 0;
	attr.flags = 4;
	FAILS(punctual_fifo_create("x", &attr, &fifo), EINVAL);
	attr.flags = PUNCTUAL_FIFO_PERSISTENT;
	FAILS(punctual_fifo_create(NULL, &attr, &fifo), EINVAL);
	CHECK(fifo == NULL);

	CHECK(punctual_fifo_create("taken", &attr, &fifo) == 0);
	FAILS(punctual_fifo_create("taken", NULL, &second), EEXIST);
	CHECK(punctual_fifo_close(fifo) == 0);
	/* It is persistent. */
	CHECK(punctual_fifo_open("taken", &fifo) == 0 && punctual_fifo_remove("taken") == 0);
	FAILS(punctual_fifo_open("taken", &second), ENOENT);
	CHECK(punctual_fifo_close(fifo) == 0);
}

static void *waits_for_a_message(void *reader)
{
	static char got[16];
	ssize_t length;

	/* Whether it has the end is what the other thread finds out, which takes it for a moment. */
	while ((length = punctual_fifo_get_until(reader, got, sizeof(got), UINT64_MAX)) == -EBUSY)
		;
	CHECK(length == 5);
	return got;
}

/* A thread that waits has the end: others are refused, and nothing is closed below it. */
static void an_end_is_of_one_thread_at_a_time(void)
{
	struct punctual_fifo_attr attr = PUNCTUAL_FIFO_ATTR_INIT;
	uint64_t until = punctual_clock() + LIVENESS;
	struct punctual_fifo_writer *writer;
	struct punctual_fifo_reader *reader;
	struct punctual_fifo *fifo;
	pthread_t thread;
	void *got;

	attr.flags = PUNCTUAL_FIFO_MESSAGES;
	CHECK(punctual_fifo_create(NULL, &attr, &fifo) == 0);
	CHECK(punctual_fifo_writer_open(fifo, 0, &writer) == 0);
	CHECK(punctual_fifo_reader_open(fifo, 0, &reader) == 0);
	CHECK(pthread_create(&thread, NULL, waits_for_a_message, reader) == 0);
	while (punctual_fifo_reader_ready(reader) != -EBUSY)
		CHECK(punctual_clock() < until);
	FAILS(punctual_fifo_reader_close(reader), EBUSY);
	CHECK(punctual_fifo_put(writer, "hello", 5) == 0);
	CHECK(pthread_join(thread, &got) == 0 && memcmp(got, "hello", 5) == 0);
	CHECK(punctual_fifo_put(writer, "longer", 6) == 0);

	char little[4];

	FAILS(punctual_fifo_get(reader, little, sizeof(little)), EMSGSIZE);
	CHECK(punctual_fifo_get_some(reader, got, 16) == 6);
	CHECK(punctual_fifo_reader_close(reader) == 0 && punctual_fifo_writer_close(writer) == 0);
	CHECK(punctual_fifo_close(fifo) == 0);
}

static void descriptors(void)
{
	struct punctual_fifo_writer *writer;
	struct punctual_fifo_reader *reader;
	struct punctual_fifo *fifo;
	struct pollfd polled[2];
	char byte;

	CHECK(punctual_fifo_create(NULL, NULL, &fifo) == 0);
	CHECK(punctual_fifo_writer_open(fifo, 0, &writer) == 0);
	CHECK(punctual_fifo_reader_open(fifo, 0, &reader) == 0);
	polled[0] = (struct pollfd){ punctual_fifo_reader_fd(reader), POLLIN, 0 };
	polled[1] = (struct pollfd){ punctual_fifo_writer_fd(writer), POLLIN, 0 };
	CHECK(polled[0].fd >= 0 && polled[1].fd >= 0);
	FAILS(punctual_fifo_get(reader, &byte, 1), EAGAIN);
	CHECK(poll(polled, 1, 0) == 0);
	CHECK(poll(polled, 2, -1) == 1 && polled[1].revents == POLLIN);
	CHECK(punctual_fifo_put(writer, "x", 1) == 0);
	CHECK(poll(polled, 1, -1) == 1);
	CHECK(punctual_fifo_get(reader, &byte, 1) == 1 && byte == 'x');
	CHECK(punctual_fifo_reader_close(reader) == 0 && punctual_fifo_writer_close(writer) == 0);
	CHECK(punctual_fifo_close(fifo) == 0);
}

/* Another program finds it; a child of fork has no ends. */
static void processes(const char *self)
{
	struct punctual_fifo_attr attr = PUNCTUAL_FIFO_ATTR_INIT;
	struct punctual_fifo_reader *reader;
	struct punctual_fifo *fifo, *other;
	char got[16];
	int status;
	pid_t child;

	attr.flags = PUNCTUAL_FIFO_MESSAGES;
	CHECK(punctual_fifo_create("7", &attr, &fifo) == 0);
	CHECK(punctual_fifo_reader_open(fifo, 0, &reader) == 0);
	child = fork();
	if (child == 0) {
		FAILS(punctual_fifo_get(reader, got, sizeof(got)), EBADF);
		FAILS(punctual_fifo_close(fifo), EBADF);
		FAILS(punctual_fifo_open("7", &other), EPERM);
		execl(self, self, "put", (char *)NULL);
		_exit(127);
	}
	CHECK(punctual_fifo_get_until(reader, got, sizeof(got), UINT64_MAX) == 5);
	CHECK(memcmp(got, "other", 5) == 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(punctual_fifo_reader_close(reader) == 0 && punctual_fifo_close(fifo) == 0);
	FAILS(punctual_fifo_open("7", &fifo), ENOENT);
}

static void puts_from_another_process(void)
{
	struct punctual_fifo_writer *writer;
	struct punctual_fifo *fifo;

	CHECK(punctual_fifo_open("7", &fifo) == 0);
	CHECK(punctual_fifo_writer_open(fifo, 0, &writer) == 0);
	CHECK(punctual_fifo_put(writer, "other", 5) == 0);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		puts_from_another_process();
		return 0;
	}
	bytes();
	bad_handles();
	names();
	an_end_is_of_one_thread_at_a_time();
	descriptors();
	processes(argv[0]);
	return 0;
}
