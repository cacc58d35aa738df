/* SPDX-License-Identifier: MIT */
/* Mailboxes: bytes in order, all forms of sending and receiving, deletion, and rt_poll. */
#include "hard_tasks.h"

#include <rtai_mbx.h>
#include <stddef.h>
#include <sys/wait.h>

#define SIZE 1000
#define MESSAGES 3000

static bool waits(RT_TASK *task)
{
	return rt_task_masked_unblock(task, 0) == RTE_UNBLKD;
}

static void without_a_wait(void)
{
	MBX *mailbox = rt_mbx_init(nam2num("MBX"), 10);
	char text[] = "0123456789abcdef", got[32] = "";

	CHECK(mailbox && rt_get_adr(nam2num("MBX")) == mailbox);
	CHECK(rt_mbx_init(nam2num("MBX"), 10) == NULL && rt_mbx_init(0, -1) == NULL);
	RETURNS(rt_mbx_receive_if(mailbox, got, 1), 1);
	RETURNS(rt_mbx_receive_wp(mailbox, got, 5), 5);
	RETURNS(rt_mbx_send_if(mailbox, text, 11), 11);
	RETURNS(rt_mbx_send_if(mailbox, text, 6), 0);
	RETURNS(rt_mbx_send_if(mailbox, text, 5), 5);
	RETURNS(rt_mbx_evdrp(mailbox, got, 8), 2);
	CHECK(memcmp(got, "012345", 6) == 0);
	RETURNS(rt_mbx_receive_if(mailbox, got, 7), 7);
	RETURNS(rt_mbx_receive_if(mailbox, got, 4), 0);
	CHECK(memcmp(got, "0123", 4) == 0);
	/* Around its end. */
	RETURNS(rt_mbx_send_wp(mailbox, text, 16), 8);
	RETURNS(rt_mbx_send_wp(mailbox, text, 1), 1);
	RETURNS(rt_mbx_evdrp(mailbox, got, 10), 0);
	CHECK(memcmp(got, "4501234567", 10) == 0);
	RETURNS(rt_mbx_receive_wp(mailbox, got, 16), 6);
	CHECK(memcmp(got, "4501234567", 10) == 0);
	/* The oldest ones go. */
	RETURNS(rt_mbx_ovrwr_send(mailbox, text, 7), 0);
	RETURNS(rt_mbx_ovrwr_send(mailbox, text + 7, 6), 0);
	RETURNS(rt_mbx_evdrp(mailbox, got, 10), 0);
	CHECK(memcmp(got, "3456789abc", 10) == 0);
	RETURNS(rt_mbx_ovrwr_send(mailbox, text, 16), 0);
	RETURNS(rt_mbx_receive(mailbox, got, 10), 0);
	CHECK(memcmp(got, "6789abcdef", 10) == 0);
	RETURNS(rt_mbx_receive_timed(mailbox, got, 1, MS), RTE_TIMOUT);
	RETURNS(rt_mbx_receive_until(mailbox, got, 1, rt_get_time() - 1), RTE_TIMOUT);
	/* Some of them. */
	RETURNS(rt_mbx_send_timed(mailbox, text, 16, MS), RTE_TIMOUT);
	RETURNS(rt_mbx_send_until(mailbox, text, 1, rt_get_time() + MS), RTE_TIMOUT);
	RETURNS(rt_mbx_receive_wp(mailbox, got, 16), 6);
	CHECK(memcmp(got, "0123456789", 10) == 0);
	RETURNS(rt_mbx_send(mailbox, text, 0), 0);
	RETURNS(rt_mbx_send(mailbox, NULL, 1), RTE_OBJINV);
	RETURNS(rt_mbx_receive_wp(mailbox, NULL, 1), RTE_OBJINV);
	RETURNS(rt_mbx_delete(mailbox), 0);
	RETURNS(rt_mbx_delete(mailbox), -EFAULT);
	RETURNS(rt_mbx_send(mailbox, text, 1), RTE_OBJINV);
	RETURNS(rt_mbx_send_if(mailbox, text, 1), RTE_OBJINV);
	RETURNS(rt_mbx_receive(mailbox, text, 1), RTE_OBJINV);
	RETURNS(rt_mbx_evdrp(mailbox, text, 1), RTE_OBJINV);
	RETURNS(rt_mbx_ovrwr_send(NULL, text, 1), RTE_OBJINV);
}

/* A message of a sender: its number, how many bytes follow, and they. */
struct message {
	int sender, number, length;
	unsigned char bytes[SIZE * 2];
};

#define HEAD ((int)offsetof(struct message, bytes))

static MBX *shared;

static void *sends(void *argument)
{
	struct message message;

	message.sender = (int)(long)argument;
	CHECK(rt_task_init(nam2num("S") + (unsigned long)message.sender, message.sender, 0, 0));
	for (message.number = 0; message.number < MESSAGES; message.number++) {
		message.length = message.number * 7919 % (message.number % 100 ? 60 : SIZE * 2);
		for (int n = 0; n < message.length; n++)
			message.bytes[n] = (unsigned char)(message.number + n + message.sender);
		if (message.number % 2)
			RETURNS(rt_mbx_send(shared, &message, HEAD + message.length), 0);
		else
			RETURNS(rt_mbx_send_timed(shared, &message, HEAD + message.length,
						  LIVENESS), 0);
	}
	return NULL;
}

