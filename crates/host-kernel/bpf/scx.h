/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What of sched_ext the scheduler needs: by hand and relocated at load, so that one object serves
 * every kernel. */
#ifndef PUNCTUAL_SCX_H
#define PUNCTUAL_SCX_H

#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

enum {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_RINGBUF = 27,
	BPF_MAP_TYPE_TASK_STORAGE = 29,
	BPF_F_NO_PREALLOC = 1,
	BPF_LOCAL_STORAGE_GET_F_CREATE = 1,
	BPF_F_TIMER_ABS = 1,
	BPF_F_TIMER_CPU_PIN = 2,
};

#define CLOCK_MONOTONIC 1

/* One load or store, which the compiler neither repeats nor splits: of what another CPU or a
 * timer callback uses without the run queue's lock. */
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))

/* Of task_struct.flags and .policy. */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define SCHED_FIFO 1
#define SCHED_RR 2
#define SCHED_BATCH 3
#define SCHED_IDLE 5
#define SCHED_DEADLINE 6

#define SIGXCPU 24

/* linux/bpf.h's; the kernel knows it by name and size. */
struct bpf_timer {
	__u64 opaque[2];
} __attribute__((aligned(8)));

enum scx_exit_kind {
	SCX_EXIT_NONE = 0,
};

enum pid_type {
	PIDTYPE_PID = 0,
	PIDTYPE_TGID = 1,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct cpumask {
	unsigned long bits[1];
};

struct sched_ext_entity {
	__u32 flags;
	__u64 slice;
	__u64 dsq_vtime;
	unsigned long runnable_at; /* jiffies */
};

struct sched_entity {
	__u64 exec_start;
	__u64 sum_exec_runtime;
};

struct task_struct {
	int pid;
	int tgid;
	unsigned int flags;
	unsigned int policy;
	int static_prio;
	int nr_cpus_allowed;
	unsigned short migration_disabled;
	const struct cpumask *cpus_ptr;
	struct task_struct *group_leader;
	struct sched_entity se;
	struct sched_ext_entity scx;
};

struct rq {
	unsigned int clock_update_flags;
};

struct scx_exit_info {
	enum scx_exit_kind kind;
	__s64 exit_code;
	const char *reason;
	char *msg;
};

struct scx_dump_ctx;

struct scx_init_task_args {
	bool fork;
};

struct scx_exit_task_args {
	bool cancelled;
};
#pragma clang attribute pop

/* Members are matched by name; values differ between kernels, so they are looked up at load. */
enum scx_enq_flags {
	SCX_ENQ_HEAD = 1,
	SCX_ENQ_WAKEUP = 2,
	SCX_ENQ_CPU_SELECTED = 3,
	SCX_ENQ_PREEMPT = 4,
};
enum scx_deq_flags {
	SCX_DEQ_SLEEP = 1,
};
enum scx_kick_flags {
	SCX_KICK_IDLE = 1,
	SCX_KICK_PREEMPT = 2,
};
enum scx_ent_flags {
	SCX_TASK_QUEUED = 1,
};
enum scx_dsq_iter_flags {
	SCX_DSQ_ITER_REV = 1,
};
enum scx_dsq_id_flags {
	SCX_DSQ_LOCAL = 1,
};
#define SCX_ENUM(type, name) ((__u64)bpf_core_enum_value(enum type, name))

struct sched_ext_ops {
	__s32 (*select_cpu)(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags);
	void (*enqueue)(struct task_struct *p, __u64 enq_flags);
	void (*dispatch)(__s32 cpu, struct task_struct *prev);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, __u64 deq_flags);
	bool (*yield)(struct task_struct *from, struct task_struct *to);
	void (*disable)(struct task_struct *p);
	__s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
	void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
	void (*dump)(struct scx_dump_ctx *ctx);
	void (*dump_task)(struct scx_dump_ctx *ctx, struct task_struct *p);
	void (*cpu_online)(__s32 cpu);
	void (*cpu_offline)(__s32 cpu);
	__s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	__u64 flags;
	__u32 timeout_ms;
	char name[128];
};

/* Of struct sched_ext_ops.flags; these are part of the kernel's interface by value. */
#define OPS_ENQ_LAST (1ULL << 1)
#define OPS_ENQ_EXITING (1ULL << 2)
#define OPS_ENQ_MIGRATION_DISABLED (1ULL << 4)

/* Opaque, as all of the kernel's iterators. */
struct bpf_iter_scx_dsq {
	__u64 opaque[6];
} __attribute__((aligned(8)));

struct scx_bpf_dsq_insert_vtime_args {
	__u64 dsq_id;
	__u64 slice;
	__u64 vtime;
	__u64 enq_flags;
};

