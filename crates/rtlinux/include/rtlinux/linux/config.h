/* SPDX-License-Identifier: MIT */
/* For programs that include it: the configuration. */
#ifndef RTL_LINUX_CONFIG_H
#define RTL_LINUX_CONFIG_H

#include "../rtl_conf.h"

#endif
