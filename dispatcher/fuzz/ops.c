/* SPDX-License-Identifier: MIT */
/*
 * Fuzzer: a stream of operations on a small dispatcher, in which few jobs, groups and nodes meet
 * in few instants. After each, the invariants are checked from the outside.
 */
#include "shadow.h"

static const struct pd_limits limits = {
	.jobs = JOBS,
	.tasks = TASKS,
	.reservations = RESERVATIONS,
	.groups = GROUPS,
	.budget_groups = NODES,
	.timers = TIMERS,
	.depth = DEPTH,
	.events = 256,
	.records = 16,
	.cpus = 1,
	.windows = WINDOWS,
};

/* Mostly soon; now and then never. */
static pd_u64 some_time(struct shadow *s, struct stream *in)
{
	uint8_t byte = stream_byte(in);

	if (byte >= 192)
		return PD_INFINITE;
	return s->now + byte % 16 < 4 ? 0 : s->now + byte % 16 - 4;
}

/* A job of one of the three kinds: all else is read by their readers. */
static void some_place(struct stream *in, pd_u32 *task, pd_u32 *group, pd_u32 *server,
		       pd_u32 *budget_group, pd_u32 *budget_server)
{
	uint8_t kind = stream_byte(in), place = stream_byte(in);

	*task = PD_NONE;
	*group = place % (GROUPS + 1);
	*server = 0;
	*budget_group = place / 16 % (NODES + 2);
	*budget_server = 0;
	switch (kind % 4) {
	case 0:
		*server = kind / 4 % (GROUPS + 1);
		break;
	case 1:
		*budget_server = kind / 4 % (NODES + 2);
		*group = 0;
		break;
	case 2:
		*task = kind / 4 % (TASKS + 1);
		break;
	case 3:
		*task = kind / 4 % TASKS;
		*group = 0;
		*budget_group = 0;
	}
}

static void add_job(struct shadow *s, struct stream *in)
{
	struct pd_job_attr attr = { 0 };
	pd_i64 id;

	some_place(in, &attr.task, &attr.group, &attr.server, &attr.budget_group, &attr.budget_server);
	attr.start = some_time(s, in);
	attr.finish = some_time(s, in);
	attr.budget = stream_below(in, 12);
	attr.priority = (pd_i64)stream_below(in, 4) - 2;
	attr.cookie = attr.priority & 1;
	*pd_job_draft(s->d) = attr;
	id = pd_job_add(s->d, s->now);
	if (id < 0)
		return;
	shadow_fix(s, attr.group, attr.server, attr.budget_group, attr.budget_server);
	shadow_added(s, id, &attr);
}

static void some_reservation(struct shadow *s, struct stream *in, struct pd_reservation_attr *a)
{
	uint8_t flags = stream_byte(in);

	*a = (struct pd_reservation_attr){ .start = some_time(s, in) };
	some_place(in, &a->task, &a->group, &a->server, &a->budget_group, &a->budget_server);
	a->period = stream_below(in, 16);
	a->deadline = stream_below(in, 16);
	a->budget = stream_below(in, 8);
	a->overrun = flags % 4;
	a->wakeup_rule = flags / 4 % 2;
	a->priority = flags / 8 % 4;
	a->cookie = flags;
	a->own_cookie = 1;
}

/* Windows for the next reservation: up to three, and now and then none is to stay. */
static void some_windows(struct shadow *s, struct stream *in, uint8_t how)
{
	pd_u64 end = 0;

	for (int i = how % 4; i > 0; i--) {
		uint8_t byte = stream_byte(in);
		pd_u64 start = end + byte % 4, length = byte / 4 % 8;
		int drafted = pd_window_add(s->d, start, length, byte / 32 % 2, s->now);

		MUST(drafted == 0 || drafted == -EINVAL || drafted == -ENOSPC);
		MUST(drafted != 0 || length != 0);
		end = byte / 32 % 2 ? 0 : start + length;
	}
	if (how >= 240)
		MUST(pd_window_drop(s->d, s->now) == 0);
}

static void add_reservation(struct shadow *s, struct stream *in)
{
	struct pd_reservation_attr a;
	pd_i64 r;

	some_reservation(s, in, &a);
	*pd_reservation_draft(s->d) = a;
	r = pd_reservation_add(s->d, s->now);
	if (r < 0)
		return;
	MUST(r < RESERVATIONS && !s->reservation_there[r]);
	shadow_fix(s, a.group, a.server, a.budget_group, a.budget_server);
	s->reservations[r] = a;
	s->reservation_there[r] = true;
	if (a.start <= s->now)
		s->fresh = false;
}

/* All but the group and the cookie, which the jobs to come have and the present one has not. */
static void change_reservation(struct shadow *s, struct stream *in)
{
	pd_u32 r = stream_below(in, RESERVATIONS);
	struct pd_reservation_attr a;

	some_reservation(s, in, &a);
	a.group = s->reservations[r].group;
	a.cookie = s->reservations[r].cookie;
	*pd_reservation_draft(s->d) = a;
	MUST(pd_reservation_change(s->d, r, s->now) < 0 || s->reservation_there[r]);
}

static void task_gone(struct shadow *s, pd_u32 task)
{
	pd_u32 lender = pd_task_lender(s->d, task);

	if (lender != PD_NONE) {
		MUST(s->task_lends_to[lender] == task);
		MUST(pd_task_gone(s->d, task, s->now) == -EBUSY);
		return;
	}
	if (pd_task_gone(s->d, task, s->now) < 0)
		return;
	MUST(s->task_there[task]);
	s->task_there[task] = s->task_sleeps[task] = false;
	s->task_lends_to[task] = PD_NONE;
	s->task_raised[task] = 0;
	for (int r = 0; r < RESERVATIONS; r++)
		if (s->reservations[r].task == task)
			s->reservation_there[r] = false;
}

