/* SPDX-License-Identifier: MIT */
/* Messages: words, bytes, calls, priorities, deletion, and proxies. */
#include "hard_tasks.h"

#include <rtai_msg.h>
#include <sys/wait.h>

#define ERROR(number) ((RT_TASK *)(number))

static RT_TASK *main_task;

/* The state of a task, from what it can be woken of. */
static bool waits(RT_TASK *task)
{
	return rt_task_masked_unblock(task, 0) == RTE_UNBLKD;
}

struct sender {
	unsigned long name, word, result;
	int priority;
	bool calls;
	RTIME delay; /* 0: for ever */
	RT_TASK *volatile task;
	RT_TASK *volatile returned;
	pthread_t thread;
};

static void *sends(void *argument)
{
	struct sender *me = argument;
	RT_TASK *task = rt_task_init(me->name, me->priority, 0, 0), *returned;

	CHECK(task);
	me->task = task;
	if (me->calls)
		returned = me->delay ? rt_rpc_timed(main_task, me->word, &me->result, me->delay)
				     : rt_rpc(main_task, me->word, &me->result);
	else
		returned = me->delay ? rt_send_timed(main_task, me->word, me->delay)
				     : rt_send(main_task, me->word);
	me->returned = returned;
	return NULL;
}

/* Begins a thread that sends, and waits until it does. */
static void begin_sender(struct sender *sender, const char *name, int priority, bool calls,
			 unsigned long word)
{
	memset(sender, 0, sizeof(*sender));
	sender->name = nam2num(name);
	sender->priority = priority;
	sender->calls = calls;
	sender->word = word;
	sender->thread = begin(sends, sender);
	UNTIL(sender->task && waits(sender->task));
}

static void words_are_received_by_priority(void)
{
	struct sender a, b, c;
	unsigned long word = 0;

	CHECK(rt_receive_if(NULL, &word) == NULL && rt_evdrp(NULL, &word) == NULL);
	begin_sender(&a, "A", 30, false, 1);
	begin_sender(&b, "B", 10, false, 2);
	begin_sender(&c, "C", 20, false, 3);
	CHECK(!rt_isrpc(a.task));
	/* The receiver has the best priority of those that wait for it. */
	CHECK(has_priorities(NULL, 10 + SOFT, 50 + SOFT));
	CHECK(rt_evdrp(NULL, &word) == b.task && word == 2);
	CHECK(rt_evdrp(a.task, &word) == a.task && word == 1);
	CHECK(rt_receive(NULL, &word) == b.task && word == 2);
	join(b.thread);
	CHECK(b.returned == main_task);
	CHECK(has_priorities(NULL, 20 + SOFT, 50 + SOFT));
	/* Of one of them. */
	CHECK(rt_receive(a.task, &word) == a.task && word == 1);
	CHECK(rt_receive_if(NULL, NULL) == c.task);
	join(a.thread);
	join(c.thread);
	CHECK(has_priorities(NULL, 50 + SOFT, 50 + SOFT));
}

static void calls_wait_for_an_answer(void)
{
	struct sender a, b;
	unsigned long word;

	begin_sender(&a, "A", 30, true, 7);
	begin_sender(&b, "B", 20, true, 8);
	CHECK(rt_return(a.task, 1) == NULL);
	CHECK(rt_receive(a.task, &word) == a.task && word == 7);
	CHECK(rt_isrpc(a.task) == RT_SCHED_RETURN && !rt_isrpc(b.task));
	/* It waits, and lends its priority, until the answer. */
	CHECK(rt_receive_timed(NULL, &word, LIVENESS) == b.task && word == 8);
	CHECK(has_priorities(NULL, 20 + SOFT, 50 + SOFT) && waits(a.task) && waits(b.task));
	CHECK(rt_return(b.task, 80) == b.task);
	join(b.thread);
	CHECK(b.returned == main_task && b.result == 80);
	CHECK(has_priorities(NULL, 30 + SOFT, 50 + SOFT));
	CHECK(rt_return(a.task, 70) == a.task);
	join(a.thread);
	CHECK(a.returned == main_task && a.result == 70);
	CHECK(has_priorities(NULL, 50 + SOFT, 50 + SOFT));
}

