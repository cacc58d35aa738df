/* SPDX-License-Identifier: MIT */
/*
 * Shared memory by name, between programs of a user.
 */
#ifndef MBUFF_H
#define MBUFF_H

#ifdef __cplusplus
extern "C" {
#endif

/* Characters of a name that count. */
#define MBUFF_NAME_LEN 32

/*
 * Maps the buffer of this name, which is made where it is not there, with zeros. The first program
 * says how large it is; it is there as long as a program has it. A program gets the same address
 * each time. NULL: the buffer has less than `size` bytes, there is no memory, or the name has more
 * than 13 characters that are neither letters nor digits.
 * Test: buffers.c
 */
void *mbuff_alloc(const char *name, int size);
#define mbuff_attach(name, size) mbuff_alloc((name), (size))

/*
 * Gives up a buffer, which must have been allocated as often.
 * Test: buffers.c
 */
void mbuff_free(const char *name, void *buffer);
#define mbuff_detach(name, buffer) mbuff_free((name), (buffer))
#define mbuff_unmap(name, buffer) mbuff_free((name), (buffer))

/*
 * As mbuff_alloc, if the buffer is there, else NULL.
 * Test: buffers.c
 */
void *mbuff_mmap(const char *name, int size);

/*
 * How many bytes a buffer has: whole pages. -EINVAL: there is none.
 * Test: buffers.c
 */
int mbuff_size(const char *name);

#ifdef __cplusplus
}
#endif

#endif
