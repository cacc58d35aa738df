/* SPDX-License-Identifier: MIT */
/*
 * Budget groups (RED-Linux, V-B): a tree of nodes that limits jobs and selects none. A node's
 * budget is its segments; the open one that expires first is used, and without one the node is
 * exhausted.
 */
#include "internal.h"

PD_INLINE int pd_node_made(pd_ref d, pd_u32 node)
{
	return node && node <= PD(d)->limits.budget_groups && PD_NODE(d, node)->depth;
}

/* PD_NONE when the node is exhausted. */
PD_INLINE pd_u32 pd_current_segment(pd_ref d, pd_u32 node)
{
	return pd_heap_first(d, PD_NODES(d) + node);
}

/* May `parent`, 0 or made, be the parent of a node within the limits? */
PD_FN int pd_node_refusal(pd_ref d, pd_u32 node, pd_u32 parent)
{
	if (PD_NODE(d, node)->depth)
		return PD_NODE(d, node)->parent == parent ? 0 : -ELOOP;
	if (parent && PD_NODE(d, parent)->depth >= PD(d)->limits.depth)
		return -ELOOP;
	return 0;
}

/* A node without any segment yet is exhausted. */
PD_FN int pd_node_make(pd_ref d, pd_u32 node, pd_u32 parent)
{
	pd_node_p n = PD_NODE(d, node);

	if (n->depth)
		return 0;
	n->parent = parent;
	n->depth = parent ? PD_NODE(d, parent)->depth + 1 : 1;
	n->first_child = 0;
	n->next_sibling = 0;
	n->first_job = PD_NONE;
	n->throttled = 1;
	if (parent) {
		n->next_sibling = PD_NODE(d, parent)->first_child;
		PD_NODE(d, parent)->first_child = node;
	}
	return 0;
}

/* It got its first open segment or lost its last: to be looked at when the call ends. */
PD_INLINE void pd_node_mark(pd_ref d, pd_u32 node)
{
	pd_node_p n = PD_NODE(d, node);

	if (n->unsettled)
		return;
	n->unsettled = 1;
	n->next_unsettled = PD(d)->unsettled_nodes;
	PD(d)->unsettled_nodes = node;
	PD(d)->unsettled |= PD_UNSETTLED_TREES;
}

PD_FN int pd_segment_open(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);
	pd_u32 heap = PD_NODES(d) + j->attr.budget_server;

	j->state = PD_OPEN;
	pd_heap_insert(d, heap, j->attr.finish, i);
	if (pd_heap_size(d, heap) == 1)
		pd_node_mark(d, j->attr.budget_server);
	return 0;
}

PD_ALWAYS_INLINE int pd_segment_close(pd_ref d, pd_u32 i)
{
	pd_u32 node = PD_JOB(d, i)->attr.budget_server;

	pd_heap_remove(d, PD_NODES(d) + node, i);
	if (!pd_heap_size(d, PD_NODES(d) + node))
		pd_node_mark(d, node);
	return 0;
}

/* Into the list of the jobs of its node. */
PD_FN int pd_node_link(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);
	pd_node_p n = PD_NODE(d, j->attr.budget_group);

	j->attr.reserved = PD_NONE;
	j->next_of_node = n->first_job;
	if (n->first_job != PD_NONE)
		PD_JOB(d, n->first_job)->attr.reserved = i;
	n->first_job = i;
	return 0;
}

PD_FN int pd_node_unlink(pd_ref d, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);
	pd_u32 prev = j->attr.reserved;

	if (prev == PD_NONE)
		PD_NODE(d, j->attr.budget_group)->first_job = j->next_of_node;
	else
		PD_JOB(d, prev)->next_of_node = j->next_of_node;
	if (j->next_of_node != PD_NONE)
		PD_JOB(d, j->next_of_node)->attr.reserved = prev;
	return 0;
}

/* The least that is left in a node's current segment and in those above; 0 if one is
 * exhausted. */
PD_FN pd_u64 pd_chain_allowance(pd_ref d, pd_u32 node)
{
	pd_u64 least = PD_INFINITE;

	pd_while (node) {
		pd_u32 segment = pd_current_segment(d, node);

		if (segment == PD_NONE)
			return 0;
		least = pd_min(least, PD_JOB(d, segment)->attr.budget);
		node = PD_NODE(d, node)->parent;
	}
	return least;
}

/* What a job may execute until a budget ends: its own, a server job's on its path, or a current
 * segment's in the chain of one of these. */
PD_FN pd_u64 pd_allowance(pd_ref d, pd_u32 i)
{
	pd_u64 least = PD_INFINITE;

	pd_while (i != PD_NONE) {
		pd_job_p j = PD_JOB(d, i);

		least = pd_min(least, j->attr.budget);
		if (j->attr.budget_group)
			least = pd_min(least, pd_chain_allowance(d, j->attr.budget_group));
		i = j->attr.group ? pd_server_of(d, j->attr.group) : PD_NONE;
	}
	return least;
}
