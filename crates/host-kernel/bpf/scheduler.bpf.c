// SPDX-License-Identifier: (MIT OR GPL-2.0-only)
/*
 * A sched_ext scheduler around the dispatcher, for one CPU (design, "Host: kernel").
 *
 * A runnable job task waits in a queue of its own, and leaves it only when the dispatcher selects its job; everybody
 * else waits in one fair queue, which is served when no job is selected. One absolute timer is the dispatcher's.
 *
 *             runnable                     selected
 *   asleep ────────────> its own queue ───────────────> running (charged)
 *      ^                       ^    stopping, slice 0       │ │
 *      │                       └────────────────────────────┘ │
 *      └───────────────────────────────────────────────────────┘ quiescent
 *
 * Callbacks run with interrupts off; what does not turns them off itself. On one CPU that is the lock.
 */
#include "kernel.h"
#include "scx.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARENA);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 8192); /* pages */
} arena SEC(".maps");

#include "dispatcher.c"
#include "orders.h"

struct pd_order_call {
	pd_u64 value; /* in: a group, a task, events to pop; out: a refusal or a number */
	pd_u64 order;
	pd_u64 records; /* out, of a look: addresses in the arena's mapping */
	pd_u64 events;
	pd_u64 record_count;
	pd_u64 event_head;
	pd_u64 event_tail;
	pd_u64 event_lost;
	pd_u64 exit_kind; /* 0 while the scheduler lives */
	pd_u64 throttled; /* times that the others' share was taken from jobs */
};

struct pd_reserve_call {
	pd_i64 result;
	struct pd_reservation_attr attr;
};


#define MOST_TASKS 256U
/* Queues: the fair one, then one per job task. */
#define FAIR 1ULL
#define QUEUE_OF(task) (2ULL + (task))
#define FOREVER (~0ULL)
#define FAIR_SLICE 3000000ULL
/* Jobs leave everybody else a twentieth of the CPU, window by window. */
#define WINDOW 100000000ULL
#define JOBS_SHARE (WINDOW / 20 * 19)
#define CLOCK_MONOTONIC 1

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MOST_TASKS);
	__type(key, __u32);   /* thread id */
	__type(value, __u32); /* task */
} tasks SEC(".maps");

struct alarm {
	struct bpf_timer timer;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct alarm);
} alarms SEC(".maps");

/* The CPU's. Not static: the compiler would take it apart, and its type information with it. */
struct punctual_cpu {
	__u64 since;	  /* up to here `current` was charged */
	__u64 armed;	  /* what the timer is set to */
	__u64 window;	  /* the window's beginning */
	__u64 of_jobs;	  /* what jobs had of it */
	__u64 throttled;
	__u64 exit_kind;
	__u32 current;	  /* the job task that runs, PD_NONE for anybody else */
	__u32 put_back;	  /* the enqueue that follows is no wake-up */
	__u64 left_slice; /* of the fair task that is put back */
} cpu0 = { .current = PD_NONE };

static inline __u32 task_of(struct task_struct *p)
{
	__u32 pid = p->pid;
	__u32 *task = bpf_map_lookup_elem(&tasks, &pid);

	return task && *task < MOST_TASKS ? *task : PD_NONE;
}

/* Charges what the running job executed since it was last charged. */
PD_INLINE int punctual_charge(pd_u64 now)
{
	__u64 ran = now - cpu0.since;

	if (now - cpu0.window >= WINDOW) {
		cpu0.window = now;
		cpu0.of_jobs = 0;
	}
	if (cpu0.current == PD_NONE || now <= cpu0.since)
		return 0;
	cpu0.since = now;
	cpu0.of_jobs += ran;
	return pd_charge_task(PD_AT(0), cpu0.current, ran, now);
}

/* Jobs had their share of this window, and somebody else waits. */
static inline bool throttled(void)
{
	return cpu0.of_jobs >= JOBS_SHARE && scx_bpf_dsq_nr_queued(FAIR) > 0;
}