static void waits_end_otherwise(void)
{
	struct sender a, b;
	unsigned long word = 5;
	RTIME past = rt_get_time() - 1;

	CHECK(rt_receive_timed(NULL, &word, MS) == ERROR(RTE_TIMOUT));
	CHECK(rt_receive_until(NULL, &word, past) == ERROR(RTE_TIMOUT));
	CHECK(rt_send(main_task, 1) == MSG_ERR && rt_rpc(main_task, 1, &word) == MSG_ERR);
	CHECK(rt_send((RT_TASK *)&word, 1) == MSG_ERR && rt_send_if(NULL, 1) == MSG_ERR);
	CHECK(rt_receive((RT_TASK *)&word, &word) == MSG_ERR);
	CHECK(rt_return(NULL, 1) == MSG_ERR && rt_isrpc(NULL) == 0);
	begin_sender(&a, "A", 30, false, 1);
	RETURNS(rt_task_masked_unblock(a.task, RT_SCHED_SEND), RTE_UNBLKD);
	join(a.thread);
	CHECK(a.returned == ERROR(RTE_UNBLKD));
	CHECK(has_priorities(NULL, 50 + SOFT, 50 + SOFT));
	memset(&a, 0, sizeof(a));
	a.name = nam2num("A");
	a.delay = 5 * MS;
	join(begin(sends, &a));
	CHECK(a.returned == ERROR(RTE_TIMOUT));
	a.calls = true;
	join(begin(sends, &a));
	CHECK(a.returned == ERROR(RTE_TIMOUT) && word == 5);
	CHECK(rt_receive_if(NULL, &word) == NULL);
	/* A call that was received has no end of its own. */
	begin_sender(&b, "B", 20, true, 8);
	CHECK(rt_send_until(b.task, 1, past) == ERROR(RTE_TIMOUT));
	CHECK(rt_rpc_until(b.task, 1, &word, past) == NULL);
	CHECK(rt_send_if(b.task, 1) == NULL && rt_rpc_if(b.task, 1, &word) == NULL);
	CHECK(rt_send_timed(b.task, 1, 3 * MS) == ERROR(RTE_TIMOUT));
	CHECK(rt_rpc_timed(b.task, 1, &word, 3 * MS) == ERROR(RTE_TIMOUT));
	CHECK(rt_receive(NULL, &word) == b.task);
	CHECK(rt_return(b.task, 0) == b.task);
	join(b.thread);
}

static RT_TASK *volatile partner;
static RT_TASK *volatile received_from;
static volatile unsigned long received;

/* Receives words of the main task alone, and answers calls, until it gets a 0. */
static void *answers(void *argument)
{
	unsigned long word = 1;

	(void)argument;
	partner = rt_task_init(nam2num("ANSWER"), 40, 0, 0);
	while (word) {
		RT_TASK *from = rt_receive(main_task, &word);

		CHECK(from == main_task);
		received_from = from;
		received = word;
		if (rt_isrpc(from))
			CHECK(rt_return(from, word * 2) == from);
	}
	/* The next message is for a task that ends. */
	rt_task_suspend(NULL);
	return NULL;
}

static void a_receiver_that_waits_gets_it_at_once(void)
{
	pthread_t thread = begin(answers, NULL);
	struct sender a;
	unsigned long word;

	UNTIL(partner && waits(partner));
	CHECK(rt_send(partner, 11) == partner);
	UNTIL(received == 11 && waits(partner));
	CHECK(rt_send_if(partner, 12) == partner);
	UNTIL(received == 12 && waits(partner));
	CHECK(rt_send_timed(partner, 13, LIVENESS) == partner);
	CHECK(rt_rpc(partner, 14, &word) == partner && word == 28);
	CHECK(rt_rpc_timed(partner, 15, &word, LIVENESS) == partner && word == 30);
	UNTIL(waits(partner));
	CHECK(rt_rpc_if(partner, 16, &word) == partner && word == 32);
	CHECK(rt_rpc_until(partner, 17, NULL, rt_get_time() + LIVENESS) == partner);
	UNTIL(waits(partner));
	/* It waits for this task alone. */
	begin_sender(&a, "A", 1, false, 5);
	CHECK(received == 17 && rt_receive(a.task, &word) == a.task);
	join(a.thread);
	CHECK(rt_send_until(partner, 0, rt_get_time() + LIVENESS) == partner);
	UNTIL(received == 0 && waits(partner));
	/* A message to a task that is deleted before it receives. */
	CHECK(rt_send_if(partner, 1) == NULL);
	RETURNS(rt_task_resume(partner), 0);
	join(thread);
	CHECK(rt_send(partner, 1) == MSG_ERR);
}

static void *is_deleted_later(void *argument)
{
	partner = rt_task_init(nam2num("LATER"), 40, 0, 0);
	rt_sleep(20 * MS);
	(void)argument;
	return NULL;
}

static volatile int outcome;

static void *receives_of_another(void *argument)
{
	rt_task_init(nam2num("WAITS"), 1, 0, 0);
	outcome = (int)(long)rt_receive(argument, NULL);
	return NULL;
}

