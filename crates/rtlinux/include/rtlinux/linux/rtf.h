/* SPDX-License-Identifier: MIT */
/* For programs that include it: FIFOs of RT-Linux 1. */
#ifndef RTL_LINUX_RTF_H
#define RTL_LINUX_RTF_H

#include "../rtl_fifo.h"

#endif
