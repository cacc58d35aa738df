/* SPDX-License-Identifier: MIT */
/* For programs that include it: the signals of rtl_sched.h. */
#ifndef RTL_SIGNAL_H
#define RTL_SIGNAL_H

#include "rtl_sched.h"

#endif
