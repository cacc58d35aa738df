/* SPDX-License-Identifier: MIT */
/* For programs that include it: RT-Linux 2. */
#ifndef RTL_LINUX_RTL_H
#define RTL_LINUX_RTL_H

#include "../rtl.h"

#endif
