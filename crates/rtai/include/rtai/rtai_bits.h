/* SPDX-License-Identifier: MIT */
/*
 * Bits of RTAI, which tasks wait for, in the order in which they come.
 *
 * Calls with what are no bits, or with an unknown test or change, return RTE_OBJINV (BITS_ERR). A
 * call that waits returns RTE_OBJREM when the bits are deleted, and RTE_UNBLKD when its wait is
 * ended.
 */
#ifndef RTAI_BITS_H
#define RTAI_BITS_H

#include "rtai_lxrt.h"
#include "rtai_sched.h"
#include "rtai_types.h"

typedef struct rt_bits_struct {
	int opaque;
} BITS;

#define BITS_ERR RTE_OBJINV
#define BITS_TIMOUT RTE_TIMOUT

/* Conditions: of one mask, then of two, the first one in the lower 32 bits. */
#define ALL_SET 0
#define ANY_SET 1
#define ALL_CLR 2
#define ANY_CLR 3
#define ALL_SET_AND_ANY_SET 4
#define ALL_SET_AND_ALL_CLR 5
#define ALL_SET_AND_ANY_CLR 6
#define ANY_SET_AND_ALL_CLR 7
#define ANY_SET_AND_ANY_CLR 8
#define ALL_CLR_AND_ANY_CLR 9
#define ALL_SET_OR_ANY_SET 10
#define ALL_SET_OR_ALL_CLR 11
#define ALL_SET_OR_ANY_CLR 12
#define ANY_SET_OR_ALL_CLR 13
#define ANY_SET_OR_ANY_CLR 14
#define ALL_CLR_OR_ANY_CLR 15

/* Changes: of one mask, of two, the bits to be set in the lower 32, and none. */
#define SET_BITS 0
#define CLR_BITS 1
#define SET_CLR_BITS 2
#define NOP_BITS 3

RTAI_BEGIN_DECLS

/*
 * Makes bits of this process, with which they end; those of `mask` are set. A name of 0 stands for
 * one that no object has. NULL: the name is in use, or there is no room.
 * Test: bits.c
 */
BITS *rt_bits_init(unsigned long name, unsigned long mask);

/*
 * Deletes bits: tasks that wait return RTE_OBJREM. -EFAULT: they are none.
 * Test: bits.c
 */
int rt_bits_delete(BITS *bits);

/*
 * The bits that are set.
 * Test: bits.c
 */
unsigned long rt_get_bits(BITS *bits);

/*
 * Sets these bits and no others, wakes all tasks that wait, and returns the bits before.
 * Test: bits.c
 */
unsigned long rt_bits_reset(BITS *bits, unsigned long mask);

/*
 * Changes bits by `setfun`, wakes all tasks whose condition holds then, and returns the bits.
 * Test: bits.c
 */
unsigned long rt_bits_signal(BITS *bits, int setfun, unsigned long masks);

/*
 * Waits until the condition `testfun` holds of the bits, then changes them by `exitfun`, and
 * writes what they were before, if `resulting_mask` is not NULL. Returns 0.
 * Test: bits.c
 */
int rt_bits_wait(BITS *bits, int testfun, unsigned long testmasks, int exitfun,
		 unsigned long exitmasks, unsigned long *resulting_mask);

/*
 * The same without a wait: 1 if the condition holds, else 0, and nothing is changed.
 * Test: bits.c
 */
int rt_bits_wait_if(BITS *bits, int testfun, unsigned long testmasks, int exitfun,
		    unsigned long exitmasks, unsigned long *resulting_mask);

/*
 * As rt_bits_wait until a time at most: RTE_TIMOUT then.
 * Test: bits.c
 */
int rt_bits_wait_until(BITS *bits, int testfun, unsigned long testmasks, int exitfun,
		       unsigned long exitmasks, RTIME time,
		       unsigned long *resulting_mask);

/*
 * The same for some counts.
 * Test: bits.c
 */
int rt_bits_wait_timed(BITS *bits, int testfun, unsigned long testmasks, int exitfun,
		       unsigned long exitmasks, RTIME delay,
		       unsigned long *resulting_mask);

RTAI_END_DECLS

#endif
