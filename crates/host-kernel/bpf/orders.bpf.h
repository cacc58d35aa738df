/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The programs behind orders.h. An order is an instant like any other: what was executed and what happened is taken in,
 * the order is carried out, and who is to run is chosen anew, all at one time with interrupts off.
 */
#ifndef PUNCTUAL_ORDERS_BPF_H
#define PUNCTUAL_ORDERS_BPF_H

/* The instant begins; `irq` is to be given to order_ends. 0, or -EXDEV and it did not begin. */
#define order_begins(order, irq)                                                                       \
	({                                                                                             \
		bpf_local_irq_save(irq);                                                               \
		(order)->now = bpf_ktime_get_ns();                                                     \
		bool here = domain_on((__s32)bpf_get_smp_processor_id()) == (order)->domain &&         \
			    (order)->domain < PD_DOMAINS;                                              \
		if (here)                                                                              \
			domain_take_in((order)->domain, (order)->now, scx_bpf_now());                  \
		here ? 0 : -EXDEV;                                                         \
	})

PD_INLINE void order_decides(__u32 domain, pd_u64 now)
{
	struct punctual_domain *c = DOMAIN(domain);

	domain_choose(domain, now);
	c->decided = 0;
	if (domain_differs(domain, now))
		kick(domain_cpu(domain));
	domain_set_due(domain, c->taken);
	alarm_set(domain);
}

PD_INLINE void order_draft_job(pd_ref d, struct punctual_order *order)
{
	struct pd_job_attr PD_ARENA *a = pd_draft(d);

	a->start = order->job.start;
	a->finish = order->job.finish;
	a->budget = order->job.budget;
	a->priority = order->job.priority;
	a->cookie = order->job.cookie;
	a->task = order->job.task;
	a->group = order->job.group;
	a->server = order->job.server;
	a->budget_group = order->job.budget_group;
	a->budget_server = order->job.budget_server;
	a->reserved = 0;
}

/* Starts with the records of this reservation. Earlier records belong to other reservations, and the ring may already have
 * overwritten them. */
PD_INLINE void order_handle_overruns(pd_ref d, __u32 domain, __u32 overrun)
{
	struct punctual_domain *c = DOMAIN(domain);

	if (c->heeds || (overrun != PD_SIGNAL && overrun != PD_BACKGROUND))
		return;
	c->heeded = PD(d)->record_count;
	c->heeds = 1;
}

PD_INLINE void order_draft_reservation(pd_ref d, struct punctual_order *order)
{
	struct pd_reservation_attr PD_ARENA *a = &PD(d)->reservation_draft;

	a->start = order->reservation.start;
	a->period = order->reservation.period;
	a->budget = order->reservation.budget;
	a->deadline = order->reservation.deadline;
	a->priority = order->reservation.priority;
	a->cookie = order->reservation.cookie;
	a->task = order->reservation.task;
	a->group = order->reservation.group;
	a->overrun = order->reservation.overrun;
	a->wakeup_rule = order->reservation.wakeup_rule;
	a->server = order->reservation.server;
	a->budget_group = order->reservation.budget_group;
	a->budget_server = order->reservation.budget_server;
	a->own_cookie = order->reservation.own_cookie;
	order_handle_overruns(d, order->domain, a->overrun);
}

/* A number that is no reservation's is none that was not made either. */
PD_INLINE bool order_reservation(pd_ref d, __u32 number)
{
	return number < PD(d)->limits.reservations;
}

/* Of a task's own job its waits are to know. */
PD_INLINE pd_i64 order_added(struct punctual_order *order, pd_i64 job)
{
	if (job > 0 && order->job.task < PUNCTUAL_TASKS)
		wait_job_added(order->domain, order->job.task, order->now);
	return job;
}

PD_INLINE pd_i64 order_do(pd_ref d, struct punctual_order *order)
{
	switch (order->what) {
	case PUNCTUAL_JOB_ADD:
		order_draft_job(d, order);
		return order_added(order, pd_job_add(d, order->now));
	case PUNCTUAL_JOB_CANCEL:
		return pd_job_cancel(d, order->id, order->now);
	case PUNCTUAL_RESERVATION_ADD:
		order_draft_reservation(d, order);
		return pd_reservation_add(d, order->now);
	case PUNCTUAL_RESERVATION_CHANGE:
		order_draft_reservation(d, order);
		return pd_reservation_change(d, order->number, order->now);
	case PUNCTUAL_RESERVATION_REMOVE:
		return pd_reservation_remove(d, order->number, order->now);
	case PUNCTUAL_WINDOW_ADD:
		return pd_window_add(d, order->time, order->cookie, order->number, order->now);
	case PUNCTUAL_WINDOW_DROP:
		return pd_window_drop(d, order->now);
	}
	return -EINVAL;
}

