/* SPDX-License-Identifier: MIT */
/* For programs that include it: POSIX's semaphores. */
#ifndef RTL_SEMA_H
#define RTL_SEMA_H

#include <semaphore.h>

#endif
