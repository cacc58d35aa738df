/* SPDX-License-Identifier: MIT */
/*
 * Names of objects: six characters, as a number.
 */
#ifndef RTAI_NAM2NUM_H
#define RTAI_NAM2NUM_H

#include "rtai_types.h"

/* Numbers from here on are of no name. */
#define MAX_NAM2NUM 4096000003UL

RTAI_BEGIN_DECLS

/*
 * The number of a name, of which the first six characters count: letters of either case, digits,
 * '_', '@' and '.'; any other is as '$'. No text has 0xFFFFFFFF.
 * Test: names.c
 */
unsigned long nam2num(const char *name);

/*
 * Writes the name of a number, in upper case, with its end: at most seven characters. "|null|" is
 * that of a number without a name. Zeros at the beginning of a name are lost.
 * Test: names.c
 */
void num2nam(unsigned long num, char *name);

RTAI_END_DECLS

#endif
