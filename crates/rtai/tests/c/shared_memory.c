/* SPDX-License-Identifier: MIT */
/* Memory by name. */
#include "check.h"

#include <rtai_shm.h>
#include <sys/wait.h>

int main(void)
{
	unsigned long name = nam2num("MEM");
	volatile int *memory, *again;
	pid_t pid;

	CHECK(rt_shm_alloc(name, 0, USE_VMALLOC) == NULL && rt_shm_free(name) == 0);
	CHECK(rt_shm_alloc(name, -1, USE_VMALLOC) == NULL);
	pid = fork();
	if (pid == 0) {
		/* It has it first, or second. */
		memory = rt_shm_alloc(name, 10000, USE_VMALLOC);
		if (!memory)
			_exit(1);
		memory[2000] = 7;
		while (!memory[0])
			sleep_ms(1);
		_exit(memory[2000] == 8 ? 0 : 2);
	}
	UNTIL((memory = rt_shm_alloc(name, 0, USE_VMALLOC)));
	UNTIL(memory[2000] == 7);
	again = rtai_malloc(name, 100);
	CHECK(again == memory);
	memory[2000] = 8;
	memory[0] = 1;
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(rt_shm_free(name) >= 10000);
	CHECK(memory[2000] == 8);
	CHECK(rtai_free(name, memory) >= 10000);
	RETURNS(rt_shm_free(name), 0);
	/* No program has it any more. */
	CHECK(rt_shm_alloc(name, 0, 0) == NULL);
	memory = rt_shm_alloc(name, 100, 0);
	CHECK(memory && memory[0] == 0);
	return 0;
}
