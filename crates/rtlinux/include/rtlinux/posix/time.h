/* SPDX-License-Identifier: MIT */
/* For programs that include it: time. */
#ifndef RTL_POSIX_TIME_H
#define RTL_POSIX_TIME_H

#include "../rtl_time.h"

#endif
