/* SPDX-License-Identifier: MIT */
/*
 * The calls of liblxrt, in any order, with right and wrong arguments: each returns what its header
 * says. A second task sends, receives and signals meanwhile. When all is deleted, nothing is left:
 * no inherited priority, no room that is missing.
 *
 * Waits have an end that is near: those without one are left out.
 */
#include <pthread.h>
#include <unistd.h>

#include <rtai_bits.h>
#include <rtai_lxrt.h>
#include <rtai_mbx.h>
#include <rtai_msg.h>
#include <rtai_sem.h>
#include <rtai_tbx.h>
#include <rtai_wd.h>

#include "numbers.h"

#define SLOTS 4
#define SOON 200000 /* ns */

enum kind { SEMAPHORE, MAILBOX, BITS_OF, QUEUE, PROXY, TASK, KINDS };

static void *held[KINDS][SLOTS];
static unsigned char bytes[5000];
static RT_TASK *self, *other;

/* One that is held, one of another kind, or any number. */
static void *object(struct stream *in, enum kind kind)
{
	uint8_t choice = stream_byte(in);

	if (choice < 220)
		return held[kind][choice % SLOTS];
	if (choice < 235)
		return held[stream_below(in, KINDS)][choice % SLOTS];
	return choice < 245 ? NULL : (void *)(uintptr_t)stream_number(in);
}

static int size(struct stream *in)
{
	return (int)stream_below(in, 3) - 1 + (int)stream_below(in, sizeof(bytes) - 2);
}

static RTIME soon(struct stream *in)
{
	return stream_byte(in) ? (RTIME)stream_below(in, SOON) : -(RTIME)(stream_number(in) >> 1);
}

/* A result of a call: 0, a count, or an error number of RTAI or of Linux. */
static void is_result(long result)
{
	MUST(result > -4096 && result <= RTE_HIGERR);
}

/* A task, or an error number as its address. */
static void is_task(RT_TASK *task)
{
	unsigned long result = (unsigned long)task;

	MUST(result == 0 || task == self || task == other || rt_get_name(task) != 0 ||
	     (result >= RTE_LOWERR && result <= RTE_HIGERR));
}

static void make(struct stream *in)
{
	enum kind kind = (enum kind)stream_below(in, KINDS);
	void **slot = &held[kind][stream_below(in, SLOTS)];
	unsigned long name = stream_byte(in) ? 0 : stream_number(in);

	if (*slot)
		return;
	switch (kind) {
	case SEMAPHORE:
		*slot = rt_typed_sem_init(name, (int)stream_number(in), (int)stream_byte(in));
		break;
	case MAILBOX:
		*slot = rt_typed_mbx_init(name, size(in), (int)stream_byte(in));
		break;
	case BITS_OF:
		*slot = rt_bits_init(name, stream_number(in));
		break;
	case QUEUE:
		*slot = rt_msgq_init(name, (int)stream_below(in, 6), 0);
		break;
	case PROXY:
		*slot = rt_proxy_attach(object(in, TASK), bytes, size(in), (int)stream_byte(in));
		break;
	default:
		break;
	}
}

static void delete(struct stream *in)
{
	enum kind kind = (enum kind)stream_below(in, PROXY + 1);
	int n = (int)stream_below(in, SLOTS);
	void *bad = object(in, TASK);

	switch (kind) {
	case SEMAPHORE:
		is_result(rt_sem_delete(held[kind][n]));
		is_result(rt_sem_delete(bad));
		break;
	case MAILBOX:
		is_result(rt_mbx_delete(held[kind][n]));
		break;
	case BITS_OF:
		is_result(rt_bits_delete(held[kind][n]));
		break;
	case QUEUE:
		is_result(rt_msgq_delete(held[kind][n]));
		break;
	default:
		is_result(rt_proxy_detach(held[kind][n]));
	}
	held[kind][n] = NULL;
}

static void call_semaphore(struct stream *in)
{
	SEM *sem = object(in, SEMAPHORE), *second = object(in, SEMAPHORE);

	switch (stream_below(in, 9)) {
	case 0:
		is_result(rt_sem_signal(sem));
		break;
	case 1:
		is_result(rt_sem_broadcast(sem));
		break;
	case 2:
		rt_sem_wait_if(sem);
		break;
	case 3:
		rt_sem_wait_timed(sem, soon(in));
		break;
	case 4:
		rt_sem_wait_until(sem, rt_get_time() + soon(in));
		break;
	case 5:
		rt_sem_count(sem);
		break;
	case 6:
		is_result(rt_cond_wait_timed(sem, second, soon(in)));
		break;
	case 7:
		is_result(rt_cond_signal(sem));
		break;
	default:
		/* Of as many as are there already it waits for none. */
		if (rt_sem_count(sem) == 1)
			is_result(rt_sem_wait_barrier(sem));
	}
}

