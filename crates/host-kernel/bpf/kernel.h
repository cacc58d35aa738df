/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What of the kernel's interface to all BPF programs the BPF side needs: written by hand, so that
 * nothing is generated. The numbers are of the kernel's user-space interface, and constant. */
#pragma once

#include <stdbool.h>

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;

/* Error numbers (asm-generic) beside the dispatcher's. */
#define EPERM 1
#define ESRCH 3
#define E2BIG 7
#define ENOMEM 12
#define EXDEV 18
#define EOPNOTSUPP 95

#define CLOCK_MONOTONIC 1
#define SIGXCPU 24

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_MAP_TYPE_ARENA = 33,
	BPF_F_NO_PREALLOC = 1 << 0,
	BPF_F_MMAPABLE = 1 << 10,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_F_TIMER_ABS = 1,
	BPF_F_TIMER_CPU_PIN = 2,
};

/* The kernel knows it by name and size. */
struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));

#include <bpf/bpf_helpers.h>
