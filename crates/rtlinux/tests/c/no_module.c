/* SPDX-License-Identifier: MIT */
/* A shared object without init_module. */
int some_function(void);

int some_function(void)
{
	return 3;
}
