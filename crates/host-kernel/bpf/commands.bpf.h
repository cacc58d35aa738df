/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * The programs behind commands.h. Each command charges elapsed execution, applies itself and
 * selects again, atomically: interrupts are off, and the domain's dispatcher is called on its CPU
 * only.
 */
#pragma once

/* Whether this is the domain's CPU. */
PD_INLINE bool command_is_here(__u32 domain) __irqs_off
{
	return domain < PD_DOMAINS && domain_on((__s32)bpf_get_smp_processor_id()) == domain;
}

PD_INLINE void command_end(__u32 domain, pd_u64 now) __irqs_off
{
	struct punctual_domain *c = DOMAIN(domain);

	domain_select(domain, now, !c->by_allocator);
	c->decided = 0;
	if (domain_differs(domain, now))
		kick(domain_cpu(domain));
	/* While an allocator's thread runs no job does: ops.running arms the timer for its end. */
	domain_set_next_event(domain, c->by_allocator ? PD_INFINITE : c->taken);
	timer_arm(domain);
}

/* Releases and overruns are handled from the records from here on: earlier ones belong to other
 * reservations, and the ring may already have overwritten them. */
PD_INLINE void command_follow_records(__u32 domain) __irqs_off
{
	struct punctual_domain *c = DOMAIN(domain);

	if (c->follows_records)
		return;
	c->followed = PD(PD_AT(domain))->record_count;
	c->follows_records = 1;
}

PD_INLINE void draft_reservation(pd_ref d, __u32 domain,
				 const struct pd_reservation_attr *from) __irqs_off
{
	pd_copy(&PD(d)->reservation_draft, from, );
	if (from->overrun == PD_SIGNAL || from->overrun == PD_BACKGROUND)
		command_follow_records(domain);
}

/* A job that an allocator adds ends its task's wait (late_wait.h). */
PD_INLINE pd_i64 command_job_add(pd_ref d, struct punctual_command *command) __irqs_off
{
	pd_i64 job;

	pd_copy(pd_draft(d), &command->job, );
	job = pd_job_add(d, command->now);
	if (job > 0 && command->job.task < PUNCTUAL_TASKS)
		wait_job_added(command->domain, command->job.task, command->now);
	return job;
}

PD_INLINE pd_i64 command_job_state(pd_ref d, struct punctual_command *command) __irqs_off
{
	pd_u32 i = pd_job_index(d, command->job_state.job);

	if (i == PD_NONE)
		return PD_FREE;
	command->job_state.used = PD_JOB(d, i)->used;
	command->job_state.remaining = PD_JOB(d, i)->attr.budget;
	return PD_JOB(d, i)->state;
}

/* Blocked until a thread of it is runnable. */
PD_INLINE pd_i64 command_task_add(pd_ref d, __u32 domain, pd_u64 now) __irqs_off
{
	pd_u32 number = PD(d)->free_task;

	if (number >= PUNCTUAL_TASKS)
		return -ENOSPC;
	/* Threads of the previous task of this number may still be in its queue. */
	if (TASK_OF(domain, number)->runnable)
		return -EBUSY;
	pd_task_add(d, now);
	pd_task_blocked(d, number, now);
	/* What the previous one's last threads executed after it was gone, in the background. */
	TASK_OF(domain, number)->uncharged = 0;
	domain_background(domain, number, 0);
	wait_begins(TASK_OF(domain, number));
	TASK_OF(domain, number)->awaits = 1;
	return number;
}

/* The thread's own lock is not held: it may run, wake or exit on another CPU. Safe, for `left` is
 * cleared last: until then its callbacks treat it as a best-effort thread. */
PD_INLINE pd_i64 member_join(struct task_struct *p, struct punctual_command *command) __irqs_off
{
	struct punctual_task *t = TASK_OF(command->domain, command->join.task);
	bool allocator = command->join.flags & PUNCTUAL_ALLOCATOR;
	struct member joins = {};
	struct member *m;

	if (p->flags & (PF_EXITING | PF_KTHREAD))
		return -ESRCH;
	if (p->policy == SCHED_FIFO || p->policy == SCHED_RR || p->policy == SCHED_DEADLINE)
		return -EOPNOTSUPP;
	if (!allocator && (command->join.task >= PUNCTUAL_TASKS ||
			   !PD_TASK(PD_AT(command->domain), command->join.task)->used))
		return -ENOENT;
	joins.domain = command->domain;
	joins.task = command->join.task % PUNCTUAL_TASKS;
	joins.generation = t->generation;
	joins.flags = command->join.flags;
	joins.left = 1;
	m = bpf_task_storage_get(&members, p, &joins, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!m)
		return -ENOMEM;
	/* It may be a member of a task that has ended. */
	if (!m->left && m->generation == TASK_OF(m->domain, m->task)->generation)
		return -EBUSY;
	member_leave(m);
	m->domain = joins.domain;
	m->task = joins.task;
	m->generation = joins.generation;
	m->flags = joins.flags;
	if (!allocator && !__sync_fetch_and_add(&t->members, 1))
		t->leader = (__u32)(joins.flags & PUNCTUAL_ALONE ? p->pid : p->tgid);
	__sync_lock_test_and_set(&m->left, 0);
	has_members = 1;
	return 0;
}

