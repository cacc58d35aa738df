/* SPDX-License-Identifier: MIT */
/*
 * Four-way heaps over one pool of slots. Each item knows its position, so that any can be taken
 * out. The key, where the first attribute stands, lies in the slot; only ties look at the items.
 *
 * The root is at position 3, so that four siblings fill one line of the cache and one chunk holds
 * them all: the children of p are 4p - 8 to 4p - 5, its parent is p / 4 + 2.
 */
#include "internal.h"

/* A heap's chunks: where each would begin if the heap lay in one piece, so that adding the position
 * is all there is to do. */
#define pd_chunks_p pd_u32 PD_ARENA *

PD_INLINE pd_chunks_p pd_heap_chunks(pd_ref d, pd_heap_p h)
{
	return &PD_CHUNK_ENTRY(d, h->table);
}

PD_INLINE pd_slot_p pd_slot_at(pd_ref d, pd_chunks_p chunks, pd_u32 position)
{
	return PD_SLOT(d, (pd_u32)(chunks[position >> PD_CHUNK_BITS] + position));
}

/* Of the priority all bits but the sign's are turned over, to have the larger first. */
PD_INLINE pd_u64 pd_turned(pd_u32 attribute)
{
	return (0 - (pd_u64)(attribute == PD_BY_PRIORITY)) >> 1;
}

/* One attribute as a key, smaller first. They lie in the order of their numbers. */
PD_INLINE pd_u64 pd_attribute_key(pd_job_p j, pd_u32 attribute)
{
	return (&j->attr.start)[attribute - 1] ^ pd_turned(attribute);
}

/* The job's task has a ceiling of the attribute by which the group is ordered first. */
PD_INLINE int pd_is_raised(pd_ref d, pd_u32 group, pd_job_p j)
{
	return j->attr.task != PD_NONE &&
	       PD_TASK(d, j->attr.task)->raised == PD_GROUP(d, group)->first + 1;
}

/* Which of two ready jobs with equal keys is first: the raised one, then the other attributes, then
 * arrival. */
PD_ALWAYS_INLINE int pd_job_before(pd_ref d, pd_u32 group, pd_u32 a, pd_u32 b)
{
	pd_job_p x = PD_JOB(d, a);
	pd_job_p y = PD_JOB(d, b);
	pd_u32 order = PD_GROUP(d, group)->order >> 8;

	if (PD_CEILINGS(d)) {
		int raised = pd_is_raised(d, group, x);

		if (raised != pd_is_raised(d, group, y))
			return raised;
	}
	pd_while (order) {
		pd_u64 kx = pd_attribute_key(x, order & 255);
		pd_u64 ky = pd_attribute_key(y, order & 255);

		if (kx != ky)
			return kx < ky;
		order >>= 8;
	}
	if (x->eligible_at != y->eligible_at)
		return x->eligible_at < y->eligible_at;
	return x->sequence < y->sequence;
}

/* Which of two items with equal keys is first. */
PD_FN int pd_tie_before(pd_ref d, pd_u32 heap, pd_u32 a, pd_u32 b)
{
	if (heap >= PD_GROUPS && heap - PD_GROUPS < PD(d)->limits.groups)
		return pd_job_before(d, heap - PD_GROUPS, a, b);
	if (heap == PD_RELEASES)
		return a < b;
	if (heap == PD_TIMERS)
		return PD_TIMER(d, a)->sequence < PD_TIMER(d, b)->sequence;
	return PD_JOB(d, a)->sequence < PD_JOB(d, b)->sequence;
}

PD_INLINE int pd_before(pd_ref d, pd_u32 heap, pd_u64 key, pd_u32 item, pd_slot_p other)
{
	if (PD_LIKELY(key != other->key))
		return key < other->key;
	return pd_tie_before(d, heap, item, other->item);
}

PD_INLINE void pd_heap_top(pd_heap_p h, pd_u64 key, pd_u32 item)
{
	h->least = key;
	h->first = item;
}

PD_INLINE void pd_heap_place(pd_slot_p hole, pd_u32 PD_ARENA *where, pd_u32 position, pd_u64 key,
			     pd_u32 item)
{
	hole->key = key;
	hole->item = item;
	where[item] = position;
}

/* Puts the item at `position` or above it. */
PD_FN int pd_heap_up(pd_ref d, pd_u32 heap, pd_u32 position, pd_u64 key, pd_u32 item)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_chunks_p chunks = pd_heap_chunks(d, h);
	pd_u32 PD_ARENA *where = &PD_POSITION(d, h->positions);
	pd_slot_p hole = pd_slot_at(d, chunks, position);

	pd_while (position > PD_ROOT) {
		pd_u32 parent = (position >> 2) + 2;
		pd_slot_p s = pd_slot_at(d, chunks, parent);

		if (!pd_before(d, heap, key, item, s))
			break;
		pd_heap_place(hole, where, position, s->key, s->item);
		hole = s;
		position = PD_ZERO(d) + parent;
	}
	pd_heap_place(hole, where, position, key, item);
	if (position == PD_ROOT)
		pd_heap_top(h, key, item);
	return 0;
}