extern int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 dsq, __u64 flags) __ksym;
extern struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
extern void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;
extern bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, __u64 dsq, __u64 flags) __ksym;
extern __s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags, bool *is_idle) __ksym;
extern __s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags) __ksym;
extern __u32 scx_bpf_nr_cpu_ids(void) __ksym;
extern __s32 scx_bpf_create_dsq(__u64 dsq, __s32 node) __ksym;
extern void scx_bpf_kick_cpu(__s32 cpu, __u64 flags) __ksym;
extern __s32 scx_bpf_dsq_nr_queued(__u64 dsq) __ksym;
extern __s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
/* The run queue's clock where its lock is held, else the scheduler's clock now. */
extern __u64 scx_bpf_now(void) __ksym;
extern void scx_bpf_exit_bstr(__s64 code, char *format, unsigned long long *data, __u32 size) __ksym;
extern void scx_bpf_error_bstr(char *format, unsigned long long *data, __u32 size) __ksym;
extern void scx_bpf_dump_bstr(char *format, unsigned long long *data, __u32 size) __ksym;
extern bool bpf_cpumask_test_cpu(__u32 cpu, const struct cpumask *cpumask) __ksym;
extern struct task_struct *bpf_task_from_pid(__s32 pid) __ksym;
extern struct task_struct *bpf_task_from_vpid(__s32 vpid) __ksym;
extern void bpf_task_release(struct task_struct *p) __ksym;
extern int bpf_send_signal_task(struct task_struct *p, int signal, enum pid_type type, __u64 value) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern void bpf_local_irq_save(unsigned long *flags) __ksym;
extern void bpf_local_irq_restore(unsigned long *flags) __ksym;

extern struct rq *scx_bpf_locked_rq(void) __ksym __weak;

/* libbpf cuts the last ___word off: the first of each pair is the newer kernels'. */
extern bool scx_bpf_dsq_insert___v2___new(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags) __ksym __weak;
extern void scx_bpf_dsq_insert___old(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local___v2___new(__u64 dsq, __u64 flags) __ksym __weak;
extern bool scx_bpf_dsq_move_to_local___old(__u64 dsq) __ksym __weak;
extern bool __scx_bpf_dsq_insert_vtime___new(struct task_struct *p, struct scx_bpf_dsq_insert_vtime_args *args)
	__ksym __weak;
extern void scx_bpf_dsq_insert_vtime___old(struct task_struct *p, __u64 dsq, __u64 slice, __u64 vtime, __u64 flags)
	__ksym __weak;
extern bool scx_bpf_task_set_dsq_vtime___new(struct task_struct *p, __u64 vtime) __ksym __weak;
extern bool scx_bpf_task_set_slice___new(struct task_struct *p, __u64 slice) __ksym __weak;

static inline __attribute__((always_inline)) void insert(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___new))
		scx_bpf_dsq_insert___v2___new(p, dsq, slice, flags);
	else if (bpf_ksym_exists(scx_bpf_dsq_insert___old))
		scx_bpf_dsq_insert___old(p, dsq, slice, flags);
}

/* Into a queue in order of virtual time, the least first. */
static inline __attribute__((always_inline)) void insert_vtime(struct task_struct *p, __u64 dsq, __u64 slice,
							       __u64 vtime, __u64 flags)
{
	if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime___new)) {
		struct scx_bpf_dsq_insert_vtime_args args = {
			.dsq_id = dsq,
			.slice = slice,
			.vtime = vtime,
			.enq_flags = flags,
		};

		__scx_bpf_dsq_insert_vtime___new(p, &args);
	} else if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime___old)) {
		scx_bpf_dsq_insert_vtime___old(p, dsq, slice, vtime, flags);
	}
}

static inline __attribute__((always_inline)) bool move_to_local(__u64 dsq)
{
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___new))
		return scx_bpf_dsq_move_to_local___v2___new(dsq, 0);
	if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___old))
		return scx_bpf_dsq_move_to_local___old(dsq);
	return false;
}

static inline __attribute__((always_inline)) void set_slice(struct task_struct *p, __u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice___new))
		scx_bpf_task_set_slice___new(p, slice);
	else
		p->scx.slice = slice;
}

static inline __attribute__((always_inline)) void set_vtime(struct task_struct *p, __u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_task_set_dsq_vtime___new))
		scx_bpf_task_set_dsq_vtime___new(p, vtime);
	else
		p->scx.dsq_vtime = vtime;
}

/* Ends the scheduler at a state that cannot be; `format` has one %llu for `number`. */
#define scheduler_error(format, number)                                              \
	({                                                                           \
		static char error_text[] = format;                                   \
		unsigned long long error_number = (number);                          \
		scx_bpf_error_bstr(error_text, &error_number, sizeof(error_number)); \
	})

#define scx_refuse(name)                                                         \
	({                                                                       \
		scheduler_error("this kernel has no " name " (%llu forms tried)", 2); \
		-EOPNOTSUPP;                                                     \
	})

/* The barrier keeps the compiler from combining addresses, which the verifier refuses. */
#define has_kfunc(function)                            \
	({                                             \
		int has = bpf_ksym_exists(function);   \
		asm volatile("" : "+r"(has));          \
		has;                                   \
	})

/* From ops.init: refuses a kernel that has neither form of a function that is called by two. Of all
 * others libbpf names the one that is missing. */
static inline __attribute__((always_inline)) int missing_kfunc(void)
{
	if (!has_kfunc(scx_bpf_dsq_insert___v2___new) && !has_kfunc(scx_bpf_dsq_insert___old))
		return scx_refuse("scx_bpf_dsq_insert");
	if (!has_kfunc(__scx_bpf_dsq_insert_vtime___new) &&
	    !has_kfunc(scx_bpf_dsq_insert_vtime___old))
		return scx_refuse("scx_bpf_dsq_insert_vtime");
	if (!has_kfunc(scx_bpf_dsq_move_to_local___v2___new) &&
	    !has_kfunc(scx_bpf_dsq_move_to_local___old))
		return scx_refuse("scx_bpf_dsq_move_to_local");
	return 0;
}

#endif
