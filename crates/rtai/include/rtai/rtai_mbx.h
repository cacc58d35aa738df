/* SPDX-License-Identifier: MIT */
/*
 * Mailboxes of RTAI: bytes in order.
 *
 * Calls with a mailbox that is none return RTE_OBJINV. A call that waits returns RTE_OBJREM when
 * the mailbox is deleted, and RTE_UNBLKD when its wait is ended.
 */
#ifndef RTAI_MBX_H
#define RTAI_MBX_H

#include "rtai_lxrt.h"
#include "rtai_sched.h"
#include "rtai_sem.h"
#include "rtai_types.h"

typedef struct rt_mailbox {
	int opaque;
} MBX;

RTAI_BEGIN_DECLS

/*
 * Makes a mailbox of this process, with which it ends, with room for `size` bytes. Tasks wait by
 * priority (PRIO_Q), as they come (FIFO_Q), or by priority, which the one that sends or receives
 * inherits (RES_Q). A name of 0 stands for one that no object has. NULL: the name is in use, or
 * there is no room.
 * Test: mailboxes.c
 */
MBX *rt_typed_mbx_init(unsigned long name, int size, int qtype);
#define rt_mbx_init(name, size) rt_typed_mbx_init(name, size, FIFO_Q)

/*
 * Deletes a mailbox: tasks that wait return RTE_OBJREM. -EFAULT: it is none.
 * Test: mailboxes.c
 */
int rt_mbx_delete(MBX *mbx);

/*
 * Makes a mailbox of no process, or finds the one of this name. NULL: there is an object of
 * another kind, one of a process, or no room.
 * Test: mailboxes.c
 */
MBX *rt_typed_named_mbx_init(const char *name, int size, int type);
#define rt_named_mbx_init(mbx_name, size) rt_typed_named_mbx_init(mbx_name, size, FIFO_Q)

/*
 * Undoes one rt_typed_named_mbx_init, the last one deletes the mailbox; returns how many are left.
 * -EFAULT: it is none.
 * Test: mailboxes.c
 */
int rt_named_mbx_delete(MBX *mbx);

/*
 * Sends `msg_size` bytes, and waits until all are in the mailbox: those of another task do not
 * come between them. What fits is sent at once, or not at all. Returns 0.
 * Test: mailboxes.c
 */
int rt_mbx_send(MBX *mbx, void *msg, int msg_size);

/*
 * Sends as many bytes as there is room for, without a wait, and returns how many are left.
 * Test: mailboxes.c
 */
int rt_mbx_send_wp(MBX *mbx, void *msg, int msg_size);

/*
 * Sends all bytes without a wait, and returns 0; where there is no room, or another task sends, it
 * sends none, and returns `msg_size`.
 * Test: mailboxes.c
 */
int rt_mbx_send_if(MBX *mbx, void *msg, int msg_size);

/*
 * As rt_mbx_send until a time at most: RTE_TIMOUT then, when some of the bytes may be sent.
 * Test: mailboxes.c
 */
int rt_mbx_send_until(MBX *mbx, void *msg, int msg_size, RTIME time);

/*
 * The same for some counts.
 * Test: mailboxes.c
 */
int rt_mbx_send_timed(MBX *mbx, void *msg, int msg_size, RTIME delay);

/*
 * Sends all bytes, in place of the oldest ones where there is no room; of more than there is ever
 * room for, the last ones. Returns 0, or `msg_size` where another task sends.
 * Test: mailboxes.c
 */
int rt_mbx_ovrwr_send(MBX *mbx, void *msg, int msg_size);

/*
 * Writes the bytes that rt_mbx_receive_wp would, leaves them where they are, and returns how many
 * are missing.
 * Test: mailboxes.c
 */
int rt_mbx_evdrp(MBX *mbx, void *msg, int msg_size);

/*
 * Receives `msg_size` bytes, and waits until they are there. Returns 0.
 * Test: mailboxes.c
 */
int rt_mbx_receive(MBX *mbx, void *msg, int msg_size);

/*
 * Receives as many bytes as there are, without a wait, and returns how many are missing.
 * Test: mailboxes.c
 */
int rt_mbx_receive_wp(MBX *mbx, void *msg, int msg_size);

/*
 * Receives all bytes without a wait, and returns 0; where they are not there, or another task
 * receives, none, and `msg_size`.
 * Test: mailboxes.c
 */
int rt_mbx_receive_if(MBX *mbx, void *msg, int msg_size);

/*
 * As rt_mbx_receive until a time at most: RTE_TIMOUT then, when some of the bytes may be taken.
 * Test: mailboxes.c
 */
int rt_mbx_receive_until(MBX *mbx, void *msg, int msg_size, RTIME time);

/*
 * The same for some counts.
 * Test: mailboxes.c
 */
int rt_mbx_receive_timed(MBX *mbx, void *msg, int msg_size, RTIME delay);

RTAI_END_DECLS

#endif
