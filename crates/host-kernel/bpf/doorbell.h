/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Rings when a decision left events for an allocator in user space: one ring buffer for each domain, so that nobody is
 * woken for another's. */
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
