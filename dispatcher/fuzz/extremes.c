/* SPDX-License-Identifier: MIT */
/*
 * Fuzzer: limits and values at the ends of their ranges, and numbers that name nothing. It looks
 * for what the sanitizers see (memory, undefined behaviour), for calls that do not come back, and
 * for the few things that hold whatever the values are.
 */
#include "../punctual_dispatcher.h"
#include "stream.h"

/* Dispatchers larger than this are only measured, for the fuzzer's speed. */
#define LARGEST (1ULL << 20)

static pd_u32 some_limit(struct stream *in)
{
	static const pd_u32 at_the_ends[] = {
		1U << 10, (1U << 10) + 1, 1U << 20, (1U << 20) + 1, 1U << 31, ~0U,
	};
	uint8_t byte = stream_byte(in);

	return byte < 250 ? byte % 32 : at_the_ends[byte - 250];
}

static pd_u64 some_value(struct stream *in, pd_u64 now)
{
	uint8_t byte = stream_byte(in);
	pd_u64 small = byte / 8;

	switch (byte % 8) {
	case 0:
		return small;
	case 1:
		return now + small;
	case 2:
		return now - small;
	case 3:
		return PD_INFINITE - small;
	case 4:
		return (1ULL << 63) - small;
	case 5:
		return (1ULL << 62) - small;
	case 6:
		return (1ULL << 32) - 4 + small;
	default:
		return 1ULL << small * 2;
	}
}

/* The number of a task, group, node or CPU; most are out of range. */
static pd_u32 some_number(struct stream *in)
{
	uint8_t byte = stream_byte(in);

	return byte < 192 ? byte % 8 : byte < 250 ? byte : ~0U - byte % 4;
}

struct fuzzed {
	pd_ref d;
	pd_u64 now;
	pd_u64 ids[8]; /* of jobs and timers; most have ended */
	unsigned int next;
};

static void keep(struct fuzzed *f, pd_i64 id)
{
	if (id > 0)
		f->ids[f->next++ % 8] = id;
}

static pd_u64 some_id(struct fuzzed *f, struct stream *in)
{
	uint8_t byte = stream_byte(in);

	return byte < 240 ? f->ids[byte % 8] : some_value(in, f->ids[byte % 8]);
}

static void add_job(struct fuzzed *f, struct stream *in)
{
	uint8_t kinds = stream_byte(in);
	struct pd_job_attr *a = pd_job_draft(f->d);

	a->start = some_value(in, f->now);
	a->finish = some_value(in, f->now);
	a->budget = some_value(in, 0);
	a->priority = (pd_i64)some_value(in, 0);
	a->cookie = some_value(in, 0);
	a->task = kinds & 1 ? some_number(in) : PD_NONE;
	a->group = kinds & 2 ? some_number(in) : 0;
	a->server = kinds & 4 ? some_number(in) : 0;
	a->budget_group = kinds & 8 ? some_number(in) : 0;
	a->budget_server = kinds & 16 ? some_number(in) : 0;
	a->reserved = kinds & 32;
	keep(f, pd_job_add(f->d, f->now));
}

static void draft_reservation(struct fuzzed *f, struct stream *in)
{
	uint8_t kinds = stream_byte(in);
	struct pd_reservation_attr *a = pd_reservation_draft(f->d);

	a->start = some_value(in, f->now);
	a->period = some_value(in, 0);
	a->deadline = kinds & 64 ? a->period : some_value(in, 0);
	a->budget = kinds & 128 ? a->deadline : some_value(in, 0);
	a->priority = (pd_i64)some_value(in, 0);
	a->cookie = some_value(in, 0);
	a->task = kinds & 1 ? some_number(in) : PD_NONE;
	a->group = kinds & 2 ? some_number(in) : 0;
	a->server = kinds & 4 ? some_number(in) : 0;
	a->budget_group = kinds & 8 ? some_number(in) : 0;
	a->budget_server = kinds & 16 ? some_number(in) : 0;
	a->overrun = kinds & 32 ? stream_byte(in) % 5 : 0;
	a->wakeup_rule = kinds & 32 ? stream_byte(in) % 3 : 1;
	a->own_cookie = kinds & 32 ? stream_byte(in) % 3 : 0;
}

/* Later, and at most the last instant there is. */
static void pass(struct fuzzed *f, struct stream *in)
{
	pd_u64 to = some_value(in, f->now);

	if (to > f->now)
		f->now = to == PD_INFINITE ? to - 1 : to;
}

static void look(struct fuzzed *f, struct stream *in)
{
	pd_u32 cpu = stream_byte(in) < 128 ? 0 : some_number(in), depth = 0;
	pd_u64 selected = pd_select(f->d, cpu, f->now), id, last = 0;

	for (; depth <= PD_MAX_DEPTH && (id = pd_path(f->d, cpu, depth)); depth++) {
		MUST(pd_job_standing(f->d, id) == PD_READY);
		last = id;
	}
	MUST(last == selected);
	if (selected) {
		MUST(pd_job_task(f->d, selected) != PD_NONE);
		MUST(pd_job_allowance(f->d, selected) <= pd_job_remaining(f->d, selected));
		MUST(pd_runner_up(f->d, cpu, 0) == selected);
	}
	pd_runner_up(f->d, cpu, some_number(in));
	pd_path(f->d, cpu, some_number(in));
	pd_timer(f->d, cpu, some_number(in), f->now);
}

