/* SPDX-License-Identifier: MIT */
/* For programs that include it: messages. */
#ifndef RTL_LINUX_CONS_H
#define RTL_LINUX_CONS_H

#include "../rtl_printf.h"

#endif