/* The task to run now, PD_NONE for the others. Whoever tells the dispatcher something asks it at the same time: one
 * instant, one decision, which is what a replay makes of it. */
PD_INLINE pd_u32 punctual_choose(pd_u64 now)
{
	pd_u64 job;

	pd_advance(PD_AT(0), now);
	job = pd_select(PD_AT(0), 0, now);
	return job ? pd_job_task(PD_AT(0), job) : PD_NONE;
}

/* Sets the timer to the next thing that happens by itself. */
PD_INLINE int punctual_arm(pd_u64 now)
{
	__u32 zero = 0;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &zero);
	pd_u64 next = pd_timer(PD_AT(0), 0, 1, now);

	if (!alarm)
		return 0;
	if (cpu0.of_jobs >= JOBS_SHARE)
		next = pd_min(next, cpu0.window + WINDOW);
	else if (cpu0.current != PD_NONE)
		next = pd_min(next, now + (JOBS_SHARE - cpu0.of_jobs));
	if (next == PD_INFINITE || next == cpu0.armed)
		return 0;
	cpu0.armed = next;
	return (int)bpf_timer_start(&alarm->timer, next, BPF_F_TIMER_ABS | BPF_F_TIMER_CPU_PIN);
}

/* At a time at which somebody else decides what follows from it. */
PD_FN int punctual_note(pd_u64 now)
{
	pd_advance(PD_AT(0), now);
	pd_select(PD_AT(0), 0, now);
	return 0;
}

/* Something happened outside a dispatch: has the CPU decide again if another one is to run. */
PD_FN int punctual_reconsider(pd_u64 now)
{
	__u32 task;

	punctual_charge(now);
	task = punctual_choose(now);
	if (task != PD_NONE && throttled())
		task = PD_NONE;
	if (task != cpu0.current)
		scx_bpf_kick_cpu(0, SCX_ENUM(scx_kick_flags, SCX_KICK_PREEMPT));
	return punctual_arm(now);
}

static int on_timer(void *map, int *key, struct alarm *alarm)
{
	unsigned long irq;

	bpf_local_irq_save(&irq);
	cpu0.armed = 0;
	punctual_reconsider(bpf_ktime_get_ns());
	bpf_local_irq_restore(&irq);
	return 0;
}

SEC("struct_ops/punctual_select_cpu")
__s32 BPF_PROG(punctual_select_cpu, struct task_struct *p, __s32 prev_cpu, __u64 wake_flags)
{
	/* Never past the queues: an idle CPU would take a parked job task at once. */
	return prev_cpu;
}

SEC("struct_ops/punctual_runnable")
void BPF_PROG(punctual_runnable, struct task_struct *p, __u64 enq_flags)
{
	__u32 task = task_of(p);

	__u64 now = bpf_ktime_get_ns();

	if (task == PD_NONE)
		return;
	pd_task_ready(PD_AT(0), task, now);
	punctual_note(now);
}

SEC("struct_ops/punctual_quiescent")
void BPF_PROG(punctual_quiescent, struct task_struct *p, __u64 deq_flags)
{
	__u32 task = task_of(p);

	__u64 now = bpf_ktime_get_ns();

	if (task == PD_NONE)
		return;
	pd_task_blocked(PD_AT(0), task, now);
	punctual_note(now);
}

SEC("struct_ops/punctual_enqueue")
void BPF_PROG(punctual_enqueue, struct task_struct *p, __u64 enq_flags)
{
	__u32 task = task_of(p);
	__u32 put_back = cpu0.put_back;

	cpu0.put_back = 0;
	if (task == PD_NONE) {
		/* A fair task that a job interrupted keeps its turn and what was left of it. */
		if (put_back && cpu0.left_slice)
			insert(p, FAIR, cpu0.left_slice, enq_flags | SCX_ENUM(scx_enq_flags, SCX_ENQ_HEAD));
		else
			insert(p, FAIR, FAIR_SLICE, enq_flags);
		return;
	}
	insert(p, QUEUE_OF(task), FOREVER, enq_flags);
	if (!put_back)
		punctual_reconsider(bpf_ktime_get_ns());
}

