/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What user space and the test-run programs say to each other (src/selftest.rs has the same). */
#pragma once

#define PD_DECISION_JOBS 4096U

struct pd_create_call {
	struct pd_limits limits;
	pd_u32 domain;
	pd_u32 unused;
};

struct pd_call {
	pd_u32 domain;
	pd_u32 unused;
	pd_u64 seed;
	pd_u64 hash;  /* out */
	pd_u32 batch; /* of an exercise */
	pd_u32 count;
	pd_u32 jobs;  /* for decisions */
	pd_u32 trees; /* 1: decisions in a hierarchy, with budget groups */
	pd_u32 begin; /* 1: another set of jobs, for decisions */
	pd_u32 left;  /* out: operations of this batch that are still to be made */
};
