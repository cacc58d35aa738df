/* SPDX-License-Identifier: MIT */
/*
 * Ends the check for leaks before the machine's numbers of threads repeat. The sanitizer finds a
 * thread's stack by its number: it takes an ended thread that had the same one, and what the later
 * thread alone refers to looks like a leak.
 */
#include <fcntl.h>
#include <sanitizer/lsan_interface.h>
#include <stdlib.h>
#include <unistd.h>

#include "rtlinux.h"

static unsigned long used, limit;

/* The last word of a file of /proc. */
static unsigned long last_number(const char *path)
{
	char text[128] = "", *word;
	int file = open(path, O_RDONLY | O_CLOEXEC);

	MUST(file >= 0 && read(file, text, sizeof(text) - 1) > 0);
	close(file);
	word = strrchr(text, ' ');
	return strtoul(word ? word : text, NULL, 10);
}

void count_thread_numbers(void)
{
	static unsigned long before;
	/* The latest number is the last one in it. */
	unsigned long now = last_number("/proc/loadavg");

	if (!limit) {
		limit = last_number("/proc/sys/kernel/pid_max");
		before = now;
	}
	used += now >= before ? now - before : now + limit - before;
	before = now;
}

int __lsan_is_turned_off(void)
{
	return used > limit / 2;
}
