/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Limits of the self-test's dispatchers, in both builds. */
#pragma once

#define PD_ARENA_JOBS 4096U
#define PD_ARENA_TASKS 4096U
#define PD_ARENA_RESERVATIONS 1024U
#define PD_ARENA_GROUPS 64U
#define PD_ARENA_NODES 64U
#define PD_ARENA_TIMERS 1024U
#define PD_ARENA_WINDOWS 4096U
#define PD_ARENA_EVENTS 4096U
#define PD_ARENA_RECORDS 65536U
#ifdef __bpf__
#define PD_RUNNERS_UP 1
#endif

#include "../limits.h"