PD_INLINE pd_i64 order_query(pd_ref d, struct punctual_order *order)
{
	switch (order->what) {
	case PUNCTUAL_REMAINING:
		return (pd_i64)pd_job_remaining(d, order->id);
	case PUNCTUAL_USED:
		return (pd_i64)pd_job_used(d, order->id);
	case PUNCTUAL_STANDING:
		return pd_job_standing(d, order->id);
	case PUNCTUAL_JOB_OF:
		return (pd_i64)pd_reservation_job(d, order->number);
	case PUNCTUAL_DELAYED:
		return pd_reservation_delayed(d, order->number);
	case PUNCTUAL_ENFORCEMENT_ERROR:
		return pd_reservation_error(d, order->number) - PUNCTUAL_LEAST_ERROR;
	}
	return -EINVAL;
}

/* Asleep until a thread of it is runnable. */
PD_INLINE pd_i64 member_task_add(struct punctual_order *order)
{
	pd_ref d = PD_AT(order->domain);
	pd_i64 number = pd_task_add(d, order->now);

	if (number < 0)
		return number;
	/* Threads of the last one of this number still wait to be let out. */
	if (number >= PUNCTUAL_TASKS || TASK_OF(order->domain, number)->runnable) {
		pd_task_gone(d, (pd_u32)number, order->now);
		return number >= PUNCTUAL_TASKS ? -ENOSPC : -EBUSY;
	}
	pd_task_blocked(d, (pd_u32)number, order->now);
	wait_begins(order->domain, (pd_u32)number);
	return number;
}

PD_INLINE pd_i64 member_task_gone(struct punctual_order *order)
{
	int failed = pd_task_gone(PD_AT(order->domain), order->number, order->now);

	if (!failed)
		domain_gone(order->domain, order->number);
	return failed;
}

/* SCHED_FIFO and the like are above every sched_ext scheduler. */
PD_INLINE bool out_of_reach(struct task_struct *p)
{
	return p->policy == SCHED_FIFO || p->policy == SCHED_RR || p->policy == SCHED_DEADLINE;
}

PD_INLINE pd_i64 member_join(struct task_struct *p, struct punctual_order *order)
{
	struct punctual_task *t = TASK_OF(order->domain, order->number);
	bool allocator = order->id & PUNCTUAL_ALLOCATOR;
	struct member joins = {};
	struct member *m;

	if (p->flags & (PF_EXITING | PF_KTHREAD))
		return -ESRCH;
	if (out_of_reach(p))
		return -EOPNOTSUPP;
	if (!allocator &&
	    (order->number >= PUNCTUAL_TASKS || !PD_TASK(PD_AT(order->domain), order->number)->used))
		return -ENOENT;
	joins.domain = order->domain;
	joins.task = order->number % PUNCTUAL_TASKS;
	joins.generation = t->generation;
	joins.flags = (__u32)order->id;
	joins.left = 1;
	m = bpf_task_storage_get(&members, p, &joins, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!m)
		return -ENOMEM;
	/* It may be one of a task that is there no longer. */
	if (!m->left && m->generation == TASK_OF(m->domain, m->task)->generation)
		return -EBUSY;
	member_leave(m);
	m->domain = joins.domain;
	m->task = joins.task;
	m->generation = joins.generation;
	m->flags = joins.flags;
	if (!allocator) {
		if (!__sync_fetch_and_add(&t->members, 1))
			t->leader = (__u32)p->tgid;
	}
	m->left = 0;
	anybody = 1;
	return 0;
}

/* Not inline: its variables would be on the stack below the dispatcher's deepest calls, which takes all 512 bytes. */
static __noinline pd_i64 member_thread(struct punctual_order *order)
{
	struct task_struct *p = bpf_task_from_vpid((__s32)order->value);
	pd_i64 result = -ESRCH;
	struct member *m;

	if (!p)
		return -ESRCH;
	if (order->what == PUNCTUAL_JOIN) {
		result = member_join(p, order);
	} else {
		m = bpf_task_storage_get(&members, p, 0, 0);
		if (m && !m->left) {
			member_leave(m);
			result = 0;
		}
	}
	bpf_task_release(p);
	return result;
}

