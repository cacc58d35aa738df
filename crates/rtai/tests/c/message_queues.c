/* SPDX-License-Identifier: MIT */
/* Queues of messages: priorities, full and empty queues, broadcasts, typed mailboxes. */
#include "hard_tasks.h"

#include <rtai_tbx.h>

#define LONGEST 3000

static RT_MSGQ *queue;

static void by_priority_without_a_wait(void)
{
	char text[8] = "";
	int priority = -1;

	queue = rt_msgq_init(nam2num("QUEUE"), 4, 0);
	CHECK(queue && rt_get_adr(nam2num("QUEUE")) == queue);
	CHECK(rt_msgq_init(nam2num("QUEUE"), 0, 0) == queue && rt_msgq_delete(queue) == 1);
	CHECK(rt_named_msgq_init("queue", 0, 0) == queue && rt_named_msgq_delete(queue) == 1);
	CHECK(!rt_msgq_init(nam2num("NONE"), 0, 0) && !rt_msgq_init(0, 0, 0));
	CHECK(!rt_msgq_init(rt_get_name(rt_agent()), 4, 0));
	RETURNS(rt_msg_receive_if(queue, text, 8, &priority), 8);
	RETURNS(rt_msg_evdrp(queue, text, 8, &priority), 8);
	RETURNS(rt_msg_send(queue, "b", 2, 5), 0);
	RETURNS(rt_msg_send_if(queue, "c", 2, 5), 0);
	RETURNS(rt_msg_send_timed(queue, "a", 2, 1, MS), 0);
	RETURNS(rt_msg_send_until(queue, "last one", 8, 9, 0), 0);
	RETURNS(rt_msg_send_if(queue, "x", 2, 0), 2);
	RETURNS(rt_msg_send_timed(queue, "x", 2, 0, MS), RTE_TIMOUT);
	RETURNS(rt_msg_send_until(queue, "x", 2, 0, rt_get_time() - 1), RTE_TIMOUT);
	RETURNS(rt_msg_evdrp(queue, text, 8, &priority), 0);
	CHECK(!strcmp(text, "a") && priority == 1);
	RETURNS(rt_msg_receive(queue, text, 8, &priority), 6);
	CHECK(!strcmp(text, "a") && priority == 1);
	RETURNS(rt_msg_receive_if(queue, text, 8, NULL), 6);
	CHECK(!strcmp(text, "b"));
	RETURNS(rt_msg_receive_timed(queue, text, 8, &priority, MS), 6);
	CHECK(!strcmp(text, "c") && priority == 5);
	/* What there is no room for is dropped. */
	RETURNS(rt_msg_receive_until(queue, text, 4, &priority, 0), 0);
	CHECK(!memcmp(text, "last", 4) && priority == 9);
	RETURNS(rt_msg_receive_timed(queue, text, 8, &priority, MS), RTE_TIMOUT);
	RETURNS(rt_msg_receive_until(queue, text, 8, &priority, rt_get_time() - 1), RTE_TIMOUT);
	RETURNS(rt_msg_send(queue, NULL, 0, 1), 0);
	RETURNS(rt_msg_receive(queue, NULL, 0, &priority), 0);
	CHECK(priority == 1);
	RETURNS(rt_msg_broadcast(queue, "x", 2, 1), 0);
	RETURNS(rt_msg_send(queue, NULL, 1, 1), RTE_OBJINV);
	RETURNS(rt_msg_receive(queue, NULL, 1, NULL), RTE_OBJINV);
	RETURNS(rt_msgq_delete(queue), 0);
	RETURNS(rt_msgq_delete(queue), -EFAULT);
	RETURNS(rt_msg_send(queue, "x", 2, 1), RTE_OBJINV);
	RETURNS(rt_msg_receive(queue, text, 8, NULL), RTE_OBJINV);
	RETURNS(rt_msg_evdrp(queue, text, 8, NULL), RTE_OBJINV);
	RETURNS(rt_msg_broadcast(queue, "x", 2, 1), RTE_OBJINV);
}

struct waiter {
	bool sends;
	int priority, result;
	char text[LONGEST];
	RT_TASK *volatile task;
	pthread_t thread;
};

static void *waits(void *argument)
{
	struct waiter *me = argument;

	CHECK(rt_task_init(0, me->priority, 0, 0));
	me->task = rt_agent();
	me->result = me->sends ? rt_msg_send(queue, me->text, LONGEST, me->priority)
			       : rt_msg_receive(queue, me->text, LONGEST, NULL);
	return NULL;
}

static void begin_waiter(struct waiter *waiter, bool sends, int priority)
{
	memset(waiter, 0, sizeof(*waiter));
	waiter->sends = sends;
	waiter->priority = priority;
	waiter->result = -1;
	snprintf(waiter->text, LONGEST, "of %d", priority);
	waiter->thread = begin(waits, waiter);
	UNTIL(waiter->task && rt_task_masked_unblock(waiter->task, 0) == RTE_UNBLKD);
}