static void call_mailbox(struct stream *in)
{
	MBX *mailbox = object(in, MAILBOX);
	struct rt_poll_s entries[2] = { { mailbox, stream_below(in, 4) },
					{ object(in, MAILBOX), stream_below(in, 4) } };

	switch (stream_below(in, 9)) {
	case 0:
		is_result(rt_mbx_send_if(mailbox, bytes, size(in)));
		break;
	case 1:
		is_result(rt_mbx_send_wp(mailbox, bytes, size(in)));
		break;
	case 2:
		is_result(rt_mbx_send_timed(mailbox, bytes, size(in), soon(in)));
		break;
	case 3:
		is_result(rt_mbx_ovrwr_send(mailbox, bytes, size(in)));
		break;
	case 4:
		is_result(rt_mbx_receive_if(mailbox, bytes, size(in)));
		break;
	case 5:
		is_result(rt_mbx_receive_wp(mailbox, bytes, size(in)));
		break;
	case 6:
		is_result(rt_mbx_receive_timed(mailbox, bytes, size(in), soon(in)));
		break;
	case 7:
		is_result(rt_mbx_evdrp(mailbox, bytes, size(in)));
		break;
	default:
		is_result(rt_poll(entries, 2, -(RTIME)stream_below(in, SOON) - 1));
	}
}

static void call_bits(struct stream *in)
{
	BITS *bits = object(in, BITS_OF);
	unsigned long seen;
	int test = (int)stream_below(in, 18) - 1, change = (int)stream_below(in, 6) - 1;

	switch (stream_below(in, 5)) {
	case 0:
		rt_get_bits(bits);
		break;
	case 1:
		rt_bits_reset(bits, stream_number(in));
		break;
	case 2:
		rt_bits_signal(bits, change, stream_number(in));
		break;
	case 3:
		is_result(rt_bits_wait_if(bits, test, stream_number(in), change, stream_number(in),
					  stream_byte(in) ? &seen : NULL));
		break;
	default:
		is_result(rt_bits_wait_timed(bits, test, stream_number(in), change,
					     stream_number(in), soon(in), &seen));
	}
}

static void call_queue(struct stream *in)
{
	RT_MSGQ *queue = object(in, QUEUE);
	int priority = (int)stream_below(in, 4);

	switch (stream_below(in, 6)) {
	case 0:
		is_result(rt_msg_send_if(queue, bytes, size(in), priority));
		break;
	case 1:
		is_result(rt_msg_send_timed(queue, bytes, size(in), priority, soon(in)));
		break;
	case 2:
		is_result(rt_msg_receive_if(queue, bytes, size(in), &priority));
		break;
	case 3:
		is_result(rt_msg_receive_timed(queue, bytes, size(in), NULL, soon(in)));
		break;
	case 4:
		is_result(rt_msg_evdrp(queue, bytes, size(in), &priority));
		break;
	default:
		is_result(rt_msg_broadcast(queue, bytes, size(in), priority));
	}
}

static void call_message(struct stream *in)
{
	RT_TASK *task = object(in, stream_byte(in) % 4 ? TASK : PROXY);
	unsigned long word;
	long length;

	switch (stream_below(in, 12)) {
	case 0:
		is_task(rt_send_if(task, stream_number(in)));
		break;
	case 1:
		is_task(rt_send_timed(task, stream_number(in), soon(in)));
		break;
	case 2:
		is_task(rt_sendx_if(task, bytes, size(in)));
		break;
	case 3:
		is_task(rt_sendx_timed(task, bytes, size(in), soon(in)));
		break;
	case 4:
		is_task(rt_receive_if(task, &word));
		break;
	case 5:
		is_task(rt_receive_timed(task, &word, soon(in)));
		break;
	case 6:
		is_task(rt_receivex_timed(task, bytes, size(in), &length, soon(in)));
		break;
	case 7:
		is_task(rt_evdrp(task, &word));
		break;
	case 8:
		is_task(rt_evdrpx(task, bytes, size(in), &length));
		break;
	case 9:
		is_task(rt_return(task, stream_number(in)));
		break;
	case 10:
		is_task(rt_returnx(task, bytes, size(in)));
		break;
	default:
		is_task(rt_trigger(task));
	}
}

