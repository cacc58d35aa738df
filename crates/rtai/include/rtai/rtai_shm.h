/* SPDX-License-Identifier: MIT */
/*
 * Memory that programs of RTAI share by name.
 */
#ifndef RTAI_SHM_H
#define RTAI_SHM_H

#include "rtai_lxrt.h"
#include "rtai_nam2num.h"
#include "rtai_types.h"

/* Ways to allocate memory in RTAI's kernel. */
#define USE_VMALLOC 0
#define USE_GFP_KERNEL 1
#define USE_GFP_ATOMIC 2
#define USE_GFP_DMA 3

RTAI_BEGIN_DECLS

/*
 * The memory of this name, which all programs of this user share: at least `size` bytes, zeros at
 * first; whatever its size, if another program has made it; with a size of 0 it is not made.
 * `suprt` has no effect. It is there as long as a program has it. NULL: there is none, or no room.
 * Test: shared_memory.c
 */
void *rt_shm_alloc(unsigned long name, int size, int suprt);
#define rtai_malloc(name, size) rt_shm_alloc(name, size, 0)

/*
 * Undoes one rt_shm_alloc of this program, the last one unmaps the memory; returns its size in
 * bytes; 0: this program does not have it.
 * Test: shared_memory.c
 */
int rt_shm_free(unsigned long name);
#define rtai_free(name, adr) rt_shm_free(name)

RTAI_END_DECLS

#endif
