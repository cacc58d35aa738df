/* SPDX-License-Identifier: MIT */
/* What programs.c and the programs that it loads share. */
#ifndef LOADED_H
#define LOADED_H

#include <stdbool.h>

/* FIFOs */
#define FACTS 1
#define TIMES 2
#define PIDS 3

#define PERIODS 20

struct facts {
	int policy;
	long locked_kib;
	bool memory_is_fixed, memory_is_bounded, stack_is_fixed;
};

#endif