static void read_all(struct fuzzed *f, struct stream *in)
{
	pd_u64 id = some_id(f, in);
	pd_u32 number = some_number(in);

	if (pd_job_standing(f->d, id) == PD_FREE) {
		MUST(pd_job_allowance(f->d, id) == 0 && pd_job_task(f->d, id) == PD_NONE);
		MUST(pd_job_used(f->d, id) == 0 && pd_job_remaining(f->d, id) == 0);
	}
	pd_task_job(f->d, number);
	pd_reservation_job(f->d, number);
	pd_reservation_delayed(f->d, number);
	pd_reservation_error(f->d, number);
	pd_error_settled(f->now, (pd_i64)id);
	pd_error_settled(id, (pd_i64)(0 - f->now));
	pd_reservation_take_lost(f->d, number);
	pd_record_at(f->d, some_value(in, pd_record_count(f->d)));
}

static void operate(struct fuzzed *f, struct stream *in)
{
	uint8_t op = stream_byte(in);

	/* So few for the last three, that kept inputs mean what they meant. */
	switch (op >= 254 ? 26 : op >= 252 ? 25 : op >= 248 ? 24 : op % 24) {
	case 0: case 1: case 2: case 3:
		add_job(f, in);
		break;
	case 4: case 5:
		pass(f, in);
		pd_advance(f->d, f->now);
		break;
	case 6:
		look(f, in);
		break;
	case 7:
		read_all(f, in);
		break;
	case 8:
		pd_charge(f->d, some_id(f, in), some_value(in, 0), f->now);
		break;
	case 9:
		pd_charge_task(f->d, some_number(in), some_value(in, 0), f->now);
		break;
	case 10:
		pd_charge(f->d, pd_select(f->d, 0, f->now), some_value(in, 0), f->now);
		break;
	case 11:
		pd_job_cancel(f->d, some_id(f, in), f->now);
		break;
	case 12:
		pd_job_complete(f->d, some_id(f, in), f->now);
		break;
	case 13:
		pd_task_blocked(f->d, some_number(in), f->now);
		break;
	case 14:
		pd_task_ready(f->d, some_number(in), f->now);
		break;
	case 15:
		pd_task_add(f->d, f->now);
		break;
	case 16:
		pd_task_gone(f->d, some_number(in), f->now);
		break;
	case 17:
		pd_task_done(f->d, some_number(in), f->now);
		break;
	case 18:
		draft_reservation(f, in);
		pd_reservation_add(f->d, f->now);
		break;
	case 19:
		draft_reservation(f, in);
		pd_reservation_change(f->d, some_number(in), f->now);
		break;
	case 20:
		pd_reservation_remove(f->d, some_number(in), f->now);
		break;
	case 21:
		pd_group_set_order(f->d, some_number(in),
				   (pd_u32)some_value(in, 0) * 0x01010101U + stream_byte(in));
		break;
	case 22:
		keep(f, pd_timer_ask(f->d, some_value(in, f->now), some_value(in, 0), f->now));
		pd_timer_cancel(f->d, some_id(f, in), f->now);
		break;
	case 23:
		pd_set_granularity(f->d, some_value(in, 0));
		for (int i = stream_byte(in) % 8; i > 0 && pd_event_peek(f->d); i--)
			pd_event_pop(f->d);
		break;
	case 24:
		for (int i = stream_byte(in) % 4; i > 0; i--)
			pd_window_add(f->d, some_value(in, 0), some_value(in, 0), stream_byte(in) % 2, f->now);
		if (stream_byte(in) >= 240)
			pd_window_drop(f->d, f->now);
		break;
	case 25:
		pd_task_lend(f->d, some_number(in), some_number(in), f->now);
		break;
	case 26:
		pd_task_raise(f->d, some_number(in), stream_byte(in) % 6, some_value(in, f->now),
			      f->now);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream in = { data, size };
	struct pd_limits limits = {
		.jobs = some_limit(&in),
		.tasks = some_limit(&in),
		.reservations = some_limit(&in),
		.groups = some_limit(&in),
		.budget_groups = some_limit(&in),
		.timers = some_limit(&in),
		.depth = some_limit(&in),
		.events = 1U << stream_byte(&in) % 8,
		.records = 1U << stream_byte(&in) % 8,
		.cpus = 1 + stream_byte(&in) % 2,
	};
	struct fuzzed f = { 0 };
	pd_u64 bytes;
	void *memory;

	limits.windows = limits.reservations;
	if (stream_byte(&in) >= 250)
		limits.events = some_limit(&in);
	if (stream_byte(&in) >= 250)
		limits.cpus = some_limit(&in);
	bytes = pd_size(&limits);
	if (bytes == 0 || bytes > LARGEST)
		return 0;
	bytes = (bytes + 63) / 64 * 64;
	memory = aligned_alloc(64, bytes);
	MUST(memory);
	__builtin_memset(memory, 0, bytes);
	f.d = pd_init(memory, &limits);
	MUST(f.d);
	f.now = some_value(&in, 0);
	if (f.now == PD_INFINITE)
		f.now--;
	while (in.left)
		operate(&f, &in);
	free(memory);
	return 0;
}
