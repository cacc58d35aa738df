/* SPDX-License-Identifier: MIT */
/*
 * FIFOs of RT-Linux 2 and 3: between threads, and with other programs, which have them by name
 * (docs/fifo.md) or as the devices /dev/rtfN.
 */
#ifndef RTL_FIFO_H
#define RTL_FIFO_H

#include <errno.h>

#ifdef __cplusplus
extern "C" {
#endif

/* FIFOs have the numbers 0 to this, less one. */
#define RTF_NO 64

/*
 * Makes a FIFO, in which there are at most `size` bytes. Returns 0. -ENODEV: there is no such
 * number. -EBUSY: there is this FIFO. -EINVAL: the size is not 1 to 1 GiB. -ENOMEM: there is not so
 * much memory.
 * Test: rt_fifos.c
 */
int rtf_create(unsigned int fifo, int size);

/*
 * Destroys a FIFO, whichever program has made it; its handlers are not called any more. Returns 0.
 * -ENODEV: there is no such number. -EINVAL: there is no such FIFO.
 * Test: rt_fifos.c
 */
int rtf_destroy(unsigned int fifo);

/*
 * Puts `count` bytes into a FIFO, or none. Returns `count`. -ENOSPC: there is no room for so many.
 * -ENODEV: there is no such number. -EINVAL: there is no such FIFO, `count` is negative, or
 * `buffer` NULL. -EBADMSG: another program damaged it.
 * Test: rt_fifos.c
 */
int rtf_put(unsigned int fifo, const void *buffer, int count);

/*
 * Takes what there is out of a FIFO, but at most `count` bytes, and returns how many: 0, if there
 * are none. Errors: as of rtf_put, but for -ENOSPC.
 * Test: rt_fifos.c
 */
int rtf_get(unsigned int fifo, void *buffer, int count);

/*
 * Drops what is in a FIFO. Returns 0. Errors: as of rtf_get.
 * Test: rt_fifos.c
 */
int rtf_flush(unsigned int fifo);

/*
 * 1, if there is nothing in a FIFO, else 0. Errors: as of rtf_get.
 * Test: rt_fifos.c
 */
int rtf_isempty(unsigned int fifo);

/*
 * Has `handler` called with the number of the FIFO when another program has put or got something,
 * in an ordinary thread. Several accesses may be one call. Returns 0. -EINVAL: there is no such
 * FIFO, it is one of messages, or `handler` is NULL. -ENOMEM: there are too many threads.
 * Test: handlers.c
 */
int rtf_create_handler(unsigned int fifo, int (*handler)(unsigned int fifo));

/*
 * Has `handler` called with the number of the FIFO by each thread of this program that has put or
 * got something by rtf_put or rtf_get. Returns 0. -EINVAL: there is no such FIFO, or `handler` is
 * NULL.
 * Test: handlers.c
 */
int rtf_create_rt_handler(unsigned int fifo, int (*handler)(unsigned int fifo));

#ifdef __cplusplus
}
#endif

#endif
