/* SPDX-License-Identifier: MIT */
/* rtlinux-run: see rtl_main in rtl_module.h. */
#include <rtl_module.h>

int main(int argc, char **argv)
{
	return rtl_main(argc, argv);
}