static void a_deleted_task_is_not_waited_for(void)
{
	pthread_t thread, other;

	partner = NULL;
	thread = begin(is_deleted_later, NULL);
	UNTIL(partner);
	other = begin(receives_of_another, partner);
	CHECK(rt_send(partner, 1) == ERROR(RTE_OBJREM));
	join(thread);
	join(other);
	CHECK(outcome == RTE_OBJREM || outcome == RTE_OBJINV);
	CHECK(has_priorities(NULL, 50 + SOFT, 50 + SOFT));
}

/* Bytes that follow from a number. */
static void fill(char *bytes, size_t size, int number)
{
	for (size_t n = 0; n < size; n++)
		bytes[n] = (char)(number * 31 + (int)n * 7);
}

#define LONGEST 100000

static void *sends_bytes(void *argument)
{
	static char bytes[LONGEST], reply[LONGEST], wanted[LONGEST];
	RTIME end = rt_get_time() + LIVENESS;

	(void)argument;
	partner = rt_task_init(nam2num("BYTES"), 40, 0, 0);
	for (int n = 0; n < 40; n++) {
		int size = n * n * 61 % LONGEST;

		fill(bytes, (size_t)size, n);
		CHECK(rt_sendx(main_task, bytes, size) == main_task);
		CHECK(rt_sendx_until(main_task, bytes, size, end) == main_task);
		CHECK(rt_sendx_timed(main_task, bytes, size, LIVENESS) == main_task);
		fill(wanted, LONGEST, n + 1);
		memset(reply, 0, sizeof(reply));
		CHECK(rt_rpcx(main_task, bytes, reply, size, size) == main_task);
		CHECK(memcmp(reply, wanted, (size_t)size) == 0 && !reply[size]);
		CHECK(rt_rpcx_until(main_task, bytes, reply, size, LONGEST, end) == main_task);
		CHECK(memcmp(reply, wanted, LONGEST) == 0);
		CHECK(rt_rpcx_timed(main_task, bytes, NULL, size, 0, LIVENESS) == main_task);
	}
	CHECK(rt_sendx_until(main_task, bytes, 1, rt_get_time() - 1) == NULL);
	CHECK(rt_sendx_timed(main_task, bytes, 1, 3 * MS) == ERROR(RTE_TIMOUT));
	received = 1;
	UNTIL(waits(main_task));
	CHECK(rt_sendx_if(main_task, bytes, 5000) == main_task);
	UNTIL(waits(main_task));
	memset(reply, 0, sizeof(reply));
	CHECK(rt_rpcx_if(main_task, bytes, reply, 6000, 7000) == main_task);
	CHECK(memcmp(reply, bytes, 7000) == 0);
	return NULL;
}

static void bytes_are_received_and_returned(void)
{
	static char bytes[LONGEST], wanted[LONGEST];
	pthread_t thread;
	long length;

	partner = NULL;
	received = 0;
	thread = begin(sends_bytes, NULL);
	for (int n = 0; n < 40; n++) {
		long size = n * n * 61 % LONGEST;

		fill(wanted, LONGEST, n);
		for (int message = 0; message < 6; message++) {
			RT_TASK *from;

			length = -1;
			switch (message % 3) {
			case 0:
				from = rt_receivex(NULL, bytes, LONGEST, &length);
				break;
			case 1:
				UNTIL(rt_evdrpx(NULL, bytes, LONGEST, &length));
				CHECK(length == size && !memcmp(bytes, wanted, (size_t)size));
				length = -1;
				from = rt_receivex_if(partner, bytes, LONGEST, &length);
				break;
			default:
				from = rt_receivex_timed(NULL, bytes, LONGEST, &length, LIVENESS);
			}
			CHECK(from == partner && length == size);
			CHECK(memcmp(bytes, wanted, (size_t)size) == 0);
			if (message >= 3) {
				fill(bytes, LONGEST, n + 1);
				CHECK(rt_isrpc(from));
				CHECK(rt_returnx(from, bytes, LONGEST) == from);
			}
			CHECK(rt_returnx(from, bytes, 1) == NULL);
		}
	}
	/* One more was sent, and nothing received it in time. */
	UNTIL(received);
	/* Less room than there are bytes. */
	CHECK(rt_receivex_until(NULL, bytes, 100, &length, rt_get_time() + LIVENESS) == partner);
	CHECK(length == 100);
	CHECK(rt_receivex(partner, bytes, LONGEST, &length) == partner && length == 6000);
	fill(bytes, LONGEST, 0);
	fill(wanted, LONGEST, 39);
	CHECK(rt_returnx(partner, wanted, LONGEST) == partner);
	join(thread);
	CHECK(rt_receivex_timed(NULL, bytes, 1, &length, MS) == ERROR(RTE_TIMOUT));
	CHECK(rt_returnx(NULL, bytes, 1) == MSG_ERR);
	CHECK(rt_sendx((RT_TASK *)bytes, bytes, 1) == MSG_ERR);
}

