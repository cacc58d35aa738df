// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * A sched_ext scheduler around the dispatcher (design, "Host: kernel").
 *
 *   states.h        in which state of the kernel a function may be called
 *   member.h        which thread belongs to which task, and the notes of what happened to it
 *   domain.h        a dispatcher and its CPU
 *   lock.h          who holds the lock for which a thread waits
 *   decide.h        charges, applies the notes, and decides
 *   late_wait.h     late waits, where an allocator makes the jobs
 *   run.h           executes a decision, and measures execution
 *   timer.h         when to decide next; timer_process.h: where bpf_timer is refused
 *   ksoftirqd.h     soft interrupts for which the timer may have to wait
 *   fair.h          best-effort tasks, with fair_wake.h and fair_time.h
 *   commands.bpf.h  commands of user space; reports.h: what it learns without asking
 *   dump.h          the state of a stalled machine
 *
 * A callback that concerns neither a member's thread nor a domain's CPU is fair.h's.
 */
#include "kernel.h"
#include "scx.h"
#include "states.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 8192); /* pages */
} arena SEC(".maps");

#include "dispatcher.c"
#include "commands.h"
#include "cpus.h"
#include "reports.h"
#include "fair.h"
#include "member.h"
#include "domain.h"
#include "lock.h"
#include "decide.h"
#include "late_wait.h"
#include "fair_wake.h"
#include "timer_process.h"
#include "ksoftirqd.h"
#include "timer.h"
#include "run.h"
#include "commands.bpf.h"
#include "dump.h"

/* Members are always queued: an idle CPU would run a member's thread at once. */
SEC("struct_ops/punctual_select_cpu")
__s32 BPF_PROG(punctual_select_cpu, struct task_struct *p, __s32 prev_cpu,
	       __u64 wake_flags) __waking
{
	struct member *m = member_of(p);

	if (m && member_place(p, m) != BEST_EFFORT)
		return domain_cpu(m->domain);
	return fair_select_cpu(p, prev_cpu, wake_flags);
}

SEC("struct_ops/punctual_enqueue")
void BPF_PROG(punctual_enqueue, struct task_struct *p, __u64 enq_flags) __rq_locked
{
	struct member *m = member_of(p);

	if (m) {
		bool put_back = m->put_back;

		m->put_back = 0;
		m->place = member_place(p, m);
		if (m->place == WITH_TASK) {
			member_enqueue(p, m, put_back, enq_flags);
			return;
		}
		if (m->place == WITH_ALLOCATORS && domain_allocates(m->domain)) {
			allocator_enqueue(p, m, put_back, enq_flags);
			return;
		}
		m->place = BEST_EFFORT;
		member_uncount(m);
	}
	if (!(p->flags & PF_KTHREAD) || !softirqs_enqueue(p, enq_flags))
		fair_enqueue(p, enq_flags);
}

/*
 * With core scheduling (prctl PR_SCHED_CORE) the kernel calls ops.dispatch for all hardware
 * threads of a core on the one that enters schedule(), and it leaves a CPU idle whose tasks do
 * not match the sibling's. The dispatcher is not locked against other CPUs, and no budget can be
 * guaranteed: the scheduler ends.
 */
PD_INLINE bool core_scheduling(__u32 domain) __rq_locked
{
	bool remote = on_remote_cpu(domain);

	if (timer_config.remote_every &&
	    ++DOMAIN(domain)->dispatches % timer_config.remote_every == 0)
		remote = true;
	if (remote)
		end_scheduler(PUNCTUAL_EXIT_CORE_SCHEDULING, domain_cpu(domain),
			      "core scheduling is enabled on CPU %llu");
	return remote;
}

SEC("struct_ops/punctual_dispatch")
void BPF_PROG(punctual_dispatch, __s32 cpu, struct task_struct *prev) __rq_locked
{
	__u32 domain = domain_on(cpu);

	/* The kernel passes a thread that has just blocked, too. */
	if (prev && !(prev->scx.flags & SCX_TASK_QUEUED))
		prev = 0;
	if (domain == PD_NONE)
		fair_dispatch(cpu, prev && !member_misplaced(prev, member_of(prev)) ? prev : 0);
	else if (!core_scheduling(domain))
		run_dispatch(domain, cpu, prev);
}

SEC("struct_ops/punctual_running")
void BPF_PROG(punctual_running, struct task_struct *p) __rq_locked
{
	__u32 domain = domain_on(scx_bpf_task_cpu(p));

	if (domain == PD_NONE)
		fair_running(p, scx_bpf_now());
	else
		run_begins(domain, p);
}

SEC("struct_ops/punctual_stopping")
void BPF_PROG(punctual_stopping, struct task_struct *p, bool runnable) __rq_locked
{
	__u32 domain = domain_on(scx_bpf_task_cpu(p));

	if (domain == PD_NONE)
		fair_stopping(p, runnable);
	else
		run_ends(domain, p, runnable);
}

