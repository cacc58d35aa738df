/* SPDX-License-Identifier: MIT */
/* Bits: conditions, changes, the order of tasks, deletion. */
#include "hard_tasks.h"

#include <rtai_bits.h>

static BITS *bits;

struct waiter {
	int test, change, result;
	unsigned long mask, changed, seen;
	RT_TASK *volatile task;
	pthread_t thread;
};

static void *waits(void *argument)
{
	struct waiter *me = argument;

	CHECK(rt_task_init(0, 5, 0, 0));
	me->task = rt_agent();
	me->result = rt_bits_wait(bits, me->test, me->mask, me->change, me->changed, &me->seen);
	return NULL;
}

static void begin_waiter(struct waiter *waiter, int test, unsigned long mask, int change,
			 unsigned long changed)
{
	memset(waiter, 0, sizeof(*waiter));
	waiter->test = test;
	waiter->mask = mask;
	waiter->change = change;
	waiter->changed = changed;
	waiter->result = -1;
	waiter->thread = begin(waits, waiter);
	UNTIL(waiter->task && rt_task_masked_unblock(waiter->task, 0) == RTE_UNBLKD);
}

static void without_a_wait(void)
{
	unsigned long seen = 0;

	bits = rt_bits_init(nam2num("BITS"), 0x5);
	CHECK(bits && rt_get_adr(nam2num("BITS")) == bits && !rt_bits_init(nam2num("BITS"), 0));
	CHECK(rt_get_bits(bits) == 5 && rt_bits_signal(bits, SET_BITS, 0x18) == 0x1d);
	CHECK(rt_bits_signal(bits, CLR_BITS, 0x9) == 0x14);
	CHECK(rt_bits_signal(bits, SET_CLR_BITS, 0x3 | 0x4UL << 32) == 0x13);
	CHECK(rt_bits_signal(bits, NOP_BITS, 0xff) == 0x13);
	RETURNS(rt_bits_wait_if(bits, ALL_SET, 0x7, CLR_BITS, 0xff, &seen), 0);
	CHECK(seen == 0x13 && rt_get_bits(bits) == 0x13);
	RETURNS(rt_bits_wait_if(bits, ANY_SET, 0x7, CLR_BITS, 0x10, &seen), 1);
	CHECK(seen == 0x13 && rt_get_bits(bits) == 3);
	RETURNS(rt_bits_wait(bits, ALL_SET_AND_ALL_CLR, 0x3 | 0x4UL << 32, SET_BITS, 4, &seen), 0);
	CHECK(seen == 3 && rt_get_bits(bits) == 7);
	RETURNS(rt_bits_wait_timed(bits, ANY_CLR, 0x7, NOP_BITS, 0, MS, &seen), RTE_TIMOUT);
	CHECK(rt_bits_reset(bits, 0) == 7 && rt_get_bits(bits) == 0);
}

static void waits_end(void)
{
	unsigned long seen = 9;
	struct waiter all, any, clear;

	RETURNS(rt_bits_wait_timed(bits, ALL_SET, 1, NOP_BITS, 0, MS, &seen), RTE_TIMOUT);
	CHECK(seen == 0);
	RETURNS(rt_bits_wait_until(bits, ALL_SET, 1, NOP_BITS, 0, rt_get_time() - 1, NULL),
		RTE_TIMOUT);
	RETURNS(rt_bits_wait_timed(bits, ALL_CLR, 1, SET_BITS, 1, MS, NULL), 0);
	begin_waiter(&all, ALL_SET, 0x6, CLR_BITS, 0x2);
	begin_waiter(&any, ANY_SET, 0x6, NOP_BITS, 0);
	begin_waiter(&clear, ALL_CLR, 0x1, NOP_BITS, 0);
	CHECK(rt_bits_signal(bits, SET_BITS, 0x8) == 0x9);
	CHECK(rt_bits_signal(bits, SET_BITS, 0x2) == 0xb);
	join(any.thread);
	CHECK(any.result == 0 && any.seen == 0xb && all.result == -1);
	CHECK(rt_bits_signal(bits, SET_BITS, 0x4) == 0xf);
	join(all.thread);
	CHECK(all.result == 0 && all.seen == 0xf && rt_get_bits(bits) == 0xd);
	CHECK(rt_bits_signal(bits, CLR_BITS, 0x1) == 0xc);
	join(clear.thread);
	CHECK(clear.result == 0 && clear.seen == 0xc);

	begin_waiter(&all, ALL_SET, 0x100, SET_BITS, 0x200);
	begin_waiter(&any, ANY_SET, 0x100, NOP_BITS, 0);
	CHECK(rt_bits_reset(bits, 0x400) == 0xc);
	join(all.thread);
	join(any.thread);
	CHECK(all.result == 0 && any.result == 0 && rt_get_bits(bits) == 0x600);
	begin_waiter(&all, ALL_SET, 0x100, NOP_BITS, 0);
	RETURNS(rt_task_masked_unblock(all.task, RT_SCHED_SEMAPHORE), RTE_UNBLKD);
	join(all.thread);
	RETURNS(all.result, RTE_UNBLKD);
	begin_waiter(&all, ALL_SET, 0x100, NOP_BITS, 0);
	RETURNS(rt_bits_delete(bits), 0);
	join(all.thread);
	RETURNS(all.result, RTE_OBJREM);
}

static void is_refused(void)
{
	RETURNS(rt_bits_delete(bits), -EFAULT);
	CHECK(rt_get_bits(bits) == BITS_ERR && rt_bits_reset(bits, 0) == BITS_ERR);
	CHECK(rt_bits_signal(bits, SET_BITS, 1) == BITS_ERR);
	RETURNS(rt_bits_wait(bits, ALL_SET, 1, NOP_BITS, 0, NULL), BITS_ERR);
	RETURNS(rt_bits_wait_if(bits, ALL_SET, 1, NOP_BITS, 0, NULL), BITS_ERR);
	bits = rt_bits_init(0, 0);
	CHECK(bits);
	CHECK(rt_bits_signal(bits, 4, 1) == BITS_ERR && rt_bits_signal(bits, -1, 1) == BITS_ERR);
	RETURNS(rt_bits_wait_if(bits, 16, 1, NOP_BITS, 0, NULL), BITS_ERR);
	RETURNS(rt_bits_wait(bits, ALL_CLR, 1, 9, 0, NULL), BITS_ERR);
	RETURNS(rt_bits_delete(bits), 0);
}

int main(void)
{
	CHECK(rt_task_init(nam2num("MAIN"), 5, 0, 0));
	without_a_wait();
	waits_end();
	is_refused();
	return 0;
}