SEC("struct_ops/punctual_dispatch")
void BPF_PROG(punctual_dispatch, __s32 cpu, struct task_struct *prev)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 task;

	punctual_charge(now);
	task = punctual_choose(now);
	if (task != PD_NONE && throttled()) {
		cpu0.throttled++;
		task = PD_NONE;
	}
	if (task != PD_NONE) {
		/* From its queue; if it is not there it is running already. */
		if (move_to_local(QUEUE_OF(task)))
			return;
		if (prev && task_of(prev) == task)
			set_slice(prev, FOREVER);
	} else if (!move_to_local(FAIR) && prev && task_of(prev) == PD_NONE) {
		set_slice(prev, FAIR_SLICE);
	}
	punctual_arm(now);
}

SEC("struct_ops/punctual_running")
void BPF_PROG(punctual_running, struct task_struct *p)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 task = task_of(p);

	cpu0.current = task;
	cpu0.since = now;
	if (task != PD_NONE)
		punctual_reconsider(now);
}

SEC("struct_ops/punctual_stopping")
void BPF_PROG(punctual_stopping, struct task_struct *p, bool runnable)
{
	__u64 now = bpf_ktime_get_ns();

	if (cpu0.current != PD_NONE) {
		punctual_charge(now);
		punctual_note(now);
	}
	cpu0.current = PD_NONE;
	if (!runnable)
		return;
	/* Who is put back with a slice left would stand at the head of the CPU's own queue, past the dispatcher. */
	cpu0.put_back = 1;
	cpu0.left_slice = task_of(p) == PD_NONE ? p->scx.slice : 0;
	set_slice(p, 0);
}

/* A job task's wait for its next release. */
SEC("struct_ops/punctual_yield")
bool BPF_PROG(punctual_yield, struct task_struct *from, struct task_struct *to)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 task = task_of(from);

	if (task == PD_NONE) {
		set_slice(from, 0);
		return false;
	}
	punctual_charge(now);
	/* Before its reservation is there it has nothing to be done with. */
	if (PD_TASK(PD_AT(0), task)->reservation == PD_NONE || pd_task_done(PD_AT(0), task, now) != PD_WAIT_IGNORED)
		set_slice(from, 0);
	punctual_note(now);
	return true;
}

SEC("struct_ops/punctual_exit_task")
void BPF_PROG(punctual_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	__u32 pid = p->pid;
	__u32 task = task_of(p);
	unsigned long irq;
	__u64 now;

	if (task == PD_NONE)
		return;
	bpf_map_delete_elem(&tasks, &pid);
	bpf_local_irq_save(&irq);
	now = bpf_ktime_get_ns();
	pd_task_gone(PD_AT(0), task, now);
	punctual_note(now);
	bpf_local_irq_restore(&irq);
}

SEC("struct_ops.s/punctual_init")
__s32 BPF_PROG(punctual_init)
{
	__u32 zero = 0;
	struct alarm *alarm = bpf_map_lookup_elem(&alarms, &zero);
	__u32 task = 0;
	__s32 failed = scx_bpf_create_dsq(FAIR, -1);

	if (!alarm || failed)
		return failed ? failed : -2;
	pd_while (task < MOST_TASKS && !failed) {
		failed = scx_bpf_create_dsq(QUEUE_OF(task), -1);
		task++;
	}
	if (failed)
		return failed;
	failed = (__s32)bpf_timer_init(&alarm->timer, &alarms, CLOCK_MONOTONIC);
	return failed ? failed : (__s32)bpf_timer_set_callback(&alarm->timer, on_timer);
}

SEC("struct_ops/punctual_exit")
void BPF_PROG(punctual_exit, struct scx_exit_info *info)
{
	cpu0.exit_kind = info->kind;
}

