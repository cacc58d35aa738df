/* SPDX-License-Identifier: MIT */
/* The invariants of the design (section 3), on what the dispatcher says and what it was given. */
#include "shadow.h"

/* A start that no allocator gave. */
#define UNKNOWN (PD_INFINITE - 1)

static bool is_real(const struct known *k)
{
	return k->attr.task != PD_NONE;
}

static bool is_segment(const struct known *k)
{
	return k->attr.budget_server != 0;
}

/* By the wake-up rule (docs/model.md, "Reservations"): nothing was executed, and there is no more
 * than before. */
static void cut(struct known *k, pd_u64 remaining)
{
	if (k->is_cut && remaining < k->remaining)
		k->remaining = remaining;
}

#define EACH_JOB(s, k)                                              \
	for (struct known *k = (s)->jobs; k < (s)->jobs + JOBS; k++) \
		if (k->id)

/* Each job ends once, with what it had (invariant 4). */
static void check_events(struct shadow *s)
{
	const struct pd_event *e;

	for (; (e = pd_event_peek(s->d)); pd_event_pop(s->d)) {
		struct known *k;

		MUST(e->time == s->now);
		switch (e->kind) {
		case PD_EV_COMPLETED:
		case PD_EV_EXHAUSTED:
		case PD_EV_EXPIRED:
		case PD_EV_CANCELLED:
		case PD_EV_TASK_GONE:
		case PD_EV_SEGMENT_EXHAUSTED:
		case PD_EV_SEGMENT_EXPIRED:
		case PD_EV_WINDOW_EXHAUSTED:
		case PD_EV_WINDOW_EXPIRED:
			MUST(pd_job_standing(s->d, e->job) == PD_FREE);
			k = shadow_find(s, e->job);
			if (!k) {
				/* It ended in the call that made it. */
				MUST(e->used == 0);
				break;
			}
			cut(k, e->remaining);
			MUST(e->used == k->used && e->remaining == k->remaining && e->cookie == k->attr.cookie);
			k->id = 0;
			break;
		case PD_EV_LOST:
			MUST(!"the ring has room for all events of a call");
		}
	}
}

/* Jobs that reservations made. */
static void learn(struct shadow *s)
{
	for (pd_u32 r = 0; r < RESERVATIONS; r++) {
		pd_u64 id = pd_reservation_job(s->d, r);
		const struct pd_reservation_attr *a = &s->reservations[r];

		if (!id || shadow_find(s, id))
			continue;
		MUST(s->reservation_there[r]);

		struct pd_job_attr attr = {
			/* It has both, which are the reservation's business, and its windows'. */
			.start = pd_job_standing(s->d, id) == PD_WAITING ? UNKNOWN : s->now,
			.finish = PD_INFINITE,
			.cookie = a->cookie,
			.task = a->task,
			.group = a->group,
			.server = a->server,
			.budget_group = a->budget_group,
			.budget_server = a->budget_server,
		};
		shadow_added(s, id, &attr);
		shadow_find(s, id)->is_reserved = true;
		/* Whether its reservation has the rule by now is not followed. */
		if (a->server)
			shadow_find(s, id)->is_cut = true;
	}
}

static bool node_is_wet(struct shadow *s, pd_u32 node)
{
	EACH_JOB(s, k)
		if (k->attr.budget_server == node && k->standing == PD_OPEN)
			return true;
	return false;
}

static bool chain_is_wet(struct shadow *s, pd_u32 node)
{
	for (; node; node = s->node_parent[node])
		if (!node_is_wet(s, node))
			return false;
	return true;
}

static bool has_ready_member(struct shadow *s, pd_u32 group)
{
	EACH_JOB(s, k)
		if (!is_segment(k) && k->attr.group == group && k->standing == PD_READY)
			return true;
	return false;
}

/* docs/model.md, "Jobs" and "Settling". */
static void check_standings(struct shadow *s)
{
	EACH_JOB(s, k) {
		k->standing = pd_job_standing(s->d, k->id);
		MUST(k->standing != PD_FREE);
		cut(k, pd_job_remaining(s->d, k->id));
		MUST(pd_job_used(s->d, k->id) == k->used && pd_job_remaining(s->d, k->id) == k->remaining);
		MUST(pd_job_task(s->d, k->id) ==
		     (is_real(k) ? shadow_executed(s, k->attr.task) : PD_NONE));
	}
	EACH_JOB(s, k) {
		if (k->standing == PD_WAITING) {
			MUST(!s->fresh || k->attr.start > s->now);
			continue;
		}
		MUST(k->attr.start <= s->now || k->attr.start == UNKNOWN);
		if (is_segment(k))
			MUST(k->standing == PD_OPEN);
		else if (is_real(k) && s->task_sleeps[shadow_executed(s, k->attr.task)])
			MUST(k->standing == PD_BLOCKED);
		else if (!chain_is_wet(s, k->attr.budget_group))
			MUST(k->standing == PD_THROTTLED);
		else if (!is_real(k) && !has_ready_member(s, k->attr.server))
			MUST(k->standing == PD_IDLE);
		else if (!is_real(k) && !k->remaining)
			MUST(k->standing == PD_IDLE || k->standing == PD_READY);
		else
			MUST(k->standing == PD_READY);
	}
}

