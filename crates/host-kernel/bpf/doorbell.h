/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Wakes the allocators in user space when a decision left events for them. */
#ifndef PUNCTUAL_DOORBELL_H
#define PUNCTUAL_DOORBELL_H

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

PD_INLINE void doorbell_ring(__u32 domain)
{
	struct punctual_doorbell bell = { .domain = domain };

	bpf_ringbuf_output(&doorbell, &bell, sizeof(bell), 0);
}

#endif
