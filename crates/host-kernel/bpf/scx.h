/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What of sched_ext the scheduler needs: by hand and relocated at load, so that one object serves every kernel. */
#ifndef PUNCTUAL_SCX_H
#define PUNCTUAL_SCX_H

#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

enum {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_F_TIMER_ABS = 1,
	BPF_F_TIMER_CPU_PIN = 2,
};

/* linux/bpf.h's; the kernel knows it by name and size. */
struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));

enum scx_exit_kind {
	SCX_EXIT_NONE = 0,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sched_ext_entity {
	__u64 slice;
};

struct task_struct {
	int pid;
	unsigned int flags;
	struct sched_ext_entity scx;
};

struct scx_exit_info {
	enum scx_exit_kind kind;
};
#pragma clang attribute pop

struct scx_init_task_args;
struct scx_exit_task_args;

/* Members are matched by name; values differ between kernels, so they are looked up at load. */
enum scx_enq_flags {
	SCX_ENQ_HEAD = 1,
};
enum scx_kick_flags {
	SCX_KICK_PREEMPT = 1,
};
#define SCX_ENUM(type, name) ((__u64)bpf_core_enum_value(enum type, name))

struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags);
	void (*enqueue)(struct task_struct *p, __u64 enq_flags);
	void (*dispatch)(__s32 cpu, struct task_struct *prev);
	void (*runnable)(struct task_struct *p, __u64 enq_flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, __u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	__u64 flags;
	__u32 timeout_ms;
	char name[128];
};

/* Of struct sched_ext_ops.flags; these are part of the kernel's interface by value. */
#define OPS_ENQ_LAST (1ULL << 1)
#define OPS_ENQ_MIGRATION_DISABLED (1ULL << 4)

extern __s32 scx_bpf_create_dsq(__u64 dsq, __s32 node) __ksym;
extern void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;
extern __s32 scx_bpf_dsq_nr_queued(__u64 dsq) __ksym;
extern void bpf_local_irq_save(unsigned long *flags) __ksym;
extern void bpf_local_irq_restore(unsigned long *flags) __ksym;

/* libbpf cuts the last ___word off: the first of each pair is the newer kernels'. */
extern bool scx_bpf_dsq_insert___v2___new(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags) __ksym __weak;
extern void scx_bpf_dsq_insert___old(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local___v2___new(__u64 dsq, __u64 flags) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local___old(__u64 dsq) __ksym __weak;
extern bool scx_bpf_task_set_slice___new(struct task_struct *p, __u64 slice) __ksym __weak;

static inline __attribute__((always_inline)) void insert(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___new))
		scx_bpf_dsq_insert___v2___new(p, dsq, slice, flags);
	else if (bpf_ksym_exists(scx_bpf_dsq_insert___old))
		scx_bpf_dsq_insert___old(p, dsq, slice, flags);
}

static inline __attribute__((always_inline)) bool move_to_local(__u64 dsq)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___new))
		return scx_bpf_dsq_move_to_local___v2___new(dsq, 0);
	return scx_bpf_dsq_move_to_local___old(dsq);
}

static inline __attribute__((always_inline)) void set_slice(struct task_struct *p, __u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice___new))
		scx_bpf_task_set_slice___new(p, slice);
	else
		p->scx.slice = slice;
}

#endif