/* Not inline: its variables would be on the stack below the dispatcher's deepest calls, which takes
 * all 512 bytes. */
static __noinline pd_i64 command_join(struct punctual_command *command) __irqs_off
{
	struct task_struct *p = bpf_task_from_vpid((__s32)command->join.thread);
	pd_i64 result;

	if (!p)
		return -ESRCH;
	result = member_join(p, command);
	bpf_task_release(p);
	return result;
}

PD_INLINE pd_i64 command_execute(pd_ref d, struct punctual_command *command) __irqs_off
{
	__u32 domain = command->domain;
	pd_u64 now = command->now;

	switch (command->kind) {
	case PUNCTUAL_JOB_ADD:
		return command_job_add(d, command);
	case PUNCTUAL_JOB_CANCEL:
		return pd_job_cancel(d, command->job_id, now);
	case PUNCTUAL_RESERVATION_ADD:
		draft_reservation(d, domain, &command->reservation_add);
		return pd_reservation_add(d, now);
	case PUNCTUAL_RESERVATION_CHANGE:
		draft_reservation(d, domain, &command->reservation_change.to);
		return pd_reservation_change(d, command->reservation_change.reservation, now);
	case PUNCTUAL_RESERVATION_REMOVE:
		return pd_reservation_remove(d, command->reservation, now);
	case PUNCTUAL_WINDOW_ADD:
		return pd_window_add(d, command->window.start, command->window.length,
				     command->window.begins, now);
	case PUNCTUAL_WINDOW_DROP:
		return pd_window_drop(d, now);
	case PUNCTUAL_JOB_STATE:
		return command_job_state(d, command);
	case PUNCTUAL_RESERVATION_JOB:
		return (pd_i64)pd_reservation_job(d, command->reservation);
	case PUNCTUAL_RESERVATION_DELAYED:
		return pd_reservation_delayed(d, command->reservation);
	case PUNCTUAL_RESERVATION_ERROR:
		command->reservation_error.error =
			pd_reservation_error(d, command->reservation_error.reservation);
		return 0;
	}
	return -EINVAL;
}

/* As if its last thread had left: the next decision takes the task out (decide.h). Refused to none:
 * one that has gone has a number that is free, or another task's, which the caller rules out. */
PD_INLINE pd_i64 command_retire(pd_ref d, struct punctual_command *command) __irqs_off
{
	__u32 task = command->task;

	if (task >= PUNCTUAL_TASKS || !PD_TASK(d, task)->used)
		return -ENOENT;
	TASK_OF(command->domain, task)->gone = 1;
	note(command->domain, task);
	return 0;
}

/* Until it is called again; a task that goes ends what is lent to it (decide.h). */
PD_INLINE pd_i64 command_lend(pd_ref d, struct punctual_command *command) __irqs_off
{
	__u32 task = command->lend.task;
	__u32 to = command->lend.to;
	int refused = pd_task_lend(d, task, to, command->now);

	if (!refused) {
		TASK_OF(command->domain, task)->lends_to = to == PD_NONE ? 0 : to + 1;
		lender_note(command->domain, task);
		domain_lend(command->domain, command->now);
	}
	return refused;
}

/* The next decision finds it blocked, and cancels its job; or ready again (decide.h). */
PD_INLINE pd_i64 command_suspend(pd_ref d, struct punctual_command *command) __irqs_off
{
	__u32 task = command->suspend.task;
	__u32 on = command->suspend.on != 0;
	struct punctual_task *t = TASK_OF(command->domain, task);
	__u32 r;

	if (task >= PUNCTUAL_TASKS || !PD_TASK(d, task)->used)
		return -ENOENT;
	r = PD_TASK(d, task)->reservation;
	command_follow_records(command->domain);
	t->suspended = on;
	domain_background(command->domain, task, on);
	note(command->domain, task);
	return t->awaits && r != PD_NONE && pd_reservation_job(d, r);
}

