/* SPDX-License-Identifier: MIT */
/*
 * What kernel modules say of themselves. rtlinux-run calls init_module and cleanup_module, and
 * gives parameters their values.
 */
#ifndef RTL_MODULE_H
#define RTL_MODULE_H

#define RTL_NOTHING struct rtl_nothing

#define MODULE_LICENSE(text) RTL_NOTHING
#define MODULE_AUTHOR(text) RTL_NOTHING
#define MODULE_DESCRIPTION(text) RTL_NOTHING
#define MODULE_SUPPORTED_DEVICE(text) RTL_NOTHING
#define MODULE_PARM_DESC(name, text) RTL_NOTHING
#define MODULE_VERSION(text) RTL_NOTHING
#define EXPORT_SYMBOL(name) RTL_NOTHING
#define EXPORT_NO_SYMBOLS RTL_NOTHING

/* `type`: b, h, i, l or s, perhaps with a range of numbers before it ("1-4i"): an array. */
#define MODULE_PARM(name, type)                                                   \
	static const char rtl_parameter_##name[]                                  \
		__attribute__((used, section("rtl_parameters"), aligned(1))) =    \
			#name "=" type

/* `type`: byte, short, ushort, int, uint, long, ulong, bool or charp. */
#define module_param(name, type, permissions)                                     \
	static const char rtl_parameter_##name[]                                  \
		__attribute__((used, section("rtl_parameters"), aligned(1))) =    \
			#name "=" #type

#define module_init(function) int init_module(void) __attribute__((alias(#function)))
#define module_exit(function) void cleanup_module(void) __attribute__((alias(#function)))

#define MOD_INC_USE_COUNT ((void)0)
#define MOD_DEC_USE_COUNT ((void)0)

#ifndef __init
#define __init
#endif
#ifndef __exit
#define __exit
#endif
#ifndef __initdata
#define __initdata
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The program's: 0, or an error number. */
int init_module(void);
void cleanup_module(void);

/*
 * What rtlinux-run does with these arguments, and the exit code that it returns.
 * Test: run.rs
 */
int rtl_main(int argc, char **argv);

#ifdef __cplusplus
}
#endif

#endif