SEC(".struct_ops.link")
struct sched_ext_ops punctual = {
	.select_cpu = (void *)punctual_select_cpu,
	.enqueue = (void *)punctual_enqueue,
	.dispatch = (void *)punctual_dispatch,
	.runnable = (void *)punctual_runnable,
	.running = (void *)punctual_running,
	.stopping = (void *)punctual_stopping,
	.quiescent = (void *)punctual_quiescent,
	.yield = (void *)punctual_yield,
	.exit_task = (void *)punctual_exit_task,
	.init = (void *)punctual_init,
	.exit = (void *)punctual_exit,
	.flags = OPS_ENQ_LAST | OPS_ENQ_MIGRATION_DISABLED,
	.timeout_ms = 30000,
	.name = "punctual",
};

SEC("syscall")
int punctual_create(struct pd_limits *given)
{
	return given->tasks > MOST_TASKS ? PD_EFULL : pd_make(0, given);
}

SEC("syscall")
int punctual_order(struct pd_order_call *call)
{
	unsigned long irq;
	int result;

	bpf_local_irq_save(&irq);
	result = pd_group_set_order(PD_AT(0), (pd_u32)call->value, (pd_u32)call->order);
	bpf_local_irq_restore(&irq);
	call->value = (pd_u64)result;
	return 0;
}

/* The calling thread becomes a task. */
SEC("syscall")
int punctual_join(struct pd_order_call *call)
{
	__u32 pid = (__u32)bpf_get_current_pid_tgid();
	unsigned long irq;
	pd_i64 number;
	pd_u64 now;
	__u32 task;

	bpf_local_irq_save(&irq);
	now = bpf_ktime_get_ns();
	number = pd_task_add(PD_AT(0), now);
	punctual_note(now);
	bpf_local_irq_restore(&irq);
	call->value = (pd_u64)number;
	task = (__u32)number;
	if (number >= 0)
		bpf_map_update_elem(&tasks, &pid, &task, 0);
	return 0;
}

SEC("syscall")
int punctual_reserve(struct pd_reserve_call *call)
{
	struct pd_reservation_attr PD_ARENA *a = &PD(PD_AT(0))->reservation_draft;
	unsigned long irq;
	pd_u64 now;

	bpf_local_irq_save(&irq);
	a->start = call->attr.start;
	a->period = call->attr.period;
	a->budget = call->attr.budget;
	a->deadline = call->attr.deadline;
	a->priority = call->attr.priority;
	a->cookie = call->attr.cookie;
	a->task = call->attr.task;
	a->group = call->attr.group;
	a->overrun = call->attr.overrun;
	a->wakeup_rule = call->attr.wakeup_rule;
	a->server = call->attr.server;
	a->budget_group = call->attr.budget_group;
	a->budget_server = call->attr.budget_server;
	a->own_cookie = call->attr.own_cookie;
	now = bpf_ktime_get_ns();
	call->result = pd_reservation_add(PD_AT(0), now);
	/* Nobody may look at the dispatcher again before this release. */
	punctual_reconsider(now);
	bpf_local_irq_restore(&irq);
	return 0;
}

/* Takes so many events away, and says where the rest and the records are. */
SEC("syscall")
int punctual_look(struct pd_order_call *call)
{
	pd_u64 pop = call->value;
	unsigned long irq;

	bpf_local_irq_save(&irq);
	pd_while (pop) {
		pd_event_pop(PD_AT(0));
		pop--;
	}
	call->record_count = PD(PD_AT(0))->record_count;
	call->event_head = PD(PD_AT(0))->event_head;
	call->event_tail = PD(PD_AT(0))->event_tail;
	call->event_lost = PD(PD_AT(0))->event_lost;
	bpf_local_irq_restore(&irq);
	call->records = (pd_u64)PD_RECORD(PD_AT(0), 0);
	call->events = (pd_u64)PD_EVENT(PD_AT(0), 0);
	call->exit_kind = cpu0.exit_kind;
	call->throttled = cpu0.throttled;
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
