/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What user space learns without asking: that a decision left events for the allocators, and that
 * the scheduler has ended, by whatever cause. */
#pragma once

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} doorbell SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct punctual_exit);
} exit_info SEC(".maps");

/* The scheduler has ended, and decisions have no effect any more. */
__u32 has_ended;

/* Wakes the allocators of a domain. */
PD_INLINE void doorbell_ring(__u32 domain) __on_domain
{
	struct punctual_doorbell bell = { .domain = domain };

	bpf_ringbuf_output(&doorbell, &bell, sizeof(bell), 0);
}

/* From ops.exit. */
PD_INLINE void ended(struct scx_exit_info *info) __any_state
{
	__u32 zero = 0;
	struct punctual_exit *e = bpf_map_lookup_elem(&exit_info, &zero);

	has_ended = 1;
	if (!e)
		return;
	bpf_probe_read_kernel_str(e->reason, sizeof(e->reason), info->reason);
	bpf_probe_read_kernel_str(e->message, sizeof(e->message), info->msg);
	e->code = info->exit_code;
	e->kind = info->kind;
}