static void proxies_send_without_waiting(void)
{
	unsigned long message[2] = { 77, 88 }, word = 0;
	RT_TASK *proxy = rt_proxy_attach(NULL, message, sizeof(message), 10), *other;
	char bytes[32];
	long length;

	CHECK(proxy && rt_trigger(proxy) == main_task && rt_trigger(proxy) == main_task);
	CHECK(has_priorities(NULL, 10, 50 + SOFT));
	other = rt_proxy_attach(main_task, message, sizeof(word), -1);
	CHECK(other && rt_trigger(other) == main_task);
	CHECK(rt_receive(NULL, &word) == proxy && word == 77);
	length = 0;
	CHECK(rt_receivex(proxy, bytes, sizeof(bytes), &length) == proxy);
	CHECK(length == sizeof(message) && !memcmp(bytes, message, sizeof(message)));
	CHECK(rt_receive_if(proxy, &word) == NULL);
	CHECK(rt_receive_if(NULL, &word) == other);
	CHECK(rt_receive_if(NULL, &word) == NULL);
	CHECK(has_priorities(NULL, 50 + SOFT, 50 + SOFT));
	RETURNS(rt_task_resume(proxy), -EINVAL);
	CHECK(rt_trigger(other) == main_task);
	RETURNS(rt_proxy_detach(other), 0);
	CHECK(rt_receive_if(NULL, &word) == NULL && rt_trigger(other) == NULL);
	RETURNS(rt_proxy_detach(other), -EINVAL);
	RETURNS(rt_proxy_detach(main_task), -EINVAL);
	RETURNS(rt_proxy_detach(proxy), 0);
}

static void *is_triggered(void *argument)
{
	unsigned long word = 0;

	CHECK(rt_receive_timed(argument, &word, LIVENESS) == argument && word == 5);
	received = word;
	return NULL;
}

static void *has_a_proxy(void *argument)
{
	unsigned long word = 5;
	RT_TASK *task = rt_task_init(nam2num("TARGET"), 1, 0, 0);
	RT_TASK *proxy = rt_proxy_attach(task, &word, sizeof(word), 1);

	(void)argument;
	partner = proxy;
	return is_triggered(proxy);
}

static void a_proxy_wakes_its_task(void)
{
	pthread_t thread;
	RT_TASK *target;

	partner = NULL;
	received = 0;
	thread = begin(has_a_proxy, NULL);
	UNTIL(partner);
	target = (RT_TASK *)rt_get_adr(nam2num("TARGET"));
	UNTIL(waits(target));
	CHECK(rt_trigger(partner) == target);
	join(thread);
	CHECK(received == 5);
	/* Its task has ended. */
	CHECK(rt_trigger(partner) == NULL);
	RETURNS(rt_proxy_detach(partner), 0);
}

/* A program that is killed while it waits for an answer, or before it has answered. */
static void a_killed_partner_is_not_waited_for(void)
{
	unsigned long word;
	RT_TASK *child;
	pid_t pid = fork();

	if (pid == 0) {
		rt_task_init(nam2num("CALLER"), 1, 0, 0);
		rt_rpc(main_task, 9, NULL);
		_exit(1);
	}
	CHECK((child = rt_receive(NULL, &word)) && word == 9);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	UNTIL(rt_return(child, 0) == MSG_ERR || !rt_get_adr(nam2num("CALLER")));
	CHECK(has_priorities(NULL, 50 + SOFT, 50 + SOFT));
	pid = fork();
	if (pid == 0) {
		rt_task_init(nam2num("CALLED"), 1, 0, 0);
		rt_receive(main_task, NULL);
		kill(getpid(), SIGKILL);
	}
	UNTIL((child = (RT_TASK *)rt_get_adr(nam2num("CALLED"))) && waits(child));
	CHECK(rt_rpc(child, 1, &word) == ERROR(RTE_OBJREM));
	CHECK(waitpid(pid, NULL, 0) == pid);
}

int main(void)
{
	main_task = rt_task_init(nam2num("MAIN"), 50, 0, 0);
	CHECK(main_task);
	words_are_received_by_priority();
	calls_wait_for_an_answer();
	waits_end_otherwise();
	a_receiver_that_waits_gets_it_at_once();
	a_deleted_task_is_not_waited_for();
	bytes_are_received_and_returned();
	proxies_send_without_waiting();
	a_proxy_wakes_its_task();
	a_killed_partner_is_not_waited_for();
	return 0;
}