/* Messages of several senders come whole and in order, whatever their length. */
static void messages_are_not_divided(int type)
{
	struct message message;
	int next[3] = { 0 };
	pthread_t threads[3];

	shared = rt_typed_mbx_init(nam2num("SHARED"), SIZE, type);
	CHECK(shared);
	for (long n = 0; n < 3; n++)
		threads[n] = begin(sends, (void *)n);
	for (int n = 0; n < 3 * MESSAGES; n++) {
		RETURNS(rt_mbx_receive(shared, &message, HEAD), 0);
		CHECK(message.sender >= 0 && message.sender < 3);
		CHECK(message.number == next[message.sender]++);
		RETURNS(rt_mbx_receive_timed(shared, message.bytes, message.length, LIVENESS), 0);
		for (int k = 0; k < message.length; k++)
			CHECK(message.bytes[k] ==
			      (unsigned char)(message.number + k + message.sender));
	}
	for (int n = 0; n < 3; n++)
		join(threads[n]);
	RETURNS(rt_mbx_receive_if(shared, &message, 1), 1);
	RETURNS(rt_mbx_delete(shared), 0);
}

static volatile int result;
static RT_TASK *volatile other;

static void *receives(void *argument)
{
	char text[8];

	other = rt_task_init(nam2num("OTHER"), 10, 0, 0);
	result = rt_mbx_receive(argument, text, sizeof(text));
	return NULL;
}

static void *sends_much(void *argument)
{
	static char text[SIZE];

	other = rt_task_init(nam2num("OTHER"), 10, 0, 0);
	result = rt_mbx_send(argument, text, sizeof(text));
	return NULL;
}

static pthread_t begin_other(void *(*function)(void *), MBX *mailbox)
{
	pthread_t thread;

	other = NULL;
	result = -1;
	thread = begin(function, mailbox);
	UNTIL(other && waits(other));
	return thread;
}

static void waits_end_otherwise(void)
{
	MBX *mailbox = rt_typed_mbx_init(0, 10, PRIO_Q);
	char text[SIZE] = "";
	pthread_t thread = begin_other(receives, mailbox);

	/* One receives, and has four of eight bytes. */
	RETURNS(rt_mbx_receive_if(mailbox, text, 0), 0);
	RETURNS(rt_mbx_send(mailbox, text, 4), 0);
	UNTIL(rt_mbx_evdrp(mailbox, text, 1) == 1);
	RETURNS(rt_mbx_receive_timed(mailbox, text, 1, MS), RTE_TIMOUT);
	RETURNS(rt_mbx_send_if(mailbox, text, 4), 0);
	join(thread);
	RETURNS(result, 0);
	thread = begin_other(receives, mailbox);
	RETURNS(rt_task_masked_unblock(other, RT_SCHED_MBXSUSP), RTE_UNBLKD);
	join(thread);
	RETURNS(result, RTE_UNBLKD);
	thread = begin_other(sends_much, mailbox);
	/* Another one sends. */
	RETURNS(rt_mbx_send_if(mailbox, text, 0), 0);
	RETURNS(rt_mbx_ovrwr_send(mailbox, text, 1), 1);
	RETURNS(rt_mbx_send_timed(mailbox, text, 1, MS), RTE_TIMOUT);
	RETURNS(rt_mbx_receive(mailbox, text, SIZE), 0);
	join(thread);
	RETURNS(result, 0);
	thread = begin_other(sends_much, mailbox);
	RETURNS(rt_mbx_delete(mailbox), 0);
	join(thread);
	RETURNS(result, RTE_OBJREM);
	mailbox = rt_mbx_init(0, 10);
	thread = begin_other(receives, mailbox);
	RETURNS(rt_mbx_delete(mailbox), 0);
	join(thread);
	RETURNS(result, RTE_OBJREM);
}

static void *receives_later(void *argument)
{
	char text[8];

	CHECK(rt_task_init(nam2num("LATE"), 5, 0, 0));
	RETURNS(rt_mbx_receive(argument, text, sizeof(text)), 0);
	return NULL;
}

/* Who receives inherits, with RES_Q. */
static void priorities_are_inherited(void)
{
	MBX *mailbox = rt_typed_mbx_init(0, 100, RES_Q);
	char text[16] = "";
	pthread_t thread = begin_other(receives, mailbox), late = begin(receives_later, mailbox);
	RT_TASK *receiver = other;

	UNTIL((other = (RT_TASK *)rt_get_adr(nam2num("LATE"))) && waits(other));
	CHECK(has_priorities(receiver, 5 + SOFT, 10 + SOFT));
	RETURNS(rt_mbx_send(mailbox, text, 16), 0);
	join(thread);
	join(late);
	RETURNS(rt_mbx_delete(mailbox), 0);
}

