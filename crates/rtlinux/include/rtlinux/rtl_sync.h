/* SPDX-License-Identifier: MIT */
/*
 * Critical sections. No interrupt is disabled: a section excludes other threads of this program in
 * one. A thread that has begun some has to end as many.
 */
#ifndef RTL_SYNC_H
#define RTL_SYNC_H

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned long rtl_irqstate_t;

/*
 * Begins a section, and waits for the thread that is in one, at the priority of the calling one.
 * Returns what rtl_end_critical_np takes.
 * Test: periods.c
 */
unsigned long rtl_begin_critical_np(void);

/*
 * Ends a section of the calling thread, if it is in one.
 * Test: periods.c
 */
void rtl_end_critical_np(unsigned long state);

#define rtl_no_interrupts(state) ((void)((state) = rtl_begin_critical_np()))
#define rtl_restore_interrupts(state) rtl_end_critical_np(state)
#define rtl_stop_interrupts() ((void)rtl_begin_critical_np())
#define rtl_allow_interrupts() rtl_end_critical_np(0)

#ifdef __cplusplus
}
#endif

#endif
