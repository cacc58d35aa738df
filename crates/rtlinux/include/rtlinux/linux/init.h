/* SPDX-License-Identifier: MIT */
/* For programs that include it: the entry of a module. */
#ifndef RTL_LINUX_INIT_H
#define RTL_LINUX_INIT_H

#include "../rtl_module.h"

#endif
