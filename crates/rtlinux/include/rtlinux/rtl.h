/* SPDX-License-Identifier: MIT */
/*
 * What programs of RT-Linux 2 and 3 include first.
 */
#ifndef RTL_H
#define RTL_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rtl_module.h"
#include "rtl_printf.h"
#include "rtl_sched.h"
#include "rtl_sync.h"
#include "rtl_time.h"

#endif
