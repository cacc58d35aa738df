/* SPDX-License-Identifier: MIT */
/* For programs that include it: the time of RT-Linux 1. */
#ifndef RT_TIME_H
#define RT_TIME_H

#include "rtl_sched.h"

#endif