/* Likewise, as long as no two keys are equal: what most additions need, and no more. */
PD_INLINE int pd_heap_rise(pd_ref d, pd_u32 heap, pd_u32 position, pd_u64 key, pd_u32 item)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_chunks_p chunks = pd_heap_chunks(d, h);
	pd_u32 PD_ARENA *where = &PD_POSITION(d, h->positions);
	pd_slot_p hole = pd_slot_at(d, chunks, position);

	pd_while (position > PD_ROOT) {
		pd_u32 parent = (position >> 2) + 2;
		pd_slot_p s = pd_slot_at(d, chunks, parent);

		if (PD_UNLIKELY(key == s->key))
			return pd_heap_up(d, heap, position, key, item);
		if (key > s->key)
			break;
		pd_heap_place(hole, where, position, s->key, s->item);
		hole = s;
		position = parent;
	}
	pd_heap_place(hole, where, position, key, item);
	if (position == PD_ROOT)
		pd_heap_top(h, key, item);
	return 0;
}

/* Which of a row of siblings is first. */
PD_ALWAYS_INLINE pd_slot_p pd_heap_row(pd_ref d, pd_u32 heap, pd_slot_p s, pd_u32 siblings)
{
	pd_slot_p best = s;
	pd_u32 i = 1;

	siblings = siblings < 4 ? siblings : PD_ZERO(d) + 4;
	pd_while (i < siblings) {
		if (pd_before(d, heap, s[i].key, s[i].item, best))
			best = s + i;
		i = PD_ZERO(d) + i + 1;
	}
	return best;
}

/* Puts the item at `position` or below it; does not look after the heap's first. */
PD_FN int pd_heap_down(pd_ref d, pd_u32 heap, pd_u32 position, pd_u64 key, pd_u32 item)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_chunks_p chunks = pd_heap_chunks(d, h);
	pd_u32 PD_ARENA *where = &PD_POSITION(d, h->positions);
	pd_u32 end = h->size + PD_ROOT;
	pd_slot_p hole = pd_slot_at(d, chunks, position);
	pd_u32 child = 4 * position - 8;

	pd_while (child < end) {
		pd_slot_p s = pd_slot_at(d, chunks, child);
		pd_slot_p best = pd_heap_row(d, heap, s, end - child);

		if (pd_before(d, heap, key, item, best))
			break;
		pd_heap_place(hole, where, position, best->key, best->item);
		hole = best;
		position = child + (pd_u32)(best - s);
		child = 4 * position - 8;
	}
	pd_heap_place(hole, where, position, key, item);
	return 0;
}

/* Likewise, as long as rows are full and no two keys are equal: the inner loop of every
 * decision. */
PD_INLINE int pd_heap_sink(pd_ref d, pd_u32 heap, pd_u32 position, pd_u64 key, pd_u32 item)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_chunks_p chunks = pd_heap_chunks(d, h);
	pd_u32 PD_ARENA *where = &PD_POSITION(d, h->positions);
	pd_u32 size = h->size;
	pd_slot_p hole = pd_slot_at(d, chunks, position);
	pd_u32 child = 4 * position - 8;

	pd_while (child < size) {
		pd_slot_p s = pd_slot_at(d, chunks, child);
		pd_slot_p best = s;
		pd_u64 least = s->key;

		if (PD_UNLIKELY(s[1].key == least))
			goto equal;
		if (s[1].key < least) {
			best = s + 1;
			least = s[1].key;
		}
		if (PD_UNLIKELY(s[2].key == least))
			goto equal;
		if (s[2].key < least) {
			best = s + 2;
			least = s[2].key;
		}
		if (PD_UNLIKELY(s[3].key == least))
			goto equal;
		if (s[3].key < least) {
			best = s + 3;
			least = s[3].key;
		}
		if (PD_UNLIKELY(key == least))
			goto equal;
		if (key < least)
			goto found;
		pd_heap_place(hole, where, position, least, best->item);
		hole = best;
		position = child + (pd_u32)(best - s);
		child = 4 * position - 8;
	}
	if (PD_UNLIKELY(child < size + PD_ROOT))
		goto equal;
found:
	pd_heap_place(hole, where, position, key, item);
	return 0;
