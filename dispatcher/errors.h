/* SPDX-License-Identifier: MIT */
/* The kernel's error numbers (asm-generic), for builds without its headers or a C library. */
#pragma once

#define ENOENT 2
#define EBUSY 16
#define EINVAL 22
#define ENOSPC 28
#define ELOOP 40
