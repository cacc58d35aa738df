/* SPDX-License-Identifier: MIT */
/* For programs that include it: the CPUs and critical sections of rtl.h. */
#ifndef RTL_CORE_H
#define RTL_CORE_H

#include "rtl.h"

#endif
