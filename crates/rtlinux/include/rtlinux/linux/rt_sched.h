/* SPDX-License-Identifier: MIT */
/* For programs that include it: tasks of RT-Linux 1. */
#ifndef RTL_LINUX_RT_SCHED_H
#define RTL_LINUX_RT_SCHED_H

#include "../rtl.h"

#endif
