/* SPDX-License-Identifier: MIT */
/* For programs that include it: what RT-Linux was configured with. */
#ifndef RTL_CONF_H
#define RTL_CONF_H

#define CONFIG_RTL_FP_SUPPORT 1

#endif
