/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What of the kernel's own types the BPF side needs: written by hand, so that one object serves
 * every kernel and nothing is generated. */
#ifndef PUNCTUAL_KERNEL_H
#define PUNCTUAL_KERNEL_H

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

enum {
	BPF_MAP_TYPE_ARENA = 33,
	BPF_F_MMAPABLE = 1 << 10,
};

#include <bpf/bpf_helpers.h>

#endif
