// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Whether this kernel's verifier takes a bpf_timer: those of PREEMPT_RT answer EOPNOTSUPP. Only
 * loaded, never run (src/probe.rs).
 */
#include "kernel.h"

struct domain_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct domain_timer);
} timers SEC(".maps");

SEC("syscall")
int punctual_probe(void *context)
{
	__u32 zero = 0;
	struct domain_timer *t = bpf_map_lookup_elem(&timers, &zero);

	return t ? (int)bpf_timer_init(&t->timer, &timers, CLOCK_MONOTONIC) : 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
