/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What user space asks of the scheduler, by test-run programs (src/orders.rs has the same). */
#ifndef PUNCTUAL_ORDERS_H
#define PUNCTUAL_ORDERS_H

struct pd_order_call {
	pd_u64 value; /* in: a group, a task, events to pop; out: a refusal or a number */
	pd_u64 order;
	pd_u64 records; /* out, of a look: addresses in the arena's mapping */
	pd_u64 events;
	pd_u64 record_count;
	pd_u64 event_head;
	pd_u64 event_tail;
	pd_u64 event_lost;
	pd_u64 exit_kind; /* 0 while the scheduler lives */
	pd_u64 throttled; /* times that the others' share was taken from jobs */
};

struct pd_reserve_call {
	pd_i64 result;
	struct pd_reservation_attr attr;
};

#endif
