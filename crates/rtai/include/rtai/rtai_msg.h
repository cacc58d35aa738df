/* SPDX-License-Identifier: MIT */
/*
 * Messages between tasks of RTAI: words, bytes, calls that wait for an answer, and proxies.
 *
 * Error numbers are returned as addresses, such as (RT_TASK *)RTE_TIMOUT; none of them is that of a
 * task.
 */
#ifndef RTAI_MSG_H
#define RTAI_MSG_H

#include "rtai_lxrt.h"
#include "rtai_sched.h"
#include "rtai_types.h"

#define MSG_ERR ((RT_TASK *)RTE_OBJINV)

RTAI_BEGIN_DECLS

/*
 * Sends a word to a task, and waits until it is received. Returns the task; RTE_OBJREM as an
 * address: it was deleted; RTE_UNBLKD: the wait was ended; MSG_ERR: there is no such task, or it
 * is the calling one.
 * Test: messages.c
 */
RT_TASK *rt_send(RT_TASK *task, unsigned long msg);

/*
 * The same, if the task waits for a message of this one; else NULL.
 * Test: messages.c
 */
RT_TASK *rt_send_if(RT_TASK *task, unsigned long msg);

/*
 * As rt_send until a time at most: RTE_TIMOUT as an address then.
 * Test: messages.c
 */
RT_TASK *rt_send_until(RT_TASK *task, unsigned long msg, RTIME time);

/*
 * The same for some counts.
 * Test: messages.c
 */
RT_TASK *rt_send_timed(RT_TASK *task, unsigned long msg, RTIME delay);

/*
 * Sends a word to a task, and waits until it has returned one, which it writes to `result`, an
 * unsigned long, if that is not NULL. Until then the task has the priority of this one, if it is
 * better. Results as of rt_send.
 * Test: messages.c
 */
RT_TASK *rt_rpc(RT_TASK *task, unsigned long to_do, void *result);

/*
 * The same, if the task waits for a message of this one; else NULL.
 * Test: messages.c
 */
RT_TASK *rt_rpc_if(RT_TASK *task, unsigned long to_do, void *result);

/*
 * As rt_rpc until a time at most: RTE_TIMOUT as an address then. What was received by then is
 * waited for without an end. NULL: the time is past.
 * Test: messages.c
 */
RT_TASK *rt_rpc_until(RT_TASK *task, unsigned long to_do, void *result, RTIME time);

/*
 * The same for some counts.
 * Test: messages.c
 */
RT_TASK *rt_rpc_timed(RT_TASK *task, unsigned long to_do, void *result, RTIME delay);

/*
 * Not 0: the task waits until another one returns.
 * Test: messages.c
 */
int rt_isrpc(RT_TASK *task);

/*
 * Returns a word to a task that waits for that, and returns the task; NULL: it does not. MSG_ERR:
 * there is no such task.
 * Test: messages.c
 */
RT_TASK *rt_return(RT_TASK *task, unsigned long result);

/*
 * Receives a word, of `task` or, if that is NULL, of any, those of more important tasks first, and
 * waits for it. Returns who sent it; RTE_UNBLKD as an address: the wait was ended; RTE_OBJREM:
 * `task` was deleted; MSG_ERR: it is no task. One that called waits until rt_return. `msg` is an
 * unsigned long, or NULL.
 * Test: messages.c
 */
RT_TASK *rt_receive(RT_TASK *task, void *msg);

/*
 * The same without a wait: NULL, if there is none.
 * Test: messages.c
 */
RT_TASK *rt_receive_if(RT_TASK *task, void *msg);

/*
 * As rt_receive until a time at most: RTE_TIMOUT as an address then.
 * Test: messages.c
 */
RT_TASK *rt_receive_until(RT_TASK *task, void *msg, RTIME time);

/*
 * The same for some counts.
 * Test: messages.c
 */
RT_TASK *rt_receive_timed(RT_TASK *task, void *msg, RTIME delay);

/*
 * Writes the word that rt_receive_if would, and leaves it where it is.
 * Test: messages.c
 */