/* Whether selection, going down from group 0, comes to this group. */
static bool is_served(struct shadow *s, pd_u32 group)
{
	while (group != 0) {
		bool ready = false;

		EACH_JOB(s, k)
			ready |= k->attr.server == group && k->standing == PD_READY;
		if (!ready)
			return false;
		group = s->group_parent[group];
	}
	return true;
}

static bool is_raised(const struct shadow *s, const struct known *k)
{
	return is_real(k) && s->task_raised[k->attr.task] == s->group_order[k->attr.group];
}

/* None that stands at the ceiling of a raised member, or below it, is taken before that
 * (docs/model.md, "Ceilings"). */
static void check_ceilings(struct shadow *s, const struct known *taken)
{
	bool by_finish = s->group_order[taken->attr.group] == PD_BY_FINISH;

	if (taken->is_reserved || is_raised(s, taken))
		return;
	EACH_JOB(s, k) {
		if (k->standing != PD_READY || k->attr.group != taken->attr.group || !is_raised(s, k))
			continue;
		if (by_finish)
			MUST(taken->attr.finish < s->task_ceiling[k->attr.task]);
		else
			MUST(taken->attr.priority > (pd_i64)s->task_ceiling[k->attr.task]);
	}
}

/* Invariants 1 and 2. */
static void check_selection(struct shadow *s)
{
	pd_u64 selected = pd_select(s->d, 0, s->now);
	pd_u32 group = 0, depth = 0;
	struct known *last = NULL;

	MUST(pd_runner_up(s->d, 0, 0) == selected);
	if (!selected) {
		EACH_JOB(s, k)
			MUST(!is_real(k) || k->standing != PD_READY || !is_served(s, k->attr.group));
		MUST(pd_path(s->d, 0, 0) == 0);
		return;
	}
	for (pd_u64 id; (id = pd_path(s->d, 0, depth)); depth++) {
		last = shadow_find(s, id);
		MUST(last && last->standing == PD_READY && last->attr.group == group && depth < DEPTH);
		check_ceilings(s, last);
		group = last->attr.server;
		if (s->fresh) {
			MUST(last->attr.start <= s->now || last->attr.start == UNKNOWN);
			MUST(s->now < last->attr.finish);
			MUST(last->remaining > 0);
		}
	}
	MUST(last && last->id == selected && is_real(last));
	if (s->fresh) {
		pd_u64 timer = pd_timer(s->d, 0, 2, s->now);

		MUST(pd_job_allowance(s->d, selected) > 0);
		MUST(pd_job_allowance(s->d, selected) <= last->remaining);
		MUST(timer > s->now);
		MUST(timer - s->now <= pd_job_allowance(s->d, selected));
	}

	pd_u32 first = pd_job_task(s->d, selected);
	pd_u64 second = pd_runner_up(s->d, 0, 1);

	MUST(!second || pd_job_task(s->d, second) != first);
}

void check_all(struct shadow *s)
{
	check_events(s);
	learn(s);
	check_standings(s);
	check_selection(s);
}

/* One of each group's server jobs, and one segment of each node, pays (invariant 3). */
void check_charge(struct shadow *s, pd_u64 job, pd_u64 ran)
{
	struct known *charged = shadow_find(s, job);
	pd_u32 servers[GROUPS] = { 0 }, segments[NODES + 1] = { 0 };
	bool in_chain[NODES + 1] = { false };
	int due;

	MUST(charged);
	due = pd_charge(s->d, job, ran, s->now);
	MUST(due == (pd_job_remaining(s->d, job) <= s->granularity));
	s->fresh = false;
	EACH_JOB(s, k) {
		pd_u64 used = pd_job_used(s->d, k->id);

		MUST(used == k->used || used == k->used + ran);
		if (used == k->used && ran != 0) {
			MUST(pd_job_remaining(s->d, k->id) == k->remaining);
			MUST(k != charged);
			continue;
		}
		k->used = used;
		k->remaining = k->remaining > ran ? k->remaining - ran : 0;
		MUST(pd_job_remaining(s->d, k->id) == k->remaining);
		if (ran == 0)
			continue;
		if (k != charged && !is_segment(k))
			servers[k->attr.server]++;
		if (is_segment(k))
			segments[k->attr.budget_server]++;
		for (pd_u32 node = is_segment(k) && k != charged ? 0 : k->attr.budget_group; node;
		     node = s->node_parent[node])
			in_chain[node] = true;
	}
	if (ran == 0)
		return;
	if (is_segment(charged))
		in_chain[charged->attr.budget_server] = true;
	for (pd_u32 node = 1; node <= NODES; node++)
		MUST(segments[node] == (in_chain[node] && (node_is_wet(s, node) ||
				        charged->attr.budget_server == node)));

	/* From the job upwards, as far as there are server jobs. */
	pd_u32 group = is_segment(charged) ? 0 : charged->attr.group, levels = 0, paid = 0;

	for (; group != 0; group = s->group_parent[group]) {
		bool any = false;

		EACH_JOB(s, k)
			any |= k->attr.server == group && k->standing != PD_WAITING;
		if (!any)
			break;
		MUST(servers[group] == 1);
		levels++;
	}
	for (pd_u32 g = 0; g < GROUPS; g++)
		paid += servers[g];
	MUST(paid == levels);
}
