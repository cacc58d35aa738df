/* SPDX-License-Identifier: MIT */
/* A module that needs what no program in user space has. */
#include <rtl.h>

int rtl_request_irq(unsigned int irq, unsigned int (*handler)(unsigned int, void *));
int no_such_function(void);
void cleanup_nothing(void) __attribute__((weak));

int init_module(void)
{
	if (cleanup_nothing)
		cleanup_nothing();
	return rtl_request_irq(7, NULL) + no_such_function();
}
