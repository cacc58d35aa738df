/* SPDX-License-Identifier: MIT */
/* For programs that include it: threads. */
#ifndef RTL_POSIX_PTHREAD_H
#define RTL_POSIX_PTHREAD_H

#include "../rtl_sched.h"

#endif
