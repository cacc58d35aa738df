/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* Which CPU is which domain's. Set before the scheduler is attached, and constant from then on:
 * read in any state, on any CPU. */
#pragma once

#define IN_DOMAINS(domain) ((domain) & (PD_DOMAINS - 1))
/* A power of two. */
#define MOST_CPUS 1024U

/* CPU + 1 of each domain, and domain + 1 of each CPU; 0 for none. */
__u32 cpu_of[PD_DOMAINS];
__u32 domain_of[MOST_CPUS];

/* The domain of a CPU, PD_NONE if it has none. */
PD_INLINE __u32 domain_on(__s32 cpu)
{
	return domain_of[(__u32)cpu & (MOST_CPUS - 1)] - 1;
}

PD_INLINE __s32 domain_cpu(__u32 domain)
{
	return (__s32)(cpu_of[IN_DOMAINS(domain)] - 1);
}

/* This code does not execute on the domain's CPU. */
PD_INLINE bool on_remote_cpu(__u32 domain)
{
	return (__s32)bpf_get_smp_processor_id() != domain_cpu(domain);
}