PD_INLINE pd_i64 member_do(pd_ref d, struct punctual_order *order)
{
	switch (order->what) {
	case PUNCTUAL_TASK_ADD:
		return member_task_add(order);
	case PUNCTUAL_TASK_GONE:
		return member_task_gone(order);
	case PUNCTUAL_JOIN:
	case PUNCTUAL_LEAVE:
		return member_thread(order);
	case PUNCTUAL_SET_ORDER:
		return pd_group_set_order(d, order->number, order->value);
	case PUNCTUAL_TIMER_ASK:
		return pd_timer_ask(d, order->time, order->cookie, order->now);
	case PUNCTUAL_TIMER_CANCEL:
		return pd_timer_cancel(d, order->id, order->now);
	case PUNCTUAL_OVER:
		return order->number < PUNCTUAL_TASKS ? wait_over(order->domain, order->number, order->id) : -ENOENT;
	}
	return -EINVAL;
}

/* These take no part in an instant of the dispatcher's, or begin several. */
PD_INLINE pd_i64 timer_do(struct punctual_order *order)
{
	if (order->what == PUNCTUAL_TIMER_CREATE)
		return order->domain < PD_DOMAINS ? alarm_create(order->domain) : -EINVAL;
	if (order->what == PUNCTUAL_TIMER_TURN && alarm_config.by_thread)
		return alarm_thread_turn(order);
	return -EINVAL;
}

SEC("syscall")
int punctual_order(struct punctual_order *order)
{
	unsigned long irq;
	pd_i64 result;

	if (order->what >= PUNCTUAL_TIMER_CREATE) {
		order->result = timer_do(order);
		return 0;
	}
	result = order_begins(order, &irq);
	if (!result) {
		pd_ref d = PD_AT(order->domain);

		if (order->what < PUNCTUAL_REMAINING)
			result = order_do(d, order);
		else if (order->what < PUNCTUAL_TASK_ADD)
			result = order_query(d, order);
		else
			result = member_do(d, order);
		order_decides(order->domain, order->now);
	}
	bpf_local_irq_restore(&irq);
	order->result = result;
	/* A queue stays for the next task of that number. This may sleep. */
	if (order->what == PUNCTUAL_TASK_ADD && result >= 0)
		scx_bpf_create_dsq(TASK_QUEUE(IN_DOMAINS(order->domain), result), -1);
	return 0;
}

SEC("syscall")
int punctual_look(struct punctual_look *look)
{
	struct punctual_domain *c = DOMAIN(look->domain);
	pd_ref d = PD_AT(look->domain);
	unsigned long irq;

	if (look->domain >= PD_DOMAINS || !d)
		return -EINVAL;
	bpf_local_irq_save(&irq);
	if (domain_on((__s32)bpf_get_smp_processor_id()) != look->domain) {
		bpf_local_irq_restore(&irq);
		return -EXDEV;
	}
	pd_while (look->pop) {
		pd_event_pop(d);
		look->pop--;
	}
	look->record_count = PD(d)->record_count;
	look->event_head = PD(d)->event_head;
	look->event_tail = PD(d)->event_tail;
	look->event_lost = PD(d)->event_lost;
	look->throttled = c->throttled;
	look->arm_failures = c->arm_failures;
	look->next = c->due;
	bpf_local_irq_restore(&irq);
	look->records = (pd_u64)PD_RECORD(d, 0);
	look->events = (pd_u64)PD_EVENT(d, 0);
	look->head = (pd_u64)&PD(d)->event_head;
	return 0;
}

SEC("syscall")
int punctual_create(struct punctual_create *create)
{
	struct punctual_domain *c = DOMAIN(create->domain);
	int failed;

	if (create->domain >= PD_DOMAINS || create->cpu >= MOST_CPUS)
		return -EINVAL;
	if (domain_of[create->cpu % MOST_CPUS])
		return -EBUSY;
	failed = pd_make(create->domain, &create->limits);
	if (!failed)
		failed = pd_set_granularity(PD_AT(create->domain), create->granularity);
	if (failed)
		return failed;
	c->task = PD_NONE;
	c->choice = PD_NONE;
	c->tail = PD_NONE;
	c->turn_end = PD_INFINITE;
	c->next = PD_INFINITE;
	c->due = PD_INFINITE;
	c->deciding = DECIDING_MOST;
	c->hears = create->hears;
	cpu_of[IN_DOMAINS(create->domain)] = create->cpu + 1;
	domain_of[create->cpu % MOST_CPUS] = create->domain + 1;
	return 0;
}

#endif
