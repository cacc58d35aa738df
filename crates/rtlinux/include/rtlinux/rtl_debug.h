/* SPDX-License-Identifier: MIT */
/* For programs that include it: messages. */
#ifndef RTL_DEBUG_H
#define RTL_DEBUG_H

#include "rtl_printf.h"

#define conpr(text) ((void)rtl_printf("%s", (text)))
#define conprn(number) ((void)rtl_printf("%lx ", (unsigned long)(number)))

#endif