static void call_task(struct stream *in)
{
	RT_TASK *task = object(in, TASK);
	RT_TASK_INFO info;
	RTIME times[3];

	switch (stream_below(in, 10)) {
	case 0:
		is_result(rt_task_suspend_timed(NULL, soon(in)));
		break;
	case 1:
		is_result(rt_task_suspend_if(NULL));
		break;
	case 2:
		is_result(rt_task_masked_unblock(task, stream_number(in)));
		break;
	case 3:
		rt_change_prio(task, (int)stream_number(in));
		break;
	case 4:
		is_result(rt_task_get_info(task, &info));
		rt_get_prio(task);
		rt_get_inher_prio(task);
		break;
	case 5:
		is_result(rt_sleep((RTIME)stream_below(in, SOON)));
		break;
	case 6:
		rt_get_exectime(task, times);
		break;
	case 7:
		is_result(rt_task_make_periodic(NULL, rt_get_time() + stream_below(in, SOON),
						stream_below(in, SOON)));
		is_result(rt_task_wait_period());
		break;
	case 8:
		rt_spv_RMS((int)stream_number(in));
		break;
	default:
		rt_get_adr(stream_number(in));
	}
}

/* The settings of the watchdog; it must not end the fuzzer's own task. */
static void set_watchdog(struct stream *in)
{
	static int (*const settings[])(int) = {
		rt_wdset_grace, rt_wdset_gracediv, rt_wdset_safety, rt_wdset_slip, rt_wdset_stretch,
		rt_wdset_limit,
	};
	unsigned choice = stream_below(in, 7);
	int value = stream_byte(in) ? (int)stream_below(in, 8) - 2 : (int)stream_number(in);

	/* It is no longer than the tasks' other waits. */
	if (choice == 3)
		value %= 1000;
	if (choice < 6)
		settings[choice](value);
	else if (value != WD_KILL)
		rt_wdset_policy((wd_policy)value);
}

/* Answers the fuzzer's task, as long as the program lives. */
static void *answer(void *argument)
{
	unsigned char own[64];
	long length;

	other = rt_task_init(nam2num("OTHER"), 7, 0, 0);
	MUST(other);
	for (unsigned n = 0;; n++) {
		RT_TASK *from = rt_receivex_timed(NULL, own, sizeof(own), &length, SOON);

		if ((unsigned long)from > RTE_HIGERR && rt_isrpc(from))
			rt_returnx(from, own, sizeof(own));
		rt_sem_signal(held[SEMAPHORE][n % SLOTS]);
		rt_mbx_receive_wp(held[MAILBOX][n % SLOTS], own, sizeof(own));
		rt_msg_receive_if(held[QUEUE][n % SLOTS], own, sizeof(own), NULL);
		rt_bits_signal(held[BITS_OF][n % SLOTS], SET_BITS, n);
		/* A suspension that waited for the release of a resource has no end of its own. */
		rt_task_masked_unblock(self, RT_SCHED_SUSPENDED);
	}
	return argument;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	pthread_t thread;

	(void)argc;
	(void)argv;
	/* scripts/fuzz sets it: objects of others stay out of it. */
	MUST(getenv("PUNCTUAL_SHM_DIR"));
	self = rt_task_init(nam2num("SELF"), 5, 0, 0);
	MUST(self && pthread_create(&thread, NULL, answer, NULL) == 0);
	while (!rt_get_adr(nam2num("OTHER")))
		usleep(1000);
	held[TASK][0] = self;
	held[TASK][1] = other;
	held[TASK][2] = other;
	return 0;
}

/* Deletes what is held, and what was sent to this task. */
static void delete_all(void)
{
	int priority, base;

	for (int n = 0; n < SLOTS; n++) {
		rt_sem_delete(held[SEMAPHORE][n]);
		rt_mbx_delete(held[MAILBOX][n]);
		rt_bits_delete(held[BITS_OF][n]);
		rt_msgq_delete(held[QUEUE][n]);
		rt_proxy_detach(held[PROXY][n]);
	}
	memset(held, 0, sizeof(held[0]) * TASK);
	while ((unsigned long)rt_receive_if(NULL, NULL) > RTE_HIGERR)
		;
	MUST(rt_get_priorities(NULL, &priority, &base) == 0 && priority == base);
	MUST(rt_change_prio(NULL, 5) == base);
	rt_wdset_policy(WD_NOTHING);
	/* It was resumed in advance, perhaps. */
	while (rt_task_suspend_if(NULL) < 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size_of_data)
{
	static void (*const calls[])(struct stream *) = {
		make, make, delete, call_semaphore, call_mailbox, call_bits, call_queue, call_message,
		call_task, set_watchdog,
	};
	struct stream in = { data, size_of_data };

	for (int n = 0; in.left > 0 && n < 64; n++)
		calls[stream_below(&in, sizeof(calls) / sizeof(*calls))](&in);
	delete_all();
	return 0;
}
