/* SPDX-License-Identifier: MIT */
/* Keeping up with a dispatcher from the outside. */
#include "shadow.h"

#include <string.h>

void shadow_make(struct shadow *s, void *memory, const struct pd_limits *limits)
{
	memset(s, 0, sizeof(*s));
	memset(s->group_parent, 0xff, sizeof(s->group_parent));
	memset(s->node_parent, 0xff, sizeof(s->node_parent));
	memset(s->task_lends_to, 0xff, sizeof(s->task_lends_to));
	for (int group = 0; group < GROUPS; group++)
		s->group_order[group] = PD_ORDER_DEFAULT & 255;
	s->d = pd_init(memory, limits);
	MUST(s->d);
}

struct known *shadow_find(struct shadow *s, pd_u64 id)
{
	for (int i = 0; i < JOBS; i++)
		if (s->jobs[i].id == id)
			return &s->jobs[i];
	return NULL;
}

void shadow_added(struct shadow *s, pd_u64 id, const struct pd_job_attr *attr)
{
	MUST(id != 0 && !shadow_find(s, id));

	struct known *place = shadow_find(s, 0);

	/* One that ended at once has no place to be kept at. */
	if (pd_job_standing(s->d, id) == PD_FREE)
		return;
	MUST(place);
	*place = (struct known){
		.id = id,
		.attr = *attr,
		.used = pd_job_used(s->d, id),
		.remaining = pd_job_remaining(s->d, id),
	};
	MUST(place->used == 0);
}

pd_u32 shadow_executed(const struct shadow *s, pd_u32 task)
{
	for (int steps = 0; s->task_lends_to[task] != PD_NONE; steps++) {
		MUST(steps < TASKS);
		task = s->task_lends_to[task];
	}
	return task;
}

void shadow_fix(struct shadow *s, pd_u32 group, pd_u32 server, pd_u32 budget_group,
		pd_u32 budget_server)
{
	if (server) {
		MUST(server < GROUPS && group < GROUPS);
		MUST(s->group_parent[server] == PD_NONE || s->group_parent[server] == group);
		s->group_parent[server] = group;
	}
	if (budget_server) {
		MUST(budget_server <= NODES && budget_group <= NODES);
		MUST(s->node_parent[budget_server] == PD_NONE ||
		     s->node_parent[budget_server] == budget_group);
		s->node_parent[budget_server] = budget_group;
	}
	if (budget_group)
		MUST(budget_group <= NODES && s->node_parent[budget_group] != PD_NONE);

	/* No cycles, and no more levels than were allowed. */
	for (pd_u32 group = 0; group < GROUPS; group++) {
		int depth = 1;

		for (pd_u32 at = group; s->group_parent[at] != PD_NONE; at = s->group_parent[at])
			MUST(++depth <= DEPTH);
	}
	for (pd_u32 node = 1; node <= NODES; node++) {
		int depth = 0;

		for (pd_u32 at = node; at != 0 && s->node_parent[at] != PD_NONE; at = s->node_parent[at])
			MUST(++depth <= DEPTH);
	}
}
