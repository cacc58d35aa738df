/* SPDX-License-Identifier: MIT */
/* Shared memory by name. */
#include "check.h"

#include <limits.h>
#include <mbuff.h>
#include <sys/wait.h>

#define NAME "hello/shm"

static void other_program(const char *self, const char *role)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execl(self, self, role, NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static int role(const char *name)
{
	char *buffer = (char *)mbuff_attach(NAME, 1024);

	CHECK(buffer);
	if (strcmp(name, "writes") == 0) {
		CHECK(strcmp(buffer, "ask") == 0);
		strcpy(buffer, "answer");
		/* It ends without giving the buffer up. */
		return 0;
	}
	CHECK(buffer[0] == 0);
	mbuff_detach(NAME, buffer);
	return 0;
}

int main(int argc, char **argv)
{
	char *first, *second;
	int size;

	if (argc > 1)
		return role(argv[1]);
	CHECK(!mbuff_mmap(NAME, 1));
	RETURNS(mbuff_size(NAME), -EINVAL);
	first = (char *)mbuff_alloc(NAME, 1024);
	CHECK(first && first[0] == 0 && first[1023] == 0);
	size = mbuff_size(NAME);
	CHECK(size >= 1024);
	second = (char *)mbuff_alloc(NAME, size);
	CHECK(second == first && mbuff_mmap(NAME, 0) == first);
	CHECK(!mbuff_alloc(NAME, size + 1) && !mbuff_mmap(NAME, INT_MAX));
	CHECK(!mbuff_alloc("other", 0) && !mbuff_alloc("other", -1) && !mbuff_mmap("other", -1));
	CHECK(!mbuff_alloc("", 1) && !mbuff_alloc(NULL, 1) && !mbuff_mmap(NULL, 1));
	RETURNS(mbuff_size(NULL), -EINVAL);
	strcpy(first, "ask");
	other_program(argv[0], "writes");
	CHECK(strcmp(second, "answer") == 0);
	/* As often as it was allocated. */
	mbuff_free(NAME, first);
	mbuff_free(NAME, second + 1);
	mbuff_free("other", first);
	mbuff_free(NULL, first);
	mbuff_unmap(NAME, second);
	CHECK(strcmp(first, "answer") == 0);
	mbuff_free(NAME, first);
	RETURNS(mbuff_size(NAME), -EINVAL);
	mbuff_free(NAME, first);
	/* No program has it: the next one begins with zeros. */
	other_program(argv[0], "finds zeros");
	return 0;
}
