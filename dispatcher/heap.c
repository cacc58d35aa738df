/* SPDX-License-Identifier: MIT */
/*
 * Four-way heaps over one pool of slots. Each item knows its position, so that any can be taken
 * out. The key, where the first attribute stands, lies in the slot; only ties look at the items.
 *
 * The root is at position 3, so that four siblings fill one line of the cache and one chunk holds
 * them all: the children of p are 4p - 8 to 4p - 5, its parent is p / 4 + 2.
 */
#include "internal.h"

/* The slot at a position. A chunk's table entry is where it would begin if the heap lay in one
 * piece, so that adding the position is all there is to do. */
PD_INLINE pd_slot_p pd_slot_at(pd_ref d, pd_u32 table, pd_u32 position)
{
	return PD_SLOT(d, (pd_u32)(PD_CHUNK_ENTRY(d, table + (position >> PD_CHUNK_BITS)) + position));
}

/* One attribute as a key, smaller first. They lie in the order of their numbers; of the priority
 * all bits but the sign's are turned over. */
PD_INLINE pd_u64 pd_attribute_key(pd_job_p j, pd_u32 attribute)
{
	const pd_u64 PD_ARENA *attributes = &j->attr.start;

	return attributes[attribute - 1] ^ (0 - (pd_u64)(attribute == PD_BY_PRIORITY)) >> 1;
}

/* Which of two ready jobs with equal keys is first: the other attributes, then arrival. */
PD_FOLD int pd_job_before(pd_ref d, pd_u32 group, pd_u32 a, pd_u32 b)
{
	pd_job_p x = PD_JOB(d, a);
	pd_job_p y = PD_JOB(d, b);
	pd_u32 order = PD_GROUP(d, group)->order >> 8;

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
	if (heap >= PD_GROUPS)
		return pd_job_before(d, heap - PD_GROUPS, a, b);
	if (heap == PD_RELEASES)
		return a < b;
	return PD_JOB(d, a)->sequence < PD_JOB(d, b)->sequence;
}

PD_INLINE int pd_before(pd_ref d, pd_u32 heap, pd_u64 key, pd_u32 item, pd_slot_p other)
{
	if (PD_LIKELY(key != other->key))
		return key < other->key;
	return pd_tie_before(d, heap, item, other->item);
}

/* Puts the item at `position` or above it. */
PD_FN int pd_heap_up(pd_ref d, pd_u32 heap, pd_u32 position, pd_u64 key, pd_u32 item)
{
	pd_u32 table = PD_HEAP(d, heap)->table;
	pd_u32 PD_ARENA *where = &PD_POSITION(d, PD_HEAP(d, heap)->positions);
	pd_slot_p hole = pd_slot_at(d, table, position);

	pd_while (position > PD_ROOT) {
		pd_u32 parent = (position >> 2) + 2;
		pd_slot_p s = pd_slot_at(d, table, parent);

		if (!pd_before(d, heap, key, item, s))
			break;
		hole->key = s->key;
		hole->item = s->item;
		where[s->item] = position;
		hole = s;
		position = parent;
	}
	hole->key = key;
	hole->item = item;
	where[item] = position;
	return 0;
}

/* Which of a row of siblings is first, where some are missing or two keys are equal. */
PD_FOLD pd_u32 pd_heap_row(pd_ref d, pd_u32 heap, pd_u32 child, pd_u32 end)
{
	pd_slot_p s = pd_slot_at(d, PD_HEAP(d, heap)->table, child);
	pd_u32 best = 0;
	pd_u32 i = PD_ZERO(d) + 1;

	pd_while (i < 4 && child + i < end) {
		if (pd_before(d, heap, s[i].key, s[i].item, s + best))
			best = i;
		i++;
	}
	return best;
}

/* Puts the item at `position` or below it. */
PD_FN int pd_heap_down(pd_ref d, pd_u32 heap, pd_u32 position, pd_u64 key, pd_u32 item)
{
	pd_u32 table = PD_HEAP(d, heap)->table;
	pd_u32 PD_ARENA *where = &PD_POSITION(d, PD_HEAP(d, heap)->positions);
	pd_u32 end = PD_HEAP(d, heap)->size + PD_ROOT;
	pd_slot_p hole = pd_slot_at(d, table, position);
	pd_u32 child = 4 * position - 8;

	pd_while (child < end) {
		pd_slot_p s = pd_slot_at(d, table, child);
		pd_slot_p best = s;
		pd_u64 least = s->key;

		/* Written out: this row is the inner loop of every decision. The last row of all,
		 * and equal keys, go the long way. */
		if (PD_UNLIKELY(child + 3 >= end))
			goto row;
		if (s[1].key <= least) {
			if (PD_UNLIKELY(s[1].key == least))
				goto row;
			best = s + 1;
			least = s[1].key;
		}
		if (s[2].key <= least) {
			if (PD_UNLIKELY(s[2].key == least))
				goto row;
			best = s + 2;
			least = s[2].key;
		}
		if (s[3].key <= least) {
			if (PD_UNLIKELY(s[3].key == least))
				goto row;
			best = s + 3;
		}
		goto found;
	row:
		best = s + pd_heap_row(d, heap, child, end);
	found:
		if (pd_before(d, heap, key, item, best))
			break;
		hole->key = best->key;
		hole->item = best->item;
		where[best->item] = position;
		hole = best;
		position = child + (pd_u32)(best - s);
		child = 4 * position - 8;
	}
	hole->key = key;
	hole->item = item;
	where[item] = position;
	return 0;
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

PD_FOLD int pd_heap_insert(pd_ref d, pd_u32 heap, pd_u64 key, pd_u32 item)
{
	pd_heap_p h = PD_HEAP(d, heap);
	pd_u32 position = h->size++ + PD_ROOT;

	if (PD_UNLIKELY(position >> PD_CHUNK_BITS >= h->chunks))
		pd_heap_grow(d, heap);
	return pd_heap_up(d, heap, position, key, item);
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
	pd_u32 position = PD_POSITION(d, h->positions + item);
	pd_u32 last = --h->size + PD_ROOT;
	pd_slot_p s = pd_slot_at(d, h->table, last);
	pd_u64 key = s->key;
	pd_u32 moved = s->item;

	/* The first chunk stays, so that a queue going between none and a few costs nothing. */
	if (PD_UNLIKELY(!(last & (PD_CHUNK - 1))))
		pd_heap_shrink(d, heap);
	if (position == last)
		return 0;
	if (position > PD_ROOT &&
	    pd_before(d, heap, key, moved, pd_slot_at(d, h->table, (position >> 2) + 2)))
		return pd_heap_up(d, heap, position, key, moved);
	return pd_heap_down(d, heap, position, key, moved);
}

PD_INLINE pd_u32 pd_heap_size(pd_ref d, pd_u32 heap)
{
	return PD_HEAP(d, heap)->size;
}

/* The first item and its key; the heap is not empty. */
PD_INLINE pd_slot_p pd_heap_first(pd_ref d, pd_u32 heap)
{
	return pd_slot_at(d, PD_HEAP(d, heap)->table, PD_ROOT);
}

/* The least key, PD_INFINITE when it is empty. */
PD_INLINE pd_u64 pd_heap_least(pd_ref d, pd_u32 heap)
{
	return pd_heap_size(d, heap) ? pd_heap_first(d, heap)->key : PD_INFINITE;
}
