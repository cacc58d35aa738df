/* SPDX-License-Identifier: MIT */
/*
 * FIFOs of RTAI, by number. They are those of Punctual: `punctual fifo cat 3` reads number 3, and
 * `punctual fifo device 3` has it as /dev/rtf3.
 */
#ifndef RTAI_FIFOS_H
#define RTAI_FIFOS_H

#include "rtai_lxrt.h"
#include "rtai_types.h"

#define MAX_FIFOS 64

RTAI_BEGIN_DECLS

/*
 * Makes the FIFO of this number, 0 to 63, with room for at least `size` bytes, or opens it. It is
 * there as long as a program has it open. Returns 0; -ENODEV: the number is out of range; -EINVAL:
 * the size is; -ENOMEM; -EBUSY: another program has a side of it alone.
 * Test: fifos.c
 */
int rtf_create(unsigned int fifo, int size);

/*
 * Undoes one rtf_create of this program, and returns how many are left. -EINVAL: there is none.
 * Test: fifos.c
 */
int rtf_destroy(unsigned int fifo);

/*
 * Puts as many bytes as there is room for, without a wait, and returns how many; -EINVAL: no
 * program has such a FIFO; -ENODEV: the number is out of range.
 * Test: fifos.c
 */
int rtf_put(unsigned int fifo, const void *buf, int count);

/*
 * The same with all bytes, or none.
 * Test: fifos.c
 */
int rtf_put_if(unsigned int fifo, const void *buf, int count);

/*
 * Puts all bytes in place of the oldest ones, of more than there is ever room for the last ones,
 * and returns 0; where others put meanwhile, how many are left.
 * Test: fifos.c
 */
int rtf_ovrwr_put(unsigned int fifo, const void *buf, int count);

/*
 * Gets as many bytes as there are, at most `count`, without a wait, and returns how many; errors
 * as of rtf_put.
 * Test: fifos.c
 */
int rtf_get(unsigned int fifo, void *buf, int count);

/*
 * The same with all bytes, or none.
 * Test: fifos.c
 */
int rtf_get_if(unsigned int fifo, void *buf, int count);

/*
 * How many bytes are in it.
 * Test: fifos.c
 */
int rtf_get_avbs(unsigned int fifo);

/*
 * For how many bytes there is room.
 * Test: fifos.c
 */
int rtf_get_frbs(unsigned int fifo);

/*
 * Drops all bytes.
 * Test: fifos.c
 */
int rtf_reset_lxrt(unsigned int fifo);

RTAI_END_DECLS

#endif
