/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * In which state of the kernel a function may be called, stated behind its parameters as the
 * kernel's own __must_hold is. A function without one of these only computes.
 *
 *   __rq_locked    interrupts off; the lock of the thread's run queue is held. On any CPU: the one
 *                  on which the thread runs or waits, or one that changes an attribute of it
 *   __waking       interrupts off; the lock of the thread is held (pi_lock), which sleeps
 *   __on_domain    on the domain's CPU, in one of these states, none of which interrupts another:
 *                    __rq_locked, of that CPU's run queue
 *                    __softirq     the timer's callback, interrupts on
 *                    __irqs_off    a command of a task on that CPU
 *                    __in_process  the timer process, before which no task of the CPU runs
 *   __may_sleep    no lock is held; the caller is a process
 *   __any_state    reads once, or changes by atomic operations, whatever else happens meanwhile
 */
#pragma once

#define __rq_locked
#define __waking
#define __on_domain
#define __softirq
#define __irqs_off
#define __in_process
#define __may_sleep
#define __any_state
