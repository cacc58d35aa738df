/* SPDX-License-Identifier: MIT */
/* Output, which tests/programs.rs compares. */
#include "check.h"

#include <rtai_lxrt.h>

int main(void)
{
	RETURNS(rt_printk("%d of %s\n", 3, "four"), 10);
	RETURNS(rtai_print_to_screen("%s", ""), 0);
	RETURNS(rtai_print_to_screen("%s\n", "screen"), 7);
	/* What is longer is cut. */
	RETURNS(rt_printk("%0300d", 1), 300);
	return 0;
}
