/* SPDX-License-Identifier: MIT */
/* What grows the stack below its caller, which no function of Rust can. */
#include <alloca.h>
#include <sys/mman.h>

/* Not more than a page on any machine: each is touched. */
#define STEP 4096

void rt_grow_and_lock_stack(int incr)
{
	if (incr > 0) {
		volatile char *stack = (volatile char *)alloca((unsigned int)incr);

		for (int n = 0; n < incr; n += STEP)
			stack[n] = 0;
		stack[incr - 1] = 0;
	}
	/* Without the right to lock memory, pages stay there until they are needed elsewhere. */
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		return;
}
