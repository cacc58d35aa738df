/* SPDX-License-Identifier: MIT */
/* Prints the version of the library. */
#include <punctual.h>

#include <stdio.h>

int main(void)
{
	return fputs(punctual_version(), stdout) < 0;
}
