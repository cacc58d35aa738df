/* SPDX-License-Identifier: MIT */
/* The paper's FIFOs: all or nothing, and exactly as many bytes as they were made for. */
#include "check.h"

#include <limits.h>
#include <rtlinux.h>
#include <sys/wait.h>

#define FIFO 5
#define SIZE 10

static void takes_all_or_nothing(void)
{
	char buffer[64];

	RETURNS(RTfifo_create(FIFO, SIZE), 0);
	FAILS(RTfifo_create(FIFO, SIZE), EBUSY);
	FAILS(RTfifo_get(FIFO, buffer, 1), EAGAIN);
	for (int round = 0; round < 3000; round++) {
		RETURNS(RTfifo_put(FIFO, "1234567", 7), 7);
		FAILS(RTfifo_put(FIFO, "8901", 4), EAGAIN);
		/* Nothing of what did not fit is there. */
		FAILS(RTfifo_get(FIFO, buffer, 8), EAGAIN);
		RETURNS(RTfifo_put(FIFO, "890", 3), 3);
		FAILS(RTfifo_put(FIFO, "x", 1), EAGAIN);
		memset(buffer, '-', sizeof(buffer));
		RETURNS(RTfifo_get(FIFO, buffer, 4), 4);
		CHECK(memcmp(buffer, "1234-", 5) == 0);
		FAILS(RTfifo_get(FIFO, buffer, 7), EAGAIN);
		CHECK(memcmp(buffer, "1234-", 5) == 0);
		RETURNS(RTfifo_get(FIFO, buffer, 6), 6);
		CHECK(memcmp(buffer, "567890-", 7) == 0);
	}
	FAILS(RTfifo_put(FIFO, buffer, SIZE + 1), EMSGSIZE);
	FAILS(RTfifo_get(FIFO, buffer, SIZE + 1), EMSGSIZE);
	RETURNS(RTfifo_put(FIFO, NULL, 0), 0);
	RETURNS(RTfifo_get(FIFO, NULL, 0), 0);
	RETURNS(RTfifo_destroy(FIFO), 0);
}

static void refuses_what_is_wrong(void)
{
	const unsigned int numbers[] = { RT_MAX_FIFO, 1000000, UINT_MAX };
	const int counts[] = { -1, INT_MIN };
	char buffer[8] = "";

	for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n++) {
		FAILS(RTfifo_create(numbers[n], SIZE), ENODEV);
		FAILS(RTfifo_destroy(numbers[n]), ENODEV);
		FAILS(RTfifo_put(numbers[n], buffer, 1), ENODEV);
		FAILS(RTfifo_get(numbers[n], buffer, 1), ENODEV);
	}
	for (unsigned int n = 0; n < RT_MAX_FIFO; n++) {
		FAILS(RTfifo_destroy(n), EINVAL);
		FAILS(RTfifo_put(n, buffer, 1), EINVAL);
		FAILS(RTfifo_get(n, buffer, 1), EINVAL);
	}
	FAILS(RTfifo_create(0, 0), EINVAL);
	FAILS(RTfifo_create(0, -1), EINVAL);
	FAILS(RTfifo_create(0, INT_MAX), EINVAL);
	RETURNS(RTfifo_create(RT_MAX_FIFO - 1, 1), 0);
	for (size_t n = 0; n < sizeof(counts) / sizeof(*counts); n++) {
		FAILS(RTfifo_put(RT_MAX_FIFO - 1, buffer, counts[n]), EINVAL);
		FAILS(RTfifo_get(RT_MAX_FIFO - 1, buffer, counts[n]), EINVAL);
	}
	FAILS(RTfifo_put(RT_MAX_FIFO - 1, NULL, 1), EINVAL);
	FAILS(RTfifo_get(RT_MAX_FIFO - 1, NULL, 1), EINVAL);
	RETURNS(RTfifo_put(RT_MAX_FIFO - 1, "x", 1), 1);
	RETURNS(RTfifo_destroy(RT_MAX_FIFO - 1), 0);
}

/* Programs agree on the numbers, and on nothing else. */
static void is_global(const char *program)
{
	char buffer[8];
	int status;
	pid_t pid;

	RETURNS(RTfifo_create(FIFO, SIZE), 0);
	RETURNS(RTfifo_put(FIFO, "ask", 3), 3);
	pid = fork();
	if (pid == 0) {
		execl(program, program, "other", NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	/* The other one has answered, and then destroyed the FIFO and made another. */
	FAILS(RTfifo_get(FIFO, buffer, 1), EINVAL);
	FAILS(RTfifo_put(FIFO, "x", 1), EINVAL);
	FAILS(RTfifo_destroy(FIFO), EINVAL);
	RETURNS(RTfifo_create(FIFO, SIZE), 0);
	RETURNS(RTfifo_put(FIFO, "y", 1), 1);
	RETURNS(RTfifo_destroy(FIFO), 0);
}

static void other_program(void)
{
	char buffer[8];

	FAILS(RTfifo_create(FIFO, SIZE), EBUSY);
	RETURNS(RTfifo_get(FIFO, buffer, 3), 3);
	CHECK(memcmp(buffer, "ask", 3) == 0);
	RETURNS(RTfifo_destroy(FIFO), 0);
	/* It is there until this program ends. */
	RETURNS(RTfifo_create(FIFO, 4), 0);
	RETURNS(RTfifo_put(FIFO, "abcd", 4), 4);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		other_program();
		return 0;
	}
	takes_all_or_nothing();
	refuses_what_is_wrong();
	is_global(argv[0]);
	return 0;
}