static void set_blocked(struct shadow *s, pd_u32 task, bool blocked)
{
	int done = blocked ? pd_task_blocked(s->d, task, s->now) : pd_task_ready(s->d, task, s->now);

	MUST((done >= 0) == s->task_there[task]);
	if (done >= 0)
		s->task_sleeps[task] = blocked;
}

/* To a task, or to none. */
static void lend(struct shadow *s, pd_u32 task, pd_u32 to)
{
	int done = pd_task_lend(s->d, task, to, s->now);

	MUST(done != -ENOENT || !s->task_there[task] || (to != PD_NONE && !s->task_there[to]));
	MUST(done != -ELOOP || shadow_executed(s, to) == shadow_executed(s, task));
	if (done >= 0)
		s->task_lends_to[task] = to;
}

/* To a ceiling that jobs have, too, or to none. */
static void raise_task(struct shadow *s, struct stream *in, pd_u32 task)
{
	uint8_t byte = stream_byte(in);
	pd_u32 attribute = byte % 4 == 3 ? PD_BY_NOTHING : byte % 2 ? PD_BY_FINISH : PD_BY_PRIORITY;
	pd_u64 ceiling = attribute == PD_BY_FINISH ? some_time(s, in) : (pd_u64)(byte / 4 % 4) - 2;
	int done = pd_task_raise(s->d, task, attribute, ceiling, s->now);

	MUST((done >= 0) == s->task_there[task]);
	if (done < 0)
		return;
	s->task_raised[task] = attribute;
	s->task_ceiling[task] = ceiling;
}

static void set_order(struct shadow *s, struct stream *in, uint8_t argument)
{
	pd_u32 group = argument % (GROUPS + 1), first = stream_byte(in) % 6;

	if (pd_group_set_order(s->d, group, PD_ORDER(first, argument / 16 % 5, 0, 0)) >= 0)
		s->group_order[group] = first;
}

static void ask_timer(struct shadow *s, struct stream *in, uint8_t cookie)
{
	pd_u64 at = some_time(s, in);
	pd_i64 timer = pd_timer_ask(s->d, at, cookie, s->now);

	if (timer < 0)
		return;
	if (cookie & 1)
		MUST(pd_timer_cancel(s->d, timer, s->now) == 0);
	else if (at <= s->now)
		s->fresh = false;
}

static void charge(struct shadow *s, pd_u64 job, uint8_t ran)
{
	if (job)
		check_charge(s, job, ran % 8);
}

static void operate(struct shadow *s, struct stream *in)
{
	uint8_t op = stream_byte(in), argument = stream_byte(in);
	pd_u32 task = argument % TASKS, r = argument % RESERVATIONS;
	pd_u64 job = s->jobs[argument % JOBS].id;
	pd_i64 number;

	/* So few for the last three, that kept inputs mean what they meant. */
	switch (op >= 254 ? 26 : op >= 252 ? 25 : op >= 248 ? 24 : op % 24) {
	case 0: case 1: case 2:
		add_job(s, in);
		break;
	case 3: case 4: case 5:
		s->now += argument % 8;
		pd_advance(s->d, s->now);
		s->fresh = true;
		break;
	case 6: case 7:
		charge(s, pd_select(s->d, 0, s->now), argument);
		break;
	case 8:
		charge(s, job, stream_byte(in));
		break;
	case 9: /* what the task's best job is, and that it is charged */
		number = (pd_i64)pd_task_job(s->d, task);
		MUST(!number || pd_job_task(s->d, number) == shadow_executed(s, task));
		charge(s, number, argument / TASKS);
		break;
	case 10:
		MUST((pd_job_cancel(s->d, job, s->now) >= 0) == (job != 0));
		break;
	case 11:
		MUST((pd_job_complete(s->d, job, s->now) >= 0) == (job != 0));
		break;
	case 12:
		set_blocked(s, task, true);
		break;
	case 13: case 14:
		set_blocked(s, task, false);
		break;
	case 15: case 16:
		number = pd_task_add(s->d, s->now);
		MUST(number < TASKS);
		if (number >= 0) {
			MUST(!s->task_there[number]);
			s->task_there[number] = true;
		}
		break;
	case 17:
		task_gone(s, task);
		break;
	case 18:
		MUST((pd_task_done(s->d, task, s->now) >= 0) == s->task_there[task]);
		break;
	case 19:
		add_reservation(s, in);
		break;
	case 20:
		change_reservation(s, in);
		break;
	case 21:
		MUST((pd_reservation_remove(s->d, r, s->now) >= 0) == s->reservation_there[r]);
		s->reservation_there[r] = false;
		break;
	case 22:
		set_order(s, in, argument);
		break;
	case 23:
		ask_timer(s, in, argument);
		break;
	case 24:
		some_windows(s, in, argument);
		break;
	case 25:
		lend(s, task, argument / 64 ? argument / 4 % TASKS : PD_NONE);
		break;
	case 26:
		raise_task(s, in, task);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream in = { data, size };
	pd_u64 bytes = (pd_size(&limits) + 63) / 64 * 64;
	void *memory = aligned_alloc(64, bytes);
	struct shadow s;

	MUST(memory);
	__builtin_memset(memory, 0, bytes);
	shadow_make(&s, memory, &limits);
	s.granularity = stream_below(&in, 4) / 2;
	MUST(pd_set_granularity(s.d, s.granularity) == 0);
	while (in.left) {
		operate(&s, &in);
		check_all(&s);
	}
	free(memory);
	return 0;
}
