/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/*
 * Where the dispatchers' objects are in the kernel: a block for each domain, in one BPF arena. A
 * block's pages come when its dispatcher is made, as far as its trace ring reaches, which is last
 * in it.
 *
 * The verifier proves nothing about an address in the arena; the kernel contains a wild one's
 * fault. Addresses are computed as plain numbers of 64 bits, of which the verifier knows nothing:
 * ranges would make it follow loops turn by turn, and kernels up to 6.18 refuse the sum of a
 * number and an arena pointer (PD_BARRIER_VAR, PD_NTH).
 */
#pragma once

#include "limits.h"

#define PD_ARENA_QUEUES (PD_ARENA_GROUPS + PD_ARENA_NODES)
/* Bytes of each block that are the object's own. */
#ifndef PD_ARENA_BESIDE
#define PD_ARENA_BESIDE 0
#endif
#define PD_ARENA_PAGE 4096U

/* What begins within 32 KiB is found by the offset in the instruction: the busiest are first. */
struct pd_block {
	struct pd dispatcher;
	struct pd_cpu cpus[PD_ARENA_CPUS];
	struct pd_heap heaps[PD_HEAPS(PD_ARENA_QUEUES)];
	struct pd_group groups[PD_ARENA_GROUPS];
	struct pd_node nodes[PD_ARENA_NODES + 1];
	struct pd_job jobs[PD_ARENA_JOBS + 1];
	struct pd_task tasks[PD_ARENA_TASKS];
	pd_u32 chunk_table[PD_CHUNK_ENTRIES(PD_ARENA_JOBS, PD_ARENA_RESERVATIONS, PD_ARENA_TIMERS,
					    PD_ARENA_QUEUES)];
	pd_u32 positions[PD_POSITIONS(PD_ARENA_JOBS, PD_ARENA_RESERVATIONS, PD_ARENA_TIMERS)];
	/* A row of four siblings is one line of the cache. */
	struct pd_slot slots[PD_CHUNKS(PD_ARENA_JOBS, PD_ARENA_RESERVATIONS, PD_ARENA_TIMERS,
				       PD_ARENA_QUEUES)
			     << PD_CHUNK_BITS] __attribute__((aligned(64)));
	struct pd_reservation reservations[PD_ARENA_RESERVATIONS];
	struct pd_timer timers[PD_ARENA_TIMERS];
	struct pd_window windows[PD_ARENA_WINDOWS];
	pd_u64 beside[PD_ARENA_BESIDE / sizeof(pd_u64)];
	struct pd_event events[PD_ARENA_EVENTS];
	struct pd_record records[PD_ARENA_RECORDS];
};

/* Pages of all blocks together. */
#define PD_ARENA_PAGES \
	(PD_DOMAINS * (sizeof(struct pd_block) + PD_ARENA_PAGE - 1) / PD_ARENA_PAGE)

/* The blocks' addresses, by domain; 0 where there is none. */
pd_ref pd_blocks[PD_DOMAINS];

/* A domain's dispatcher, for the pd_ functions and the macros below. The arena is mentioned
 * because the verifier wants that of every program that reaches into it. */
#define PD_AT(domain)                                     \
	({                                                \
		void *pd_in = &arena;                     \
		asm volatile("" : "+r"(pd_in));           \
		pd_blocks[(domain) & (PD_DOMAINS - 1)];   \
	})

#define PD_OFFSET(array) ((pd_u64)__builtin_offsetof(struct pd_block, array))
#define PD_POINTER(type, address) ((type PD_ARENA *)(unsigned long)(address))
#define PD_ITEM(d, type, array, i)                                                               \
	__builtin_choose_expr(                                                                   \
		PD_OFFSET(array) < 32000,                                                        \
		&PD_POINTER(struct pd_block, (d) + (pd_u64)(i) * sizeof(type))->array[0],        \
		PD_POINTER(type, (d) + (pd_u64)(i) * sizeof(type) + PD_OFFSET(array)))

#define PD(d) PD_POINTER(struct pd, d)
#define PD_JOB(d, i) PD_ITEM(d, struct pd_job, jobs, i)
#define PD_TASK(d, i) PD_ITEM(d, struct pd_task, tasks, i)
#define PD_GROUP(d, i) PD_ITEM(d, struct pd_group, groups, i)
#define PD_NODE(d, i) PD_ITEM(d, struct pd_node, nodes, i)
#define PD_TIMER(d, i) PD_ITEM(d, struct pd_timer, timers, i)
#define PD_HEAP(d, i) PD_ITEM(d, struct pd_heap, heaps, i)
#define PD_SLOT(d, i) PD_ITEM(d, struct pd_slot, slots, i)
#define PD_CHUNK_ENTRY(d, i) (*PD_ITEM(d, pd_u32, chunk_table, i))
#define PD_POSITION(d, i) (*PD_ITEM(d, pd_u32, positions, i))
#define PD_RESERVATION(d, i) PD_ITEM(d, struct pd_reservation, reservations, i)
#define PD_WINDOW(d, i) PD_ITEM(d, struct pd_window, windows, i)
#define PD_CPU(d, i) PD_ITEM(d, struct pd_cpu, cpus, i)
#define PD_EVENT(d, i) PD_ITEM(d, struct pd_event, events, i)
#define PD_RECORD(d, i) PD_ITEM(d, struct pd_record, records, i)

extern void PD_ARENA *bpf_arena_alloc_pages(void *map, void PD_ARENA *address, pd_u32 pages,
					    int node, pd_u64 flags) __ksym;
extern void bpf_arena_free_pages(void *map, void PD_ARENA *address, pd_u32 pages) __ksym;

/* Makes the dispatcher of a domain, with these limits. No lock is held: it may sleep. -EBUSY if
 * there is one, -ENOSPC if there is no memory. */
#define pd_make(domain, given) pd_make_in(&arena, domain, given)
PD_INLINE int pd_make_in(void *in, pd_u32 domain, const struct pd_limits *given)
{
	void PD_ARENA *block;
	pd_u32 pages;
	int refused;
	pd_ref d;

	if (domain >= PD_DOMAINS || given->records > PD_ARENA_RECORDS)
		return -EINVAL;
	if (pd_blocks[domain])
		return -EBUSY;
	pages = (PD_OFFSET(records) + given->records * sizeof(struct pd_record) +
		 PD_ARENA_PAGE - 1) / PD_ARENA_PAGE;
	block = bpf_arena_alloc_pages(in, (void PD_ARENA *)0, pages, -1, 0);
	if (!block)
		return -ENOSPC;
	d = (pd_ref)block;
	pd_copy(&PD(d)->limits, given, );
	refused = pd_create(d);
	if (refused)
		bpf_arena_free_pages(in, block, pages);
	else
		pd_blocks[domain] = d;
	return refused;
}