SEC("struct_ops/punctual_quiescent")
void BPF_PROG(punctual_quiescent, struct task_struct *p, __u64 deq_flags) __rq_locked
{
	struct member *m = member_of(p);

	if (!m)
		return;
	m->put_back = 0;
	if (p->flags & PF_EXITING) {
		member_leave(m);
	} else if (deq_flags & SCX_DEQ_SLEEP) {
		lock_note_waiter(p, m);
		member_uncount(m);
	}
}

/* It leaves the class, for a real-time one; or the scheduler ends. */
SEC("struct_ops/punctual_disable")
void BPF_PROG(punctual_disable, struct task_struct *p) __rq_locked
{
	struct member *m = member_of(p);

	if (m)
		member_uncount(m);
}

/* A cooperating thread waits for its next release; another one's turn ends. */
SEC("struct_ops/punctual_yield")
bool BPF_PROG(punctual_yield, struct task_struct *from, struct task_struct *to) __rq_locked
{
	struct member *m = member_of(from);

	if (!m || m->place != WITH_TASK) {
		fair_yield();
	} else if (!(m->flags & PUNCTUAL_COOPERATES)) {
		DOMAIN(m->domain)->turn_end = 0;
	} else if (!wait_is_late(m->domain, m->task)) {
		__sync_fetch_and_add(&TASK_OF(m->domain, m->task)->done, 1);
		note(m->domain, m->task);
	}
	set_slice(from, 0);
	return false;
}

/* May sleep, so that the allocation of a new thread's storage can wait for memory; else the fork
 * would fail. */
SEC("struct_ops.s/punctual_init_task")
__s32 BPF_PROG(punctual_init_task, struct task_struct *p,
	       struct scx_init_task_args *args) __may_sleep
{
	return args->fork ? member_fork(p) : 0;
}

SEC("struct_ops/punctual_exit_task")
void BPF_PROG(punctual_exit_task, struct task_struct *p,
	      struct scx_exit_task_args *args) __rq_locked
{
	struct member *m = member_of(p);

	timer_process_exited(p);
	/* Or a fork that failed. */
	if (m && (args->cancelled || p->flags & PF_EXITING))
		member_leave(m);
}

/* With these two callbacks the kernel does not end the scheduler when a CPU goes online or
 * offline. */
SEC("struct_ops/punctual_cpu_online")
void BPF_PROG(punctual_cpu_online, __s32 cpu) __any_state
{
}

SEC("struct_ops/punctual_cpu_offline")
void BPF_PROG(punctual_cpu_offline, __s32 cpu) __any_state
{
	if (domain_on(cpu) != PD_NONE)
		end_scheduler(PUNCTUAL_EXIT_CPU_GONE, cpu, "CPU %llu went offline");
}

SEC("struct_ops.s/punctual_init")
__s32 BPF_PROG(punctual_init) __may_sleep
{
	__u32 domain = 0;
	__s32 failed;

	if (OPS_FLAG_DIFFERS(SCX_OPS_ENQ_LAST) || OPS_FLAG_DIFFERS(SCX_OPS_ENQ_EXITING) ||
	    OPS_FLAG_DIFFERS(SCX_OPS_ENQ_MIGRATION_DISABLED)) {
		scheduler_error("this kernel's scx_ops_flags differ, of %llu flags", 3);
		return -EOPNOTSUPP;
	}
	failed = fair_init();
	pd_while (domain < PD_DOMAINS && !failed) {
		failed = scx_bpf_create_dsq(ALLOCATOR_QUEUE(domain), -1);
		domain++;
	}
	return failed;
}

SEC("struct_ops/punctual_dump")
void BPF_PROG(punctual_dump, struct scx_dump_ctx *dump) __any_state
{
	dump_domains();
}

SEC("struct_ops/punctual_dump_task")
void BPF_PROG(punctual_dump_task, struct scx_dump_ctx *dump, struct task_struct *p) __any_state
{
	struct member *m = member_of(p);

	if (m)
		dump_member(m);
}

SEC("struct_ops/punctual_exit")
void BPF_PROG(punctual_exit, struct scx_exit_info *info) __any_state
{
	ended(info);
}

SEC(".struct_ops.link")
struct sched_ext_ops punctual = {
	.select_cpu = (void *)punctual_select_cpu,
	.enqueue = (void *)punctual_enqueue,
	.dispatch = (void *)punctual_dispatch,
	.running = (void *)punctual_running,
	.stopping = (void *)punctual_stopping,
	.quiescent = (void *)punctual_quiescent,
	.yield = (void *)punctual_yield,
	.disable = (void *)punctual_disable,
	.init_task = (void *)punctual_init_task,
	.exit_task = (void *)punctual_exit_task,
	.dump = (void *)punctual_dump,
	.dump_task = (void *)punctual_dump_task,
	.cpu_online = (void *)punctual_cpu_online,
	.cpu_offline = (void *)punctual_cpu_offline,
	.init = (void *)punctual_init,
	.exit = (void *)punctual_exit,
	.flags = SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED,
	.timeout_ms = 30000,
	.name = "punctual",
};

char LICENSE[] SEC("license") = "Dual MIT/GPL";
