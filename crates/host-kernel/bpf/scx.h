/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* What of the scheduler's and sched_ext's own types and functions is needed: by hand and relocated
 * at load, so that one object serves every kernel. One that lacks something of it is refused, by
 * name (libbpf; src/kernel_btf.rs). */
#pragma once

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "platform.h"

/* One load or store, which the compiler neither repeats nor splits: of what another CPU or a
 * timer callback uses without the run queue's lock. */
#define READ_ONCE(x) (*(const volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))

/* Of task_struct.flags and .policy, and the first static_prio that is not a real-time one: macros
 * in the kernel, which BTF does not have. */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define SCHED_FIFO 1
#define SCHED_RR 2
#define SCHED_BATCH 3
#define SCHED_IDLE 5
#define SCHED_DEADLINE 6
#define MAX_RT_PRIO 100

/* Values differ between kernels: each is read from BTF, by its name, at load. */
#define KERNEL_ENUM(type, name) ((__u64)bpf_core_enum_value(enum type, name))
enum scx_enq_flags { SCX_ENQ_HEAD, SCX_ENQ_WAKEUP, SCX_ENQ_CPU_SELECTED, SCX_ENQ_PREEMPT };
#define SCX_ENQ_HEAD KERNEL_ENUM(scx_enq_flags, SCX_ENQ_HEAD)
#define SCX_ENQ_WAKEUP KERNEL_ENUM(scx_enq_flags, SCX_ENQ_WAKEUP)
#define SCX_ENQ_CPU_SELECTED KERNEL_ENUM(scx_enq_flags, SCX_ENQ_CPU_SELECTED)
#define SCX_ENQ_PREEMPT KERNEL_ENUM(scx_enq_flags, SCX_ENQ_PREEMPT)
enum scx_deq_flags { SCX_DEQ_SLEEP };
#define SCX_DEQ_SLEEP KERNEL_ENUM(scx_deq_flags, SCX_DEQ_SLEEP)
enum scx_kick_flags { SCX_KICK_IDLE, SCX_KICK_PREEMPT };
#define SCX_KICK_IDLE KERNEL_ENUM(scx_kick_flags, SCX_KICK_IDLE)
#define SCX_KICK_PREEMPT KERNEL_ENUM(scx_kick_flags, SCX_KICK_PREEMPT)
enum scx_ent_flags { SCX_TASK_QUEUED };
#define SCX_TASK_QUEUED KERNEL_ENUM(scx_ent_flags, SCX_TASK_QUEUED)
enum scx_dsq_iter_flags { SCX_DSQ_ITER_REV };
#define SCX_DSQ_ITER_REV KERNEL_ENUM(scx_dsq_iter_flags, SCX_DSQ_ITER_REV)
enum scx_dsq_id_flags { SCX_DSQ_LOCAL };
#define SCX_DSQ_LOCAL KERNEL_ENUM(scx_dsq_id_flags, SCX_DSQ_LOCAL)
enum pid_type { PIDTYPE_PID, PIDTYPE_TGID };
#define PIDTYPE_PID KERNEL_ENUM(pid_type, PIDTYPE_PID)
#define PIDTYPE_TGID KERNEL_ENUM(pid_type, PIDTYPE_TGID)
enum scx_exit_kind { SCX_EXIT_NONE };
/* But for these: libbpf copies them before there are programs. ops.init compares them with BTF. */
enum scx_ops_flags {
	SCX_OPS_ENQ_LAST = 1 << 1,
	SCX_OPS_ENQ_EXITING = 1 << 2,
	SCX_OPS_ENQ_MIGRATION_DISABLED = 1 << 4,
};
#define OPS_FLAG_DIFFERS(name) (KERNEL_ENUM(scx_ops_flags, name) != name)

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

struct rb_node {
	struct rb_node *rb_left;
};

struct rb_root_cached {
	struct rb_node *rb_leftmost;
};

struct rt_mutex_base {
	struct rb_root_cached waiters;
	struct task_struct *owner;
};

struct rt_waiter_node {
	struct rb_node entry;
};