static void named_ones_have_users(void)
{
	MBX *mailbox = rt_named_mbx_init("named", 10);

	CHECK(mailbox && rt_typed_named_mbx_init("NAMED", 99, RES_Q) == mailbox);
	RETURNS(rt_named_mbx_delete(mailbox), 1);
	RETURNS(rt_named_mbx_delete(mailbox), 0);
	RETURNS(rt_named_mbx_delete(mailbox), -EFAULT);
	CHECK(rt_named_mbx_init("MAIN", 1) == NULL);
}

static void *sends_later(void *argument)
{
	char text[1] = "";

	sleep_ms(20);
	RETURNS(rt_mbx_send(argument, text, 1), 0);
	return NULL;
}

static void *deletes_later(void *argument)
{
	sleep_ms(20);
	RETURNS(rt_mbx_delete(argument), 0);
	return NULL;
}

static void any_of_some_is_waited_for(void)
{
	MBX *full = rt_mbx_init(0, 1), *empty = rt_mbx_init(0, 1);
	struct rt_poll_s entries[3], again[3];
	pthread_t thread;
	char text[1];

	RETURNS(rt_mbx_send(full, text, 1), 0);
	entries[0].what = full;
	entries[0].forwhat = RT_POLL_MBX_SEND;
	entries[1].what = empty;
	entries[1].forwhat = RT_POLL_MBX_RECV;
	entries[2].what = full;
	entries[2].forwhat = RT_POLL_MBX_RECV;
	memcpy(again, entries, sizeof(again));
	RETURNS(rt_poll(again, 2, 1), 0);
	RETURNS(rt_poll(again, 2, -MS), RTE_TIMOUT);
	RETURNS(rt_poll(again, 2, rt_get_time() + MS), RTE_TIMOUT);
	CHECK(again[0].what == full && again[1].what == empty);
	RETURNS(rt_poll(again, 3, 0), 1);
	CHECK(again[0].what == full && again[1].what == empty && again[2].what == NULL);
	thread = begin(sends_later, empty);
	memcpy(again, entries, sizeof(again));
	RETURNS(rt_poll(again, 2, 0), 1);
	CHECK(again[0].what == full && again[1].what == NULL);
	join(thread);
	memcpy(again, entries, sizeof(again));
	RETURNS(rt_poll(again, 3, -LIVENESS), 2);
	RETURNS(rt_mbx_receive(empty, text, 1), 0);
	thread = begin(deletes_later, empty);
	memcpy(again, entries, sizeof(again));
	RETURNS(rt_poll(again, 2, 0), 1);
	CHECK(again[0].what == full && again[1].what == (void *)RTE_OBJREM);
	RETURNS(rt_poll(again + 1, 1, 0), 1);
	CHECK(again[1].what == (void *)RTE_OBJINV);
	join(thread);
	RETURNS(rt_poll(NULL, 0, 0), 0);
	RETURNS(rt_poll(NULL, 0, -MS), RTE_TIMOUT);
	RETURNS(rt_poll(NULL, 1, 0), RTE_OBJINV);
	RETURNS(rt_mbx_delete(full), 0);
}

/* A program that is killed in the middle of a long message. */
static void a_killed_sender_sends_no_more(void)
{
	MBX *mailbox = rt_mbx_init(0, 10);
	char text[100] = "";
	pid_t pid = fork();

	if (pid == 0) {
		rt_task_init(nam2num("CHILD"), 1, 0, 0);
		rt_mbx_send(mailbox, text, 100);
		_exit(1);
	}
	UNTIL((other = (RT_TASK *)rt_get_adr(nam2num("CHILD"))) && waits(other));
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	RETURNS(rt_mbx_receive_wp(mailbox, text, 100), 90);
	RETURNS(rt_mbx_send_if(mailbox, text, 5), 0);
	RETURNS(rt_mbx_receive(mailbox, text, 5), 0);
	RETURNS(rt_mbx_delete(mailbox), 0);
}

static void room_is_bounded(void)
{
	MBX *large = rt_mbx_init(0, 3 << 20), *other_one;

	CHECK(large && rt_mbx_init(0, 3 << 20) == NULL);
	other_one = rt_mbx_init(0, 100000);
	CHECK(other_one);
	RETURNS(rt_mbx_delete(large), 0);
	large = rt_mbx_init(0, 3 << 20);
	CHECK(large);
	RETURNS(rt_mbx_delete(large), 0);
	RETURNS(rt_mbx_delete(other_one), 0);
}

int main(void)
{
	CHECK(rt_task_init(nam2num("MAIN"), 50, 0, 0));
	without_a_wait();
	messages_are_not_divided(FIFO_Q);
	messages_are_not_divided(PRIO_Q);
	messages_are_not_divided(RES_Q);
	waits_end_otherwise();
	priorities_are_inherited();
	named_ones_have_users();
	any_of_some_is_waited_for();
	a_killed_sender_sends_no_more();
	room_is_bounded();
	return 0;
}
