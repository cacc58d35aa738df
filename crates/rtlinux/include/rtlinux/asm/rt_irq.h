/* SPDX-License-Identifier: MIT */
/* For programs that include it: tasks of RT-Linux 1. */
#ifndef RTL_ASM_RT_IRQ_H
#define RTL_ASM_RT_IRQ_H

#include "../rtl.h"

#endif