static void tasks_wait_for_room_and_for_messages(void)
{
	static struct waiter a, b, c;
	static char text[LONGEST];
	int priority;

	queue = rt_msgq_init(0, 1, 0);
	begin_waiter(&a, false, 30);
	begin_waiter(&b, false, 10);
	RETURNS(rt_msg_send(queue, "first", 6, 1), 0);
	join(b.thread);
	CHECK(b.result == LONGEST - 6 && !strcmp(b.text, "first") && a.result == -1);
	RETURNS(rt_msg_send_if(queue, "second", 7, 1), 0);
	join(a.thread);
	CHECK(a.result == LONGEST - 7 && !strcmp(a.text, "second"));

	RETURNS(rt_msg_send(queue, "full", 5, 5), 0);
	begin_waiter(&a, true, 30);
	begin_waiter(&b, true, 10);
	RETURNS(rt_msg_receive(queue, text, LONGEST, &priority), LONGEST - 5);
	CHECK(priority == 5);
	join(b.thread);
	CHECK(b.result == 0 && a.result == -1);
	RETURNS(rt_msg_receive(queue, text, LONGEST, &priority), 0);
	CHECK(priority == 10 && !strcmp(text, "of 10"));
	join(a.thread);
	RETURNS(rt_msg_receive(queue, text, LONGEST, &priority), 0);
	CHECK(priority == 30 && !strcmp(text, "of 30"));

	begin_waiter(&a, false, 1);
	begin_waiter(&b, false, 2);
	begin_waiter(&c, false, 3);
	RETURNS(rt_msg_broadcast(queue, "all", 4, 0), 3);
	join(a.thread);
	join(b.thread);
	join(c.thread);
	CHECK(a.result == LONGEST - 4 && !strcmp(a.text, "all") && !strcmp(b.text, "all"));
	CHECK(!strcmp(c.text, "all") && rt_msg_receive_if(queue, text, 1, NULL) == 1);
	for (int form = 0; form < 3; form++) {
		begin_waiter(&a, false, 1);
		switch (form) {
		case 0:
			RETURNS(rt_msg_broadcast_if(queue, "x", 2, 0), 1);
			break;
		case 1:
			RETURNS(rt_msg_broadcast_until(queue, "x", 2, 0, 0), 1);
			break;
		default:
			RETURNS(rt_msg_broadcast_timed(queue, "x", 2, 0, 0), 1);
		}
		join(a.thread);
	}

	begin_waiter(&a, false, 1);
	RETURNS(rt_task_masked_unblock(a.task, RT_SCHED_SEMAPHORE), RTE_UNBLKD);
	join(a.thread);
	RETURNS(a.result, RTE_UNBLKD);
	begin_waiter(&a, false, 1);
	RETURNS(rt_msgq_delete(queue), 0);
	join(a.thread);
	RETURNS(a.result, RTE_OBJREM);
	queue = rt_msgq_init(0, 1, 0);
	RETURNS(rt_msg_send(queue, "full", 5, 5), 0);
	begin_waiter(&a, true, 1);
	RETURNS(rt_msgq_delete(queue), 0);
	join(a.thread);
	RETURNS(a.result, RTE_OBJREM);
}

static void typed_mailboxes_are_urgent(void)
{
	TBX *tbx = rt_tbx_init(nam2num("TBX"), 10, FIFO_Q);
	char text[8] = "";

	CHECK(tbx);
	RETURNS(rt_tbx_send(tbx, "one", 4), 0);
	RETURNS(rt_tbx_send_if(tbx, "two", 4), 0);
	RETURNS(rt_tbx_urgent(tbx, "now", 4), 0);
	RETURNS(rt_tbx_broadcast(tbx, "all", 4), 0);
	RETURNS(rt_tbx_receive(tbx, text, 8), 4);
	CHECK(!strcmp(text, "now"));
	RETURNS(rt_tbx_receive_if(tbx, text, 8), 4);
	CHECK(!strcmp(text, "one"));
	RETURNS(rt_tbx_receive_timed(tbx, text, 8, MS), 4);
	CHECK(!strcmp(text, "two"));
	RETURNS(rt_tbx_receive_until(tbx, text, 8, 0), RTE_TIMOUT);
	RETURNS(rt_tbx_delete(tbx), 0);
}

static void named_ones_have_users(void)
{
	RT_MSGQ *named = rt_named_msgq_init("named", 2, 0);

	CHECK(named && rt_named_msgq_init("NAMED", 9, 9) == named);
	RETURNS(rt_named_msgq_delete(named), 1);
	RETURNS(rt_named_msgq_delete(named), 0);
	RETURNS(rt_named_msgq_delete(named), -EFAULT);
}

/* Memory is bounded, and comes back. */
static void memory_is_bounded(void)
{
	static char text[100000];
	int sent = 0;

	queue = rt_msgq_init(0, 1000, 0);
	while (rt_msg_send_if(queue, text, sizeof(text), sent % 3) == 0)
		sent++;
	CHECK(sent > 10 && sent < 1000);
	RETURNS(rt_msg_send(queue, text, sizeof(text), 1), -ENOMEM);
	RETURNS(rt_msg_receive(queue, text, sizeof(text), NULL), 0);
	RETURNS(rt_msg_send(queue, text, sizeof(text), 1), 0);
	RETURNS(rt_msgq_delete(queue), 0);
	queue = rt_msgq_init(0, 1000, 0);
	for (int n = 0; n < sent; n++)
		RETURNS(rt_msg_send_if(queue, text, sizeof(text), 1), 0);
	RETURNS(rt_msgq_delete(queue), 0);
}

int main(void)
{
	CHECK(rt_task_init(nam2num("MAIN"), 5, 0, 0));
	by_priority_without_a_wait();
	tasks_wait_for_room_and_for_messages();
	typed_mailboxes_are_urgent();
	named_ones_have_users();
	memory_is_bounded();
	return 0;
}
