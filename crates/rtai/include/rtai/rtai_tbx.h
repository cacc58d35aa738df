/* SPDX-License-Identifier: MIT */
/*
 * Queues of messages of RTAI, with priorities, of which the smaller number is received first. They
 * are typed mailboxes, too.
 *
 * Calls with a queue that is none return RTE_OBJINV. A call that waits returns RTE_OBJREM when the
 * queue is deleted, and RTE_UNBLKD when its wait is ended.
 */
#ifndef RTAI_TBX_H
#define RTAI_TBX_H

#include "rtai_lxrt.h"
#include "rtai_sched.h"
#include "rtai_types.h"

typedef struct rt_msgq {
	int opaque;
} RT_MSGQ;

RTAI_BEGIN_DECLS

/*
 * Makes a queue of no process for `nmsg` messages, or finds the one of this name, whatever its
 * `nmsg`. `msg_size` has no effect: messages have the memory that they need. A name of 0 stands for
 * one that no object has: such a queue ends with this process. NULL: there is an object of another
 * kind, no room, or `nmsg` is less than 1 where there is no such queue.
 * Test: message_queues.c
 */
RT_MSGQ *rt_msgq_init(unsigned long msgq, int nmsg, int msg_size);

/*
 * Undoes one rt_msgq_init, the last one deletes the queue: tasks that wait return RTE_OBJREM.
 * Returns how many are left. -EFAULT: it is none.
 * Test: message_queues.c
 */
int rt_msgq_delete(RT_MSGQ *msgq);

/*
 * The same by the text of a name.
 * Test: message_queues.c
 */
RT_MSGQ *rt_named_msgq_init(const char *name, int nmsg, int size);

/*
 * The same as rt_msgq_delete.
 * Test: message_queues.c
 */
int rt_named_msgq_delete(RT_MSGQ *msgq);

/*
 * Sends a message: to the task that waits for one, else into the queue, before those with a
 * greater `msgprio`; waits while the queue is full. Returns 0; -ENOMEM: there is no memory.
 * Test: message_queues.c
 */
int rt_msg_send(RT_MSGQ *msgq, void *msg, int msg_size, int msgprio);

/*
 * The same without a wait: `msg_size`, if the queue is full.
 * Test: message_queues.c
 */
int rt_msg_send_if(RT_MSGQ *msgq, void *msg, int msg_size, int msgprio);

/*
 * As rt_msg_send until a time at most: RTE_TIMOUT then.
 * Test: message_queues.c
 */
int rt_msg_send_until(RT_MSGQ *msgq, void *msg, int msg_size, int msgprio, RTIME until);

/*
 * The same for some counts.
 * Test: message_queues.c
 */
int rt_msg_send_timed(RT_MSGQ *msgq, void *msg, int msg_size, int msgprio, RTIME delay);

/*
 * Receives the first message, and waits for one. Writes at most `msg_size` bytes, drops the rest,
 * and returns how many fewer there are; writes the priority to `msgprio`, if that is not NULL.
 * Test: message_queues.c
 */
int rt_msg_receive(RT_MSGQ *msgq, void *msg, int msg_size, int *msgprio);

/*
 * The same without a wait: `msg_size`, if there is none.
 * Test: message_queues.c
 */
int rt_msg_receive_if(RT_MSGQ *msgq, void *msg, int msg_size, int *msgprio);

/*
 * As rt_msg_receive until a time at most: RTE_TIMOUT then.
 * Test: message_queues.c
 */
int rt_msg_receive_until(RT_MSGQ *msgq, void *msg, int msg_size, int *msgprio, RTIME until);

/*
 * The same for some counts.
 * Test: message_queues.c
 */
int rt_msg_receive_timed(RT_MSGQ *msgq, void *msg, int msg_size, int *msgprio, RTIME delay);

/*
 * Writes the message that rt_msg_receive_if would, and leaves it where it is: 0; `msg_size`, if
 * there is none.
 * Test: message_queues.c
 */
int rt_msg_evdrp(RT_MSGQ *msgq, void *msg, int msg_size, int *msgprio);

/*
 * Sends a message to all tasks that wait for one, and returns how many these are. It waits for
 * nothing. -ENOMEM: there is no memory, and none has it.
 * Test: message_queues.c
 */
int rt_msg_broadcast(RT_MSGQ *msgq, void *msg, int msg_size, int msgprio);

/*
 * The same.
 * Test: message_queues.c
 */
int rt_msg_broadcast_if(RT_MSGQ *msgq, void *msg, int msg_size, int msgprio);

/*
 * The same; the time has no effect.
 * Test: message_queues.c
 */
int rt_msg_broadcast_until(RT_MSGQ *msgq, void *msg, int msg_size, int msgprio, RTIME until);

/*
 * The same; the time has no effect.
 * Test: message_queues.c
 */
int rt_msg_broadcast_timed(RT_MSGQ *msgq, void *msg, int msg_size, int msgprio, RTIME delay);

/* Typed mailboxes: messages are sent behind those that are there, or urgently before them. */
#define TBX RT_MSGQ
#define rt_tbx_init(tbx, size, flags) rt_msgq_init(tbx, size, 0)
#define rt_tbx_delete(tbx) rt_msgq_delete(tbx)
#define rt_tbx_send(tbx, msg, msg_size) rt_msg_send(tbx, msg, msg_size, 1)
#define rt_tbx_send_if(tbx, msg, msg_size) rt_msg_send_if(tbx, msg, msg_size, 1)
#define rt_tbx_send_until(tbx, msg, msg_size, until) rt_msg_send_until(tbx, msg, msg_size, 1, until)
#define rt_tbx_send_timed(tbx, msg, msg_size, delay) rt_msg_send_timed(tbx, msg, msg_size, 1, delay)
#define rt_tbx_receive(tbx, msg, msg_size) rt_msg_receive(tbx, msg, msg_size, NULL)
#define rt_tbx_receive_if(tbx, msg, msg_size) rt_msg_receive_if(tbx, msg, msg_size, NULL)
#define rt_tbx_receive_until(tbx, msg, msg_size, until) \
	rt_msg_receive_until(tbx, msg, msg_size, NULL, until)
#define rt_tbx_receive_timed(tbx, msg, msg_size, delay) \
	rt_msg_receive_timed(tbx, msg, msg_size, NULL, delay)
#define rt_tbx_broadcast(tbx, msg, msg_size) rt_msg_broadcast(tbx, msg, msg_size, 0)
#define rt_tbx_broadcast_if(tbx, msg, msg_size) rt_msg_broadcast_if(tbx, msg, msg_size, 0)
#define rt_tbx_broadcast_until(tbx, msg, msg_size, until) \
	rt_msg_broadcast_until(tbx, msg, msg_size, 0, until)
#define rt_tbx_broadcast_timed(tbx, msg, msg_size, delay) \
	rt_msg_broadcast_timed(tbx, msg, msg_size, 0, delay)
#define rt_tbx_urgent(tbx, msg, msg_size) rt_msg_send(tbx, msg, msg_size, 0)
#define rt_tbx_urgent_if(tbx, msg, msg_size) rt_msg_send_if(tbx, msg, msg_size, 0)
#define rt_tbx_urgent_until(tbx, msg, msg_size, until) \
	rt_msg_send_until(tbx, msg, msg_size, 0, until)
#define rt_tbx_urgent_timed(tbx, msg, msg_size, delay) \
	rt_msg_send_timed(tbx, msg, msg_size, 0, delay)

RTAI_END_DECLS

#endif