PD_INLINE pd_i64 command_execute_of_task(pd_ref d, struct punctual_command *command) __irqs_off
{
	__u32 domain = command->domain;
	pd_u64 now = command->now;

	switch (command->kind) {
	case PUNCTUAL_TASK_ADD:
		return command_task_add(d, domain, now);
	case PUNCTUAL_TASK_RETIRE:
		return command_retire(d, command);
	case PUNCTUAL_TASK_LEND:
		return command_lend(d, command);
	case PUNCTUAL_TASK_SUSPEND:
		return command_suspend(d, command);
	case PUNCTUAL_TASK_JOIN:
		return command_join(command);
	case PUNCTUAL_GROUP_ORDER:
		return pd_group_set_order(d, command->group.group, command->group.order);
	case PUNCTUAL_TIMER_ADD:
		return pd_timer_ask(d, command->timer.at, command->timer.cookie, now);
	case PUNCTUAL_TIMER_CANCEL:
		return pd_timer_cancel(d, command->timer_id, now);
	case PUNCTUAL_RELEASE_END:
		if (command->release_end.task >= PUNCTUAL_TASKS)
			return -ENOENT;
		return wait_release_ended(domain, command->release_end.task,
					  command->release_end.flags);
	}
	return -EINVAL;
}

/* Interrupts stay on: the first may sleep, the second makes several decisions. */
PD_INLINE pd_i64 command_timer(struct punctual_command *command) __may_sleep
{
	if (command->domain >= PD_DOMAINS)
		return -EINVAL;
	if (command->kind == PUNCTUAL_TIMER_CREATE)
		return timer_create(command->domain);
	if (command->kind == PUNCTUAL_TIMER_PROCESS && timer_config.by_thread)
		return timer_process_run(command->domain);
	return -EINVAL;
}

#define COMMAND_EXECUTE(command, result, execute)                                             \
	do {                                                                                  \
		unsigned long irq;                                                            \
                                                                                              \
		bpf_local_irq_save(&irq);                                                     \
		(command)->now = bpf_ktime_get_ns();                                          \
		if (command_is_here((command)->domain)) {                                     \
			domain_update((command)->domain, (command)->now, scx_bpf_now());      \
			(result) = execute(PD_AT((command)->domain), command);                \
			command_end((command)->domain, (command)->now);                       \
		}                                                                             \
		bpf_local_irq_restore(&irq);                                                  \
	} while (0)

SEC("syscall")
int punctual_command(struct punctual_command *command)
{
	pd_i64 result = -EXDEV;

	COMMAND_EXECUTE(command, result, command_execute);
	command->result = result;
	return 0;
}

SEC("syscall")
int punctual_task_command(struct punctual_command *command)
{
	pd_i64 result = -EXDEV;

	if (command->kind >= PUNCTUAL_TIMER_CREATE) {
		command->result = command_timer(command);
		return 0;
	}
	COMMAND_EXECUTE(command, result, command_execute_of_task);
	command->result = result;
	/* The queue stays for the next task of this number. This call may sleep. */
	if (command->kind == PUNCTUAL_TASK_ADD && result >= 0)
		scx_bpf_create_dsq(TASK_QUEUE(IN_DOMAINS(command->domain), result), -1);
	return 0;
}

SEC("syscall")
int punctual_poll(struct punctual_poll *poll)
{
	struct punctual_domain *c = DOMAIN(poll->domain);
	pd_ref d = PD_AT(poll->domain);
	unsigned long irq;

	bpf_local_irq_save(&irq);
	if (!command_is_here(poll->domain)) {
		bpf_local_irq_restore(&irq);
		return -EXDEV;
	}
	pd_while (poll->pop) {
		pd_event_pop(d);
		poll->pop--;
	}
	poll->record_count = PD(d)->record_count;
	poll->event_tail = PD(d)->event_tail;
	poll->throttles = c->throttles;
	poll->arm_failures = c->arm_failures;
	bpf_local_irq_restore(&irq);
	poll->records = (pd_u64)PD_RECORD(d, 0);
	poll->events = (pd_u64)PD_EVENT(d, 0);
	poll->head = (pd_u64)&PD(d)->event_head;
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
	c->next_event = PD_INFINITE;
	c->deciding = DECIDING_MOST;
	c->asks_policies = create->asks_policies;
	cpu_of[IN_DOMAINS(create->domain)] = create->cpu + 1;
	domain_of[create->cpu % MOST_CPUS] = create->domain + 1;
	return 0;
}
