/* SPDX-License-Identifier: MIT */
/*
 * Settling: at the end of a call, a node that was exhausted or replenished takes effect on its
 * jobs, and a group that became empty or non-empty on its server jobs (docs/model.md, "Settling").
 * So what changes and changes back within one call has no effect. First the nodes, then the groups,
 * the lower ones first: a group's server jobs are members of its parent, which is always higher.
 */
#include "internal.h"

/* A node or one above it was exhausted or replenished. */
PD_ALWAYS_INLINE int pd_node_jobs(pd_ref d, pd_u32 node, pd_u64 now)
{
	pd_u32 i = PD_NODE(d, node)->first_job;

	pd_while (i != PD_NONE) {
		pd_job_p j = PD_JOB(d, i);
		int throttled;

		PD_BARRIER();
		throttled = PD_NODE(d, node)->throttled;

		if (throttled && j->state == PD_READY) {
			pd_job_leave(d, i, PD_THROTTLED);
			PD_GROUP(d, j->attr.server)->best_server = PD_UNKNOWN;
		} else if (throttled && j->state == PD_IDLE) {
			j->state = PD_THROTTLED;
		} else if (!throttled && j->state == PD_THROTTLED) {
			pd_job_stand(d, i, now);
		}
		i = j->next_of_node;
	}
	return 0;
}

/* Looks at a node, and below it as far as something changes. With several unsettled ones the order
 * does not matter: each is looked at again when one above it changes, and a job that joins its
 * queue and leaves it again meanwhile was throttled before and is throttled after. */
PD_NOINLINE int pd_node_settle(pd_ref d, pd_u32 top, pd_u64 now)
{
	pd_u32 node = PD_ZERO(d) + top;

	pd_while (node) {
		pd_node_p n = PD_NODE(d, node);
		pd_u8 throttled = pd_current_segment(d, node) == PD_NONE ||
				(n->parent && PD_NODE(d, n->parent)->throttled);

		if (throttled != n->throttled) {
			n->throttled = throttled;
			pd_node_jobs(d, node, now);
			if (n->first_child) {
				node = n->first_child;
				continue;
			}
		}
		pd_while (node != top && !PD_NODE(d, node)->next_sibling)
			node = PD_NODE(d, node)->parent;
		node = node == top ? 0 : PD_NODE(d, node)->next_sibling;
	}
	return 0;
}

/* Announces a group that got members or lost them all; its server jobs follow, those too that have
 * just begun or are no longer throttled. One without budget stays idle until it ends. */
PD_NOINLINE int pd_group_settle(pd_ref d, pd_u32 group, pd_u64 now)
{
	pd_group_p g = PD_GROUP(d, group);
	int active = pd_heap_size(d, PD_GROUPS + group) != 0;
	pd_u32 i;

	g->unsettled = 0;
	if (active != g->active) {
		g->active = (pd_u8)active;
		pd_event_task(d, now, active ? PD_EV_GROUP_ACTIVE : PD_EV_GROUP_IDLE, group, 0);
		if (active)
			pd_servers_woke(d, group, now);
	}
	i = g->first_server;
	g->best_server = PD_UNKNOWN;
	pd_while (i != PD_NONE) {
		pd_job_p j = PD_JOB(d, i);

		if (active && j->state == PD_IDLE && j->attr.budget)
			pd_job_enqueue(d, i, j->attr.group, now);
		else if (!active && j->state == PD_READY)
			pd_job_leave(d, i, PD_IDLE);
		i = j->next;
	}
	return 0;
}

PD_FN int pd_settle_nodes(pd_ref d, pd_u64 now)
{
	pd_while (PD(d)->unsettled_nodes) {
		pd_u32 node = PD(d)->unsettled_nodes;

		PD(d)->unsettled_nodes = PD_NODE(d, node)->next_unsettled;
		PD_NODE(d, node)->unsettled = 0;
		pd_node_settle(d, node, now);
	}
	return 0;
}

PD_FN int pd_settle_groups(pd_ref d, pd_u64 now)
{
	pd_u32 level = PD_ZERO(d);

	pd_while (PD(d)->unsettled_heights >> level) {
		pd_u32 group = PD_NTH(PD(d)->unsettled_groups, level);

		if (group == PD_NONE) {
			PD(d)->unsettled_heights &= ~(1ULL << level);
			level = (level + 1) & (PD_MAX_DEPTH - 1);
			continue;
		}
		PD_NTH(PD(d)->unsettled_groups, level) = PD_GROUP(d, group)->next_unsettled;
		pd_group_settle(d, group, now);
	}
	return 0;
}

/* Group 0 has no server jobs that would follow. */
PD_ALWAYS_INLINE int pd_settle_top(pd_ref d, pd_u64 now)
{
	pd_u8 active = pd_heap_first(d, PD_GROUPS) != PD_NONE;

	if (active != PD_GROUP(d, 0)->active) {
		PD_GROUP(d, 0)->active = active;
		pd_event_task(d, now, active ? PD_EV_GROUP_ACTIVE : PD_EV_GROUP_IDLE, 0, 0);
	}
	PD(d)->unsettled = 0;
	return 0;
}

PD_NOINLINE int pd_settle_all(pd_ref d, pd_u64 now)
{
	pd_p p = PD(d);

	if (p->unsettled == PD_UNSETTLED_TOP)
		return pd_settle_top(d, now);
	if (p->unsettled_nodes)
		pd_settle_nodes(d, now);
	if (p->unsettled_heights)
		pd_settle_groups(d, now);
	p->rare = pd_min(pd_min(pd_heap_least(d, PD_SEGMENT_FINISHES), pd_heap_least(d, PD_TIMERS)),
			 pd_heap_least(d, PD_RELEASES));
	return pd_settle_top(d, now);
}

PD_INLINE void pd_settle(pd_ref d, pd_u64 now)
{
	if (PD_UNLIKELY(PD(d)->unsettled))
		pd_settle_all(d, now);
}
