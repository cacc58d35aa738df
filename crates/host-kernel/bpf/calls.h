/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What user space and the test-run programs say to each other (src/selftest.rs has the same). */
#ifndef PUNCTUAL_CALLS_H
#define PUNCTUAL_CALLS_H

#define PD_DECISION_JOBS 4096U

struct pd_call {
	pd_u64 seed;
	pd_u64 hash; /* out */
	pd_u32 batch;
	pd_u32 count;
	pd_u32 jobs;
	pd_u32 unused;
};

#endif