struct rt_mutex_waiter {
	struct rt_waiter_node tree;
	struct task_struct *task;
	struct rt_mutex_base *lock;
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
	struct sched_entity se;
	struct sched_ext_entity scx;
	struct rt_mutex_waiter *pi_blocked_on;
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

struct scx_init_task_args {
	bool fork;
};

struct scx_exit_task_args {
	bool cancelled;
};
#pragma clang attribute pop

struct scx_dump_ctx;

/* Its members are found by name. */
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

/* In every kernel that has sched_ext as of 6.18; libbpf names one that is missing. */
#pragma clang attribute push(__attribute__((section(".ksyms"))), apply_to = function)
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, __u64 dsq, __u64 flags);
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it);
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it);
bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, __u64 dsq, __u64 flags);
__s32 scx_bpf_select_cpu_dfl(struct task_struct *p, __s32 prev_cpu, __u64 wake_flags, bool *idle);
__s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, __u64 flags);
__u32 scx_bpf_nr_cpu_ids(void);
__s32 scx_bpf_create_dsq(__u64 dsq, __s32 node);
void scx_bpf_kick_cpu(__s32 cpu, __u64 flags);
__s32 scx_bpf_dsq_nr_queued(__u64 dsq);
__s32 scx_bpf_task_cpu(const struct task_struct *p);
/* The run queue's clock where its lock is held, else the scheduler's clock now. */
__u64 scx_bpf_now(void);
void scx_bpf_exit_bstr(__s64 code, char *format, unsigned long long *data, __u32 size);
void scx_bpf_error_bstr(char *format, unsigned long long *data, __u32 size);
void scx_bpf_dump_bstr(char *format, unsigned long long *data, __u32 size);
bool bpf_cpumask_test_cpu(__u32 cpu, const struct cpumask *cpumask);
struct task_struct *bpf_task_from_pid(__s32 pid);
struct task_struct *bpf_task_from_vpid(__s32 vpid);
void bpf_task_release(struct task_struct *p);
int bpf_send_signal_task(struct task_struct *p, int signal, enum pid_type type, __u64 value);
void bpf_local_irq_save(unsigned long *flags);
void bpf_local_irq_restore(unsigned long *flags);

/* In some kernels. libbpf cuts the last ___word off: the first of each pair is the newer kernels'
 * (src/kernel_btf.rs has the pairs of which a kernel needs one). */
#pragma clang attribute push(__attribute__((weak)), apply_to = function)
struct rq *scx_bpf_locked_rq(void);
bool scx_bpf_dsq_insert___v2___new(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags);
void scx_bpf_dsq_insert___old(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags);
bool scx_bpf_dsq_move_to_local___v2___new(__u64 dsq, __u64 flags);
bool scx_bpf_dsq_move_to_local___old(__u64 dsq);
bool __scx_bpf_dsq_insert_vtime___new(struct task_struct *p,
				      struct scx_bpf_dsq_insert_vtime_args *args);
void scx_bpf_dsq_insert_vtime___old(struct task_struct *p, __u64 dsq, __u64 slice, __u64 vtime,
				    __u64 flags);
bool scx_bpf_task_set_dsq_vtime___new(struct task_struct *p, __u64 vtime);
bool scx_bpf_task_set_slice___new(struct task_struct *p, __u64 slice);
#pragma clang attribute pop
#pragma clang attribute pop

/* The second question, where a kernel needs one of two, has the verifier go through less. */
PD_INLINE void insert(struct task_struct *p, __u64 dsq, __u64 slice, __u64 flags)
{
	if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___new))
		scx_bpf_dsq_insert___v2___new(p, dsq, slice, flags);
	else if (bpf_ksym_exists(scx_bpf_dsq_insert___old))
		scx_bpf_dsq_insert___old(p, dsq, slice, flags);
}

/* Into a queue in order of virtual time, the least first. */
PD_INLINE void insert_vtime(struct task_struct *p, __u64 dsq, __u64 slice, __u64 vtime, __u64 flags)
{
	if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime___new)) {
		struct scx_bpf_dsq_insert_vtime_args args = { dsq, slice, vtime, flags };

		__scx_bpf_dsq_insert_vtime___new(p, &args);
	} else if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime___old)) {
		scx_bpf_dsq_insert_vtime___old(p, dsq, slice, vtime, flags);
	}
}

PD_INLINE bool move_to_local(__u64 dsq)
{
	return bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___new) ?
		       scx_bpf_dsq_move_to_local___v2___new(dsq, 0) :
		       scx_bpf_dsq_move_to_local___old(dsq);
}

PD_INLINE void set_slice(struct task_struct *p, __u64 slice)
{
	if (bpf_ksym_exists(scx_bpf_task_set_slice___new))
		scx_bpf_task_set_slice___new(p, slice);
	else
		p->scx.slice = slice;
}

PD_INLINE void set_vtime(struct task_struct *p, __u64 vtime)
{
	if (bpf_ksym_exists(scx_bpf_task_set_dsq_vtime___new))
		scx_bpf_task_set_dsq_vtime___new(p, vtime);
	else
		p->scx.dsq_vtime = vtime;
}

/* A function that prints: its format has to be in memory, its arguments are numbers of 64 bits. */
#define scx_print(function, format, ...)                               \
	({                                                             \
		static char text[] = format;                           \
		unsigned long long numbers[] = { __VA_ARGS__ };        \
		function(text, numbers, sizeof(numbers));              \
	})
#define dump_line(format, ...) scx_print(scx_bpf_dump_bstr, format, __VA_ARGS__)
/* Ends the scheduler at a state that cannot be. */
#define scheduler_error(format, ...) scx_print(scx_bpf_error_bstr, format, __VA_ARGS__)
/* Ends it for another reason: `code` is of commands.h, `text` has a %llu for the CPU. */
#define end_scheduler(code, cpu, text)                                                     \
	({                                                                                 \
		static char end_text[] = text;                                             \
		unsigned long long end_cpu = (__u32)(cpu);                                 \
		scx_bpf_exit_bstr((code) | end_cpu, end_text, &end_cpu, sizeof(end_cpu));  \
	})
