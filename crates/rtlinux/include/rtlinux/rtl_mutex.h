/* SPDX-License-Identifier: MIT */
/* For programs that include it: POSIX's mutexes. */
#ifndef RTL_MUTEX_H
#define RTL_MUTEX_H

#include "rtl_sched.h"

#endif
