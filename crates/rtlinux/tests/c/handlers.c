/* SPDX-License-Identifier: MIT */
/* Handlers are called for the accesses of other programs, or for those of this one. */
#include "check.h"

#include <pthread.h>
#include <rtl_fifo.h>
#include <sys/wait.h>

#define COMMANDS 1
#define RESULTS 2

static const char *self;
static volatile int calls, rt_calls, bytes;
static pthread_t main_thread;

static void other_program(const char *role)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execl(self, self, role, NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static int handle(unsigned int fifo)
{
	char buffer[4];
	int got;

	CHECK(fifo == COMMANDS || fifo == RESULTS);
	CHECK(!pthread_equal(pthread_self(), main_thread));
	while (fifo == COMMANDS && (got = rtf_get(fifo, buffer, sizeof(buffer))) > 0)
		bytes += got;
	calls++;
	return 0;
}

static int handle_own(unsigned int fifo)
{
	CHECK(fifo == COMMANDS && pthread_equal(pthread_self(), main_thread));
	rt_calls++;
	return 0;
}

static int destroys(unsigned int fifo)
{
	RETURNS(rtf_destroy(fifo), 0);
	calls++;
	return 0;
}

static void is_called_for_other_programs(void)
{
	char buffer[8];

	RETURNS(rtf_create(COMMANDS, 100), 0);
	RETURNS(rtf_create(RESULTS, 100), 0);
	RETURNS(rtf_create_handler(COMMANDS, handle), 0);
	RETURNS(rtf_create_handler(RESULTS, handle), 0);
	for (int n = 0; n < 1000; n++) {
		RETURNS(rtf_put(RESULTS, "own", 3), 3);
		RETURNS(rtf_get(RESULTS, buffer, 3), 3);
	}
	CHECK(calls == 0);
	other_program("puts");
	/* What follows would be in the way of a handler that has not returned. */
	UNTIL(calls == 1);
	CHECK(bytes == 10);
	/* What another program gets is an access, too. */
	RETURNS(rtf_put(RESULTS, "answer", 6), 6);
	other_program("gets");
	UNTIL(calls == 2);
	/* Again, and after the handler was replaced. */
	RETURNS(rtf_create_handler(COMMANDS, handle), 0);
	other_program("puts");
	UNTIL(calls == 3);
	CHECK(bytes == 20);
}

static void is_called_for_this_program(void)
{
	char buffer[8];
	int before;

	RETURNS(rtf_create_rt_handler(COMMANDS, handle_own), 0);
	RETURNS(rtf_put(COMMANDS, "own", 3), 3);
	RETURNS(rt_calls, 1);
	RETURNS(rtf_get(COMMANDS, buffer, 8), 3);
	RETURNS(rt_calls, 2);
	/* What moves nothing is no access. */
	RETURNS(rtf_get(COMMANDS, buffer, 8), 0);
	RETURNS(rtf_put(COMMANDS, buffer, 101), -ENOSPC);
	RETURNS(rt_calls, 2);
	before = calls;
	RETURNS(rtf_destroy(COMMANDS), 0);
	/* Neither is called any more. */
	RETURNS(rtf_create(COMMANDS, 100), 0);
	other_program("puts");
	RETURNS(rtf_put(COMMANDS, "own", 3), 3);
	CHECK(rt_calls == 2 && calls == before);
	RETURNS(rtf_destroy(COMMANDS), 0);
}

static void may_destroy_its_own_fifo(void)
{
	int before = calls;
	char buffer[8];

	RETURNS(rtf_create(COMMANDS, 100), 0);
	RETURNS(rtf_create_handler(COMMANDS, destroys), 0);
	other_program("puts");
	UNTIL(calls > before);
	RETURNS(rtf_get(COMMANDS, buffer, 1), -EINVAL);
	/* Nor does another program that destroys one leave a handler. */
	RETURNS(rtf_create(COMMANDS, 100), 0);
	RETURNS(rtf_create_handler(COMMANDS, handle), 0);
	other_program("destroys");
	RETURNS(rtf_create_handler(COMMANDS, handle), -EINVAL);
}

int main(int argc, char **argv)
{
	char buffer[8];

	self = argv[0];
	main_thread = pthread_self();
	if (argc > 1 && strcmp(argv[1], "puts") == 0) {
		RETURNS(rtf_put(COMMANDS, "0123456789", 10), 10);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "gets") == 0) {
		RETURNS(rtf_get(RESULTS, buffer, 8), 6);
		return 0;
	}
	if (argc > 1) {
		RETURNS(rtf_destroy(COMMANDS), 0);
		return 0;
	}
	RETURNS(rtf_create_handler(COMMANDS, handle), -EINVAL);
	RETURNS(rtf_create_rt_handler(COMMANDS, handle_own), -EINVAL);
	RETURNS(rtf_create_handler(RTF_NO, handle), -EINVAL);
	is_called_for_other_programs();
	is_called_for_this_program();
	may_destroy_its_own_fifo();
	RETURNS(rtf_create(COMMANDS, 100), 0);
	RETURNS(rtf_create_handler(COMMANDS, NULL), -EINVAL);
	RETURNS(rtf_create_rt_handler(COMMANDS, NULL), -EINVAL);
	return 0;
}
