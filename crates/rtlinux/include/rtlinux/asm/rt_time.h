/* SPDX-License-Identifier: MIT */
/* For programs that include it: the time of RT-Linux 1. */
#ifndef RTL_ASM_RT_TIME_H
#define RTL_ASM_RT_TIME_H

#include "../rtl.h"

#endif
