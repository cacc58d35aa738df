/* SPDX-License-Identifier: MIT */
/*
 * Runner-ups, for hosts that keep several jobs ready to run: what would be selected if the tasks of
 * the better ones slept. That is the order in which the tree is walked from group 0 down, queue by
 * queue, with each executed task once, and each group once: by the server job of it that comes
 * first.
 *
 * Nothing is moved for it. What stands before a member of a queue is a piece of the heap that hangs
 * together at its top, so the next one after it is found at that piece's edge.
 */
#include "internal.h"

/* Of all jobs that execute one task, one. */
PD_FN int pd_rank_has_task(pd_ref d, pd_u32 cpu, pd_u32 task)
{
	pd_cpu_p c = PD_CPU(d, cpu);
	pd_u32 executed = PD_TASK(d, task)->executes;
	pd_u32 i = PD_ZERO(d);

	pd_while (i < c->ranks) {
		pd_u32 ranked = PD_NTH(c->ranked, i & (PD_RANKS - 1));

		if (PD_TASK(d, PD_JOB(d, ranked)->attr.task)->executes == executed)
			return 1;
		i++;
	}
	return 0;
}

/* Is this member to be looked at? */
PD_INLINE int pd_rank_counts(pd_ref d, pd_u32 cpu, pd_u32 i)
{
	pd_job_p j = PD_JOB(d, i);

	return j->attr.server ? pd_server_of(d, j->attr.server) == i :
				!pd_rank_has_task(d, cpu, j->attr.task);
}

/* The next member that counts after `i` in its queue; PD_NONE if there is none, or `i` stands in
 * none. */
PD_FN pd_u32 pd_queue_after(pd_ref d, pd_u32 cpu, pd_u32 i)
{
	pd_u32 position = PD_ZERO(d) + PD_ROOT;
	pd_u32 best = PD_NONE;
	pd_u32 heap, end;
	pd_chunks_p chunks;
	pd_u64 key;

	if (PD_JOB(d, i)->state != PD_READY)
		return PD_NONE;
	heap = PD_GROUPS + PD_JOB(d, i)->attr.group;
	end = pd_heap_size(d, heap) + PD_ROOT;
	chunks = pd_heap_chunks(d, PD_HEAP(d, heap));
	key = pd_ready_key(d, PD_JOB(d, i));
	pd_while (position) {
		if (position < end) {
			pd_slot_p s = pd_slot_at(d, chunks, position);

			if (best == PD_NONE ||
			    pd_before(d, heap, s->key, s->item, pd_slot_at(d, chunks, best))) {
				if (!pd_before(d, heap, key, i, s) ||
				    !pd_rank_counts(d, cpu, s->item)) {
					/* What stands below it may be the one. */
					position = PD_ZERO(d) + 4 * position - 8;
					continue;
				}
				best = position;
			}
		}
		/* On to the next one that is not below this one: up from the last of four. */
		pd_while (position != PD_ROOT && (position & 3) == 3)
			position = PD_ZERO(d) + (position >> 2) + 2;
		position = position == PD_ROOT ? 0 : PD_ZERO(d) + position + 1;
	}
	return best == PD_NONE ? PD_NONE : pd_slot_at(d, chunks, best)->item;
}

/* The next job after those that are ranked; PD_NONE if there is none. */
PD_FN pd_u32 pd_rank_next(pd_ref d, pd_u32 cpu)
{
	pd_cpu_p c = PD_CPU(d, cpu);

	pd_while (c->cursor_depth) {
		pd_u32 level = (c->cursor_depth - 1) & (PD_MAX_DEPTH - 1);
		pd_u32 i = pd_queue_after(d, cpu, PD_NTH(c->cursor, level));

		if (i == PD_NONE)
			c->cursor_depth--;
		/* Down to a real job, which may be of a task that is ranked already. */
		pd_while (i != PD_NONE) {
			PD_NTH(c->cursor, level) = i;
			c->cursor_depth = level + 1;
			if (!PD_JOB(d, i)->attr.server)
				break;
			level = (level + 1) & (PD_MAX_DEPTH - 1);
			i = pd_heap_first(d, PD_GROUPS + PD_JOB(d, i)->attr.server);
		}
		if (i != PD_NONE && !pd_rank_has_task(d, cpu, PD_JOB(d, i)->attr.task))
			return i;
	}
	return PD_NONE;
}

PD_API pd_u64 pd_runner_up(pd_ref d, pd_u32 cpu, pd_u32 rank)
{
	pd_cpu_p c;

	if (cpu >= PD(d)->limits.cpus || rank >= PD_RANKS)
		return 0;
	c = PD_CPU(d, cpu);
	if (!c->ranks)
		return 0;
	if (c->cursor_depth == PD_NONE) {
		c->cursor_depth = PD_ZERO(d);
		pd_while (c->cursor_depth < c->depth && c->cursor_depth < PD_MAX_DEPTH) {
			PD_NTH(c->cursor, c->cursor_depth) = (pd_u32)PD_NTH(c->path, c->cursor_depth);
			c->cursor_depth++;
		}
	}
	pd_while (c->ranks <= rank) {
		pd_u32 i = pd_rank_next(d, cpu);

		if (i == PD_NONE)
			return 0;
		PD_NTH(c->ranked, c->ranks & (PD_RANKS - 1)) = i;
		c->ranks++;
	}
	return PD_JOB(d, PD_NTH(c->ranked, rank & (PD_RANKS - 1)))->id;
}