equal:
	return pd_heap_down(d, heap, position, key, item);
}

/* Takes another chunk. The pool has one for every PD_CHUNK items and more for each heap: it cannot
 * run out while the number of items is within the limits. */
PD_FN int pd_heap_grow(pd_ref d, pd_u32 heap)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_u32 chunk = PD(d)->free_chunk;

	PD(d)->free_chunk = (pd_u32)PD_SLOT(d, chunk << PD_CHUNK_BITS)->key;
	PD_CHUNK_ENTRY(d, h->table + h->chunks) = (chunk - h->chunks) << PD_CHUNK_BITS;
	h->chunks++;
	return 0;
}

PD_SHARE int pd_heap_insert(pd_ref d, pd_u32 heap, pd_u64 key, pd_u32 item)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_u32 position = h->size++ + PD_ROOT;

	if (PD_UNLIKELY(position >> PD_CHUNK_BITS >= h->chunks))
		pd_heap_grow(d, heap);
	return pd_heap_rise(d, heap, position, key, item);
}

/* Gives back the last chunk, which has become empty; free chunks are linked by their first slot. */
PD_FN int pd_heap_shrink(pd_ref d, pd_u32 heap)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_u32 last = --h->chunks;
	pd_u32 chunk = (PD_CHUNK_ENTRY(d, h->table + last) >> PD_CHUNK_BITS) + last;

	chunk &= (1U << (32 - PD_CHUNK_BITS)) - 1;
	PD_SLOT(d, chunk << PD_CHUNK_BITS)->key = PD(d)->free_chunk;
	PD(d)->free_chunk = chunk;
	return 0;
}

/* Takes the item out, wherever it stands. */
PD_FN int pd_heap_remove(pd_ref d, pd_u32 heap, pd_u32 item)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_chunks_p chunks = pd_heap_chunks(d, h);
	pd_u32 position = PD_POSITION(d, h->positions + item);
	pd_u32 last = --h->size + PD_ROOT;
	pd_slot_p s = pd_slot_at(d, chunks, last);
	pd_u64 key = s->key;
	pd_u32 moved = s->item;

	/* The first chunk stays, so that a queue going between none and a few costs nothing. */
	if (PD_UNLIKELY(!(last & (PD_CHUNK - 1))))
		pd_heap_shrink(d, heap);
	if (position == last) {
		if (last == PD_ROOT)
			pd_heap_top(h, PD_INFINITE, PD_NONE);
		return 0;
	}
	if (position == PD_ROOT) {
		s = pd_slot_at(d, chunks, PD_ROOT);
		pd_heap_sink(d, heap, PD_ROOT, key, moved);
		pd_heap_top(h, s->key, s->item);
		return 0;
	}
	if (pd_before(d, heap, key, moved, pd_slot_at(d, chunks, (position >> 2) + 2)))
		return pd_heap_up(d, heap, position, key, moved);
	return pd_heap_down(d, heap, position, key, moved);
}

/* Its key has grown: the item goes to its new place. */
PD_FN int pd_heap_increase_key(pd_ref d, pd_u32 heap, pd_u32 item, pd_u64 key)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_slot_p s = pd_slot_at(d, pd_heap_chunks(d, h), PD_ROOT);

	pd_heap_down(d, heap, PD_POSITION(d, h->positions + item), key, item);
	pd_heap_top(h, s->key, s->item);
	return 0;
}

/* Restores the order after keys have changed: each parent, from the last one up, sinks to its
 * place. */
PD_FN int pd_heap_heapify(pd_ref d, pd_u32 heap)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_chunks_p chunks = pd_heap_chunks(d, h);
	pd_u32 position = ((h->size + PD_ROOT - 1) >> 2) + 2;
	pd_slot_p s;

	if (!h->size)
		return 0;
	pd_while (position >= PD_ROOT) {
		s = pd_slot_at(d, chunks, position);
		pd_heap_down(d, heap, position, s->key, s->item);
		position += PD_ZERO(d) - 1;
	}
	s = pd_slot_at(d, chunks, PD_ROOT);
	pd_heap_top(h, s->key, s->item);
	return 0;
}

PD_INLINE pd_u32 pd_heap_size(pd_ref d, pd_u32 heap)
{
	return PD_HEAP(d, heap)->size;
}

/* The first item; PD_NONE when it is empty. */
PD_INLINE pd_u32 pd_heap_first(pd_ref d, pd_u32 heap)
{
	return PD_HEAP(d, heap)->first;
}

/* The least key; PD_INFINITE when it is empty. */
PD_INLINE pd_u64 pd_heap_least(pd_ref d, pd_u32 heap)
{
	return PD_HEAP(d, heap)->least;
}
