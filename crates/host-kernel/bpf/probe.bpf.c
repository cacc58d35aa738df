// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * Whether this kernel's verifier takes a bpf_timer: those of PREEMPT_RT answer EOPNOTSUPP. Only
 * loaded, never run (src/probe.rs).
 */
#include "kernel.h"

enum {
	BPF_MAP_TYPE_ARRAY = 2,
};

/* linux/bpf.h's; the kernel knows it by name and size. */
struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));

struct domain_timer {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct domain_timer);
} timers SEC(".maps");

#define CLOCK_MONOTONIC 1

SEC("syscall")
int punctual_probe(void *context)
{
	__u32 zero = 0;
	struct domain_timer *t = bpf_map_lookup_elem(&timers, &zero);

	return t ? (int)bpf_timer_init(&t->timer, &timers, CLOCK_MONOTONIC) : 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
