/* SPDX-License-Identifier: MIT */
/* Output goes to standard error, and is cut. */
#include "check.h"

#include <rtl.h>

int main(void)
{
	RETURNS(rtl_printf("%d of %s\n", 3, "four"), 10);
	RETURNS(printk(KERN_INFO "log\n"), 4);
	RETURNS(rtl_printf("%0600d", 0), 600);
	return 0;
}
