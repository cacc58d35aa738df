/* SPDX-License-Identifier: MIT */
/*
 * Scheduling groups (RED-Linux, V-A): which order their members stand in, and the tree that their
 * server jobs make. A group's first server job fixes its parent for ever.
 */
#include "internal.h"

/* Up to four attributes, none twice, no gap before the last. */
PD_FN int pd_order_valid(pd_u32 order)
{
	pd_u32 seen = 0;

	if (!order)
		return 0;
	pd_while (order) {
		pd_u32 attribute = order & 255;

		if (attribute < PD_BY_START || attribute > PD_BY_PRIORITY)
			return 0;
		if (seen & 1U << attribute)
			return 0;
		seen |= 1U << attribute;
		order >>= 8;
	}
	return 1;
}

/* The ordering, and what follows from it. */
PD_FN int pd_group_order(pd_ref d, pd_u32 group, pd_u32 order)
{
	pd_group_p g = PD_GROUP(d, group);
	pd_u32 first = order & 255;

	g->order = order;
	g->first = first - 1;
	g->turned = pd_turned(first);
	/* With ceilings, the order of the queue may be another one than that of the finishes. */
	g->by_finish = group == 0 && first == PD_BY_FINISH && !PD_CEILINGS(d);
	g->by_budget = 0;
	pd_while (order) {
		if ((order & 255) == PD_BY_BUDGET)
			g->by_budget = 1;
		order >>= 8;
	}
	return 0;
}

/* The key of a member, or of one that may become a member. */
PD_INLINE pd_u64 pd_group_key(pd_ref d, pd_u32 group, pd_job_p j)
{
	pd_group_p g = PD_GROUP(d, group);
	pd_u64 key = (&j->attr.start)[g->first] ^ g->turned;

	if (PD_CEILINGS(d) && pd_is_raised(d, group, j))
		key = pd_min(key, PD_TASK(d, j->attr.task)->ceiling ^ g->turned);
	return key;
}

PD_INLINE pd_u64 pd_ready_key(pd_ref d, pd_job_p j)
{
	return pd_group_key(d, j->attr.group, j);
}

/* Sorts the group's queue after its ordering has changed. */
PD_FN int pd_group_sort(pd_ref d, pd_u32 group)
{
	pd_heap_p h = PD_HEAP(d, PD_GROUPS + group);
	pd_u32 end = h->size + PD_ROOT;
	pd_u32 position = PD_ZERO(d) + PD_ROOT;

	pd_while (position < end) {
		pd_slot_p s = pd_slot_at(d, pd_heap_chunks(d, h), position);

		s->key = pd_ready_key(d, PD_JOB(d, s->item));
		/* The queue may begin or cease to serve for the finishes. */
		pd_job_watch(d, s->item);
		position += PD_ZERO(d) + 1;
	}
	return pd_heap_heapify(d, PD_GROUPS + group);
}

PD_API int pd_group_set_order(pd_ref d, pd_u32 group, pd_u32 order)
{
	pd_u32 i = PD_ZERO(d);
	pd_group_p g;

	if (group >= PD(d)->limits.groups)
		return -ENOENT;
	if (!pd_order_valid(order))
		return -EINVAL;
	pd_record(d, PD_REC_ORDER, group, 0, order, 0);
	pd_group_order(d, group, order);
	/* In the new order another of their server jobs may be first. */
	g = PD_GROUP(d, 0);
	pd_while (i < PD(d)->limits.groups) {
		PD_BARRIER_VAR(g);
		if (g->parent == group)
			g->best_server = PD_UNKNOWN;
		g++;
		i++;
	}
	return pd_group_sort(d, group);
}

/* May `group` be the parent of `s`? */
PD_FN int pd_group_refusal(pd_ref d, pd_u32 s, pd_u32 group)
{
	pd_u32 levels = PD_ZERO(d) + 1;

	if (PD_GROUP(d, s)->parent != PD_NONE)
		return PD_GROUP(d, s)->parent == group ? 0 : -ELOOP;
	pd_while (group != s && PD_GROUP(d, group)->parent != PD_NONE) {
		group = PD_GROUP(d, group)->parent;
		levels++;
	}
	if (group == s || levels + PD_GROUP(d, s)->height > PD(d)->limits.depth)
		return -ELOOP;
	return 0;
}

/* It is the parent from now on. */
PD_FN int pd_group_adopt(pd_ref d, pd_u32 s, pd_u32 group)
{
	pd_u32 height = PD_GROUP(d, s)->height;

	if (PD_GROUP(d, s)->parent != PD_NONE)
		return 0;
	PD_GROUP(d, s)->parent = group;
	pd_while (group != PD_NONE && PD_GROUP(d, group)->height <= height) {
		PD_GROUP(d, group)->height = ++height;
		group = PD_GROUP(d, group)->parent;
	}
	return 0;
}

/* Its queue got its first member or lost its last: to be looked at when the call ends. */
PD_INLINE void pd_group_mark(pd_ref d, pd_u32 group)
{
	pd_group_p g = PD_GROUP(d, group);
	pd_u32 level = (g->height - 1) & (PD_MAX_DEPTH - 1);

	if (!group) {
		PD(d)->unsettled |= PD_UNSETTLED_TOP;
		return;
	}
	if (g->unsettled)
		return;
	g->unsettled = 1;
	g->next_unsettled = PD_NTH(PD(d)->unsettled_groups, level);
	PD_NTH(PD(d)->unsettled_groups, level) = group;
	PD(d)->unsettled_heights |= 1ULL << level;
	PD(d)->unsettled |= PD_UNSETTLED_TREES;
}
