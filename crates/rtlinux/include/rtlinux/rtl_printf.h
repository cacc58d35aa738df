/* SPDX-License-Identifier: MIT */
/*
 * Output, on standard error.
 */
#ifndef RTL_PRINTF_H
#define RTL_PRINTF_H

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define RTL_PRINTF_LIKE __attribute__((format(printf, 1, 2)))
#else
#define RTL_PRINTF_LIKE
#endif

/*
 * Writes at most 511 characters of it at once, and returns how many it has. It neither allocates
 * nor locks, but the terminal or pipe may make the thread wait.
 * Test: output.c
 */
RTL_PRINTF_LIKE int rtl_printf(const char *format, ...);

/*
 * The same.
 * Test: output.c
 */
RTL_PRINTF_LIKE int printk(const char *format, ...);

/* Levels of messages, which are not written. */
#ifndef KERN_INFO
#define KERN_EMERG ""
#define KERN_ALERT ""
#define KERN_CRIT ""
#define KERN_ERR ""
#define KERN_WARNING ""
#define KERN_NOTICE ""
#define KERN_INFO ""
#define KERN_DEBUG ""
#endif

#ifdef __cplusplus
}
#endif

#endif