RT_TASK *rt_evdrp(RT_TASK *task, void *msg);

/*
 * Sends `size` bytes to a task, and waits until they are received by rt_receivex. Results as of
 * rt_send; NULL: there is no memory for them.
 * Test: messages.c
 */
RT_TASK *rt_sendx(RT_TASK *task, void *msg, int size);

/*
 * The same, if the task waits for a message of this one; else NULL.
 * Test: messages.c
 */
RT_TASK *rt_sendx_if(RT_TASK *task, void *msg, int size);

/*
 * As rt_sendx until a time at most: RTE_TIMOUT as an address then; NULL: it is past.
 * Test: messages.c
 */
RT_TASK *rt_sendx_until(RT_TASK *task, void *msg, int size, RTIME time);

/*
 * The same for some counts.
 * Test: messages.c
 */
RT_TASK *rt_sendx_timed(RT_TASK *task, void *msg, long size, RTIME delay);

/*
 * Sends bytes to a task, and waits until it has returned some by rt_returnx, at most `rsize`, to
 * `rmsg`. Results as of rt_rpc; NULL: there is no memory for them.
 * Test: messages.c
 */
RT_TASK *rt_rpcx(RT_TASK *task, void *smsg, void *rmsg, int ssize, int rsize);

/*
 * The same, if the task waits for a message of this one; else NULL.
 * Test: messages.c
 */
RT_TASK *rt_rpcx_if(RT_TASK *task, void *smsg, void *rmsg, int ssize, int rsize);

/*
 * As rt_rpcx, as rt_rpc_until.
 * Test: messages.c
 */
RT_TASK *rt_rpcx_until(RT_TASK *task, void *smsg, void *rmsg, int ssize, int rsize,
		       RTIME time);

/*
 * The same for some counts.
 * Test: messages.c
 */
RT_TASK *rt_rpcx_timed(RT_TASK *task, void *smsg, void *rmsg, int ssize, int rsize,
		       RTIME delay);

/*
 * Returns bytes to a task that waits for that, as many as it has room for; results as of
 * rt_return.
 * Test: messages.c
 */
RT_TASK *rt_returnx(RT_TASK *task, void *msg, int size);

/*
 * Receives bytes, as rt_receive a word, and writes at most `size` to `msg`, and how many to `len`.
 * Words have no bytes.
 * Test: messages.c
 */
RT_TASK *rt_receivex(RT_TASK *task, void *msg, int size, long *len);

/*
 * The same without a wait: NULL, if there are none.
 * Test: messages.c
 */
RT_TASK *rt_receivex_if(RT_TASK *task, void *msg, int size, long *len);

/*
 * As rt_receivex until a time at most: RTE_TIMOUT as an address then.
 * Test: messages.c
 */
RT_TASK *rt_receivex_until(RT_TASK *task, void *msg, int size, long *len, RTIME time);

/*
 * The same for some counts.
 * Test: messages.c
 */
RT_TASK *rt_receivex_timed(RT_TASK *task, void *msg, int size, long *len, RTIME delay);

/*
 * Writes the bytes that rt_receivex_if would, and leaves them where they are.
 * Test: messages.c
 */
RT_TASK *rt_evdrpx(RT_TASK *task, void *msg, int size, long *len);

/*
 * Makes a proxy for a task, NULL: the calling one: an object that sends it a message of `nbytes`
 * bytes, of which the first are a word, with a priority, -1: that of this task. It ends with the
 * process. NULL: there is no such task, or no room.
 * Test: messages.c
 */
RT_TASK *rt_proxy_attach(RT_TASK *task, void *msg, int nbytes, int priority);

/*
 * Deletes a proxy, and its messages that were not received. -EINVAL: it is none.
 * Test: messages.c
 */
int rt_proxy_detach(RT_TASK *proxy);

/*
 * Has a proxy send its message, without a wait, and returns the task that gets it from the proxy;
 * NULL: it is no proxy, or has no task any more.
 * Test: messages.c
 */
RT_TASK *rt_trigger(RT_TASK *proxy);

RTAI_END_DECLS

#endif
