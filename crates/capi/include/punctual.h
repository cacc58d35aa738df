/* SPDX-License-Identifier: MIT */
/*
 * punctual.h - guaranteed CPU time for programs in C: libpunctual.
 *
 * A task has a period and a budget: in every period it may, and can, execute for its budget,
 * whatever else runs. Threads of the program are tasks, and so are commands and running processes.
 *
 *     #include <punctual.h>
 *
 *     struct punctual *set;
 *     struct punctual_period period;
 *     struct punctual_task_attr attr = PUNCTUAL_TASK_ATTR_INIT;
 *
 *     attr.name = "servo";
 *     attr.period = 1000000;
 *     attr.budget = 250000;
 *     if (punctual_open(NULL, &set) || punctual_attach(set, &attr, NULL))
 *             errx(1, "%s", punctual_last_error());
 *     while (punctual_wait_period(&period) == 0)
 *             control();
 *     punctual_detach();
 *     punctual_close(set);
 *
 *     cc servo.c $(pkg-config --cflags --libs punctual)
 *
 * All times are ns of CLOCK_MONOTONIC, all lengths ns. Calls return 0 or a result, or a negative
 * error number; punctual_last_error() explains it. Structures that begin with their size may grow:
 * begin with the initializer of the structure, or with zeros and the size; 0 in a member is its
 * default. Handles may be used by all threads. docs/libpunctual.md has an overview.
 *
 * The man pages are made of the comments below.
 */
#ifndef PUNCTUAL_H
#define PUNCTUAL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A set of tasks that runs, and a task of it. */
struct punctual;
struct punctual_task;

/* A FIFO, and its ends. */
struct punctual_fifo;
struct punctual_fifo_writer;
struct punctual_fifo_reader;

/* Locks of tasks. */
struct punctual_mutex;
struct punctual_cond;
struct punctual_sem;
struct punctual_barrier;

/* Locks between programs. */
struct punctual_shared_mutex;
struct punctual_shared_cond;
struct punctual_shared_sem;
struct punctual_shared_barrier;

/* Jobs that the program adds to a task, and the ends of all such jobs of a set. */
struct punctual_jobs;
struct punctual_job_events;

/* Which of the ready tasks of a CPU runs. */
enum {
	PUNCTUAL_EDF, /* earliest deadline first */
	PUNCTUAL_RM,  /* the shorter the period, the more important */
	PUNCTUAL_DM,  /* the shorter the relative deadline, the more important */
	PUNCTUAL_FP,  /* the larger the priority, the more important */
	PUNCTUAL_JOBS /* the program adds the jobs of each task: punctual_jobs_open(3) */
};

/* What executes a set. */
enum {
	PUNCTUAL_HOST_USER,    /* a dispatcher on each of its CPUs, in this program */
	PUNCTUAL_HOST_AUTO,    /* the service, if one listens and takes the set; else as above */
	PUNCTUAL_HOST_SERVICE  /* the dispatchers of punctuald, which programs of all users share */
};

/* Admit tasks that do not fit, too: deadlines may then be missed, and ordinary programs starve. */
#define PUNCTUAL_OVERLOAD 1u

/* A scheduling group: tasks with a policy and a budget of their own. Others see it as one task. */
struct punctual_group {
	size_t size;              /* of this structure */
	const char *name;         /* 1 to 64 characters */
	const char *parent;       /* the group above, before it in the list; NULL: none */
	const char *budget_group; /* that limits it; NULL: none */
	uint64_t period;          /* between replenishments, at least 100 us */
	uint64_t budget;          /* execution time in each period */
	int64_t priority;         /* where the policy above is PUNCTUAL_FP, larger first */
	uint32_t policy;          /* of its tasks: PUNCTUAL_EDF, ... */
	uint32_t cpu;             /* of the set's; of no importance where the set has one */
};

#define PUNCTUAL_GROUP_INIT \
	{ sizeof(struct punctual_group), NULL, NULL, NULL, 0, 0, 0, PUNCTUAL_EDF, 0 }

/* A budget that several tasks and groups share, whatever schedules them. */
struct punctual_budget_group {
	size_t size;        /* of this structure */
	const char *name;   /* 1 to 64 characters */
	const char *parent; /* the budget group that limits it, before it in the list; NULL: none */
	uint64_t period;    /* between replenishments, at least 100 us */
	uint64_t budget;    /* execution time in each period, of all members together */
	uint32_t cpu;       /* of the set's; of no importance where the set has one */
	uint32_t reserved;
};

#define PUNCTUAL_BUDGET_GROUP_INIT { sizeof(struct punctual_budget_group), NULL, NULL, 0, 0, 0, 0 }

/* Kinds of reports. */
enum {
	PUNCTUAL_REPORT_PERIOD,  /* a release of a task that is over */
	PUNCTUAL_REPORT_DROPPED, /* releases of a task whose reports were dropped */
	PUNCTUAL_REPORT_ENDED,   /* a task has ended, before its set was closed */
	PUNCTUAL_REPORT_WARNING  /* something that the user should know */
};

/* Of a period: it missed its deadline; its budget was used up before the job was done. */
#define PUNCTUAL_PERIOD_MISSED 1u
#define PUNCTUAL_PERIOD_OVERRAN 2u

/* In place of a time: it did not happen. */
#define PUNCTUAL_NEVER UINT64_MAX

/* What an observer is called with; valid until it returns. */
struct punctual_report {
	size_t size;        /* of this structure, as the library has it */
	uint32_t kind;      /* PUNCTUAL_REPORT_PERIOD, ... */
	uint32_t flags;     /* of a period: PUNCTUAL_PERIOD_MISSED, ... */
	const char *task;   /* its name; NULL: none */
	uint64_t number;    /* of the release, from 0; of those that were dropped, how many */
	uint64_t release;   /* when it was due */
	uint64_t deadline;  /* its absolute deadline */
	uint64_t started;   /* when it first executed, or PUNCTUAL_NEVER */
	uint64_t completed; /* when its job was done, or PUNCTUAL_NEVER */
	uint64_t received;  /* execution time */
	uint64_t assigned;  /* budget */
	uint32_t how;       /* of a task that has ended: PUNCTUAL_RETURNED, ... */
	int32_t code;       /* of a command that has ended */
	const char *text;   /* of a warning */
};

/* Attributes of a set. */
struct punctual_attr {
	size_t size;            /* of this structure */
	const uint32_t *cpus;   /* NULL: the last CPU that the program may use */
	size_t cpu_count;       /* length of cpus */
	uint32_t policy;        /* PUNCTUAL_EDF, ... */
	uint32_t flags;         /* PUNCTUAL_OVERLOAD */
	uint32_t task_limit;    /* tasks of a CPU at one time, at most 10,000; 0: 64 */
	uint32_t trace_records; /* that may wait for the trace's file; 0: 65,536 */
	const char *owner;      /* shown to others that want the CPU; NULL: the command line */
	const char *trace;      /* a file for a trace; NULL: none */
	const struct punctual_group *groups;
	size_t group_count;     /* length of groups */
	const struct punctual_budget_group *budget_groups;
	size_t budget_group_count; /* length of budget_groups */
	/*
	 * Called in an ordinary thread with what becomes known, in order, within some 25 ms; NULL:
	 * none. In it, calls with handles of sets and tasks fail (EDEADLK).
	 */
	void (*observer)(const struct punctual_report *report, void *argument);
	void *observer_argument;
	uint32_t host; /* PUNCTUAL_HOST_USER, ... */
	uint32_t reserved;
};

#define PUNCTUAL_ATTR_INIT \
	{ sizeof(struct punctual_attr), NULL, 0, PUNCTUAL_EDF, 0, 0, 0, NULL, NULL, NULL, 0, NULL, 0, \
	  NULL, NULL, PUNCTUAL_HOST_USER, 0 }

/* What happens when the budget is used up, or the deadline comes, before a job is done. */
enum {
	PUNCTUAL_CARRY,      /* suspended until the next release; catches up */
	PUNCTUAL_SKIP,       /* the same, but leaves out the releases that it is late for */
	PUNCTUAL_BACKGROUND, /* continues as an ordinary thread until the next release */
	PUNCTUAL_SIGNAL      /* as carry, and a handler is called; or SIGXCPU, which needs one */
};

/* Attributes of a task. */
struct punctual_task_attr {
	size_t size;       /* of this structure */
	const char *name;  /* 1 to 64 characters; NULL: task- and a number */
	uint64_t period;   /* between releases, at least 100 us; required */
	uint64_t budget;   /* execution time in each period; required */
	uint64_t deadline; /* from each release, at most the period; 0: the period */
	uint64_t offset;   /* from now to the first release */
	int64_t priority;  /* under PUNCTUAL_FP, larger first */
	uint32_t overrun;  /* PUNCTUAL_CARRY, ... */
	uint32_t cpu;      /* of the set's; of no importance where the set has one */
	size_t stack;      /* of a thread that the library makes, bytes; 0: as usual */
	const char *group; /* the scheduling group in which it competes; NULL: none */
	const char *budget_group; /* that limits it; NULL: none */
	/*
	 * With PUNCTUAL_SIGNAL, of a thread: called in it with overrun_argument after each overrun,
	 * on the next budget, by a handler of SIGXCPU; NULL: the program has such a handler itself.
	 */
	void (*overrun_handler)(void *argument);
	void *overrun_argument;
};

#define PUNCTUAL_TASK_ATTR_INIT \
	{ sizeof(struct punctual_task_attr), NULL, 0, 0, 0, 0, 0, PUNCTUAL_CARRY, 0, 0, NULL, NULL, \
	  NULL, NULL }

/* One period of a task, as the task sees it. */
struct punctual_period {
	uint64_t number;   /* of the release, from 0 */
	uint64_t release;  /* when it was due */
	uint64_t deadline; /* its absolute deadline */
	uint32_t lost;     /* releases before it that the task did not see */
	uint32_t reserved;
};

/* How a task has ended. */
enum {
	PUNCTUAL_RETURNED,       /* its thread returned, or was detached */
	PUNCTUAL_NEVER_RELEASED, /* its run ended before its first release */
	PUNCTUAL_STOPPED,        /* its run was ended */
	PUNCTUAL_EXITED,         /* its command exited with the code */
	PUNCTUAL_SIGNALLED,      /* the signal `code` ended its command */
	PUNCTUAL_GONE,           /* its process has ended; only the parent can read how */
	PUNCTUAL_REFUSED         /* the dispatcher refused it */
};

/* The end of a task. */
struct punctual_task_end {
	size_t size;  /* of this structure */
	uint32_t how; /* PUNCTUAL_RETURNED, ... */
	int32_t code; /* of a command */
	void *value;  /* what the function of punctual_task_create returned, or pthread_exit */
};

#define PUNCTUAL_TASK_END_INIT { sizeof(struct punctual_task_end), 0, 0, NULL }

/* Times of many periods; all 0 where there are none. */
struct punctual_spread {
	uint64_t count; /* of the periods */
	uint64_t median;
	uint64_t p99; /* 99th percentile */
	uint64_t worst;
};

/* The figures of a task. Its first period and its current one are not counted. */
struct punctual_task_stats {
	size_t size;         /* of this structure */
	uint64_t period;     /* between releases, when the task was made */
	uint64_t budget;     /* of each period, when the task was made */
	uint64_t deadline;   /* from each release, when the task was made */
	uint64_t periods;    /* that were counted */
	uint64_t misses;     /* of them that missed their deadlines */
	uint64_t overruns;   /* of them whose budget was used up before the job was done */
	uint64_t unreported; /* periods that are in no other figure: reports were dropped */
	uint64_t received;   /* execution time in all of them */
	uint64_t assigned;   /* budget of all of them */
	uint64_t shortfall;  /* execution time that the task lacks; 0: its budget was kept */
	struct punctual_spread latency;  /* from release to execution */
	struct punctual_spread response; /* from release to the end of the job */
};

#define PUNCTUAL_TASK_STATS_INIT \
	{ sizeof(struct punctual_task_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, { 0, 0, 0, 0 }, \
	  { 0, 0, 0, 0 } }

/* Other parameters for a task that runs. */
struct punctual_task_change {
	size_t size;       /* of this structure */
	uint64_t period;   /* between releases, at least 100 us; 0: as it is */
	uint64_t budget;   /* execution time in each period; 0: as it is */
	uint64_t deadline; /* from each release, at most the period; 0: as it is, or the period */
	int64_t priority;  /* under PUNCTUAL_FP; with PUNCTUAL_CHANGE_PRIORITY alone */
	uint32_t flags;    /* PUNCTUAL_CHANGE_PRIORITY */
	uint32_t reserved;
};

#define PUNCTUAL_TASK_CHANGE_INIT { sizeof(struct punctual_task_change), 0, 0, 0, 0, 0, 0 }

/* The priority changes, too. */
#define PUNCTUAL_CHANGE_PRIORITY 1u

/* The figures of a set. */
struct punctual_stats {
	size_t size;                /* of this structure */
	uint64_t duration;          /* since its first release */
	uint64_t tasks;             /* that it ever had */
	uint64_t alive;             /* of them that have not ended */
	uint64_t periods;           /* that were counted, of all tasks */
	uint64_t misses;            /* of them that missed their deadlines */
	uint64_t unreported;        /* periods that are in no other figure: reports were dropped */
	uint64_t short_tasks;       /* tasks whose budgets were not kept */
	uint64_t dispatcher_events; /* that the dispatchers handled */
	uint64_t dispatcher_cpu;    /* CPU time of the dispatchers */
};

#define PUNCTUAL_STATS_INIT { sizeof(struct punctual_stats), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/* What a FIFO has in it, and how long it lives. */
#define PUNCTUAL_FIFO_MESSAGES 1u   /* messages, and not bytes */
#define PUNCTUAL_FIFO_PERSISTENT 2u /* until it is removed, and not as long as it is open */

/* An end that shares its side with others, and is not alone there. */
#define PUNCTUAL_FIFO_SHARED 1u

/* Attributes of a FIFO. */
struct punctual_fifo_attr {
	size_t size;     /* of this structure */
	size_t capacity; /* bytes, at most 1 GiB, rounded up to a power of two; 0: 64 KiB */
	uint32_t flags;  /* PUNCTUAL_FIFO_MESSAGES, PUNCTUAL_FIFO_PERSISTENT */
	uint32_t reserved;
};

#define PUNCTUAL_FIFO_ATTR_INIT { sizeof(struct punctual_fifo_attr), 0, 0, 0 }

/* What is known of a FIFO. */
struct punctual_fifo_info {
	size_t size;       /* of this structure */
	size_t capacity;   /* bytes */
	size_t used;       /* of them; a message takes its length, rounded up to 8, and 8 more */
	uint32_t flags;    /* PUNCTUAL_FIFO_MESSAGES, PUNCTUAL_FIFO_PERSISTENT */
	uint32_t in_use;   /* 1: another process has it open */
	pid_t sole_writer; /* the process that has the writers' side alone, or 0 */
	pid_t sole_reader; /* the same of the readers' side */
};

#define PUNCTUAL_FIFO_INFO_INIT { sizeof(struct punctual_fifo_info), 0, 0, 0, 0, 0, 0 }

/* What the ceiling of a mutex is: the shortest relative deadline of the tasks that lock it (under
 * PUNCTUAL_RM, their shortest period), or their largest priority (under PUNCTUAL_FP). */
#define PUNCTUAL_CEILING_DEADLINE 1u
#define PUNCTUAL_CEILING_PRIORITY 2u

/* Attributes of a mutex. */
struct punctual_mutex_attr {
	size_t size;    /* of this structure */
	uint32_t flags; /* PUNCTUAL_CEILING_DEADLINE or PUNCTUAL_CEILING_PRIORITY; 0: no ceiling */
	uint32_t reserved;
	uint64_t ceiling_deadline; /* ns */
	int64_t ceiling_priority;
};

#define PUNCTUAL_MUTEX_ATTR_INIT { sizeof(struct punctual_mutex_attr), 0, 0, 0, 0 }

/* Attributes of a semaphore. */
struct punctual_sem_attr {
	size_t size;      /* of this structure */
	uint32_t units;   /* that it has at first */
	uint32_t maximum; /* of units, 1 for a binary semaphore; 0: UINT32_MAX */
};

#define PUNCTUAL_SEM_ATTR_INIT { sizeof(struct punctual_sem_attr), 0, 0 }

/* A lock between programs lives until it is removed, and not as long as it is open. */
#define PUNCTUAL_LOCK_PERSISTENT 1u

/* A job that the program adds to a task. */
struct punctual_job_attr {
	size_t size;      /* of this structure */
	uint64_t start;   /* not before, by punctual_clock(3) */
	uint64_t finish;  /* not at or after; at most the task's period after the start */
	uint64_t budget;  /* execution time, at most the task's, see punctual_jobs_open(3) */
	int64_t priority; /* larger first */
	uint64_t cookie;  /* comes back with its end */
};

#define PUNCTUAL_JOB_ATTR_INIT { sizeof(struct punctual_job_attr), 0, 0, 0, 0, 0 }

/* How a job that the program added ended. */
enum {
	PUNCTUAL_JOB_COMPLETED, /* its task called punctual_wait_period(3) */
	PUNCTUAL_JOB_EXHAUSTED, /* its budget was used up */
	PUNCTUAL_JOB_EXPIRED,   /* its finish came */
	PUNCTUAL_JOB_CANCELLED, /* punctual_job_cancel(3) */
	PUNCTUAL_JOB_TASK_GONE, /* its task ended */
	PUNCTUAL_JOB_REFUSED    /* the dispatcher did not take it, for the reason in error */
};

/* The end of a job that the program added. */
struct punctual_job_event {
	size_t size;        /* of this structure */
	uint64_t at;        /* when, by punctual_clock(3) */
	uint64_t job;       /* its number */
	uint64_t cookie;    /* as the program gave it */
	uint64_t used;      /* its execution time */
	uint64_t remaining; /* what is left of its budget for other jobs of the task */
	uint64_t dropped;   /* events that are missing since the last one: its reader was late */
	uint32_t end;       /* PUNCTUAL_JOB_COMPLETED, ... */
	/*
	 * Of a job that was refused: -EBUSY its task has a job; -EDQUOT more than what is left of
	 * the task's budget in this period; -EINVAL its finish is after that period; -ESRCH its
	 * task has ended; -EIO another reason. Else 0.
	 */
	int32_t error;
};

#define PUNCTUAL_JOB_EVENT_INIT { sizeof(struct punctual_job_event), 0, 0, 0, 0, 0, 0, 0, 0 }

/* What orders the jobs of a group under PUNCTUAL_JOBS. */
enum {
	PUNCTUAL_ORDER_START,   /* the earlier start first */
	PUNCTUAL_ORDER_FINISH,  /* the earlier finish first */
	PUNCTUAL_ORDER_BUDGET,  /* the smaller remaining budget first */
	PUNCTUAL_ORDER_PRIORITY /* the larger priority first */
};

/*
 * punctual_version - the version of the library
 *
 * The version of libpunctual that the program runs with, as "0.1.0".
 *
 * Returns a text that stays valid. Real-time safe.
 */
const char *punctual_version(void);

/*
 * punctual_last_error - why a call of this thread failed
 *
 * The cause of the calling thread's last failed call, and what helps, as one line.
 *
 * Returns a text that is valid until the next call of this thread fails; an empty one if none has
 * failed. Real-time safe.
 */
const char *punctual_last_error(void);

/*
 * punctual_clock - the time by the clock of releases and deadlines
 *
 * Returns ns of CLOCK_MONOTONIC. Real-time safe.
 */
uint64_t punctual_clock(void);

/*
 * punctual_open - start a set of tasks
 *
 * Takes the CPUs of the set and starts a dispatcher on each, which gives tasks their budgets. Tasks
 * are then added by punctual_attach(3), punctual_task_create(3), punctual_task_command(3) and
 * punctual_task_pid(3). attr may be NULL for defaults. It names the scheduling groups and budget
 * groups, which are there from here to the end; tasks are put into them by their own attributes.
 *
 * The program needs root, or CAP_SYS_NICE and CAP_IPC_LOCK, or the limits rtprio 99 and memlock
 * unlimited. Its memory is locked while it has a set. The signal SIGRTMAX - 1 parks the threads of
 * tasks. A CPU has one dispatcher at one time, whatever programs there are. After fork, the child
 * has neither sets nor tasks, and cannot open a set before it calls exec.
 *
 * With PUNCTUAL_HOST_SERVICE the dispatchers are those of punctuald: the program needs no
 * privileges, and shares the CPUs with programs of other users. Each task is admitted by the
 * service. It schedules by PUNCTUAL_EDF; it has no groups, traces, overload and overrun handlers,
 * changes no priorities, and its tasks cannot use the locks of this library (ENOTSUP). When the
 * service ends, tasks continue as ordinary threads, where punctual_wait_period(3) returns
 * -ECANCELED. With PUNCTUAL_HOST_AUTO, a report of the kind PUNCTUAL_REPORT_WARNING has which host
 * it is, and why.
 *
 * Errors:
 * EINVAL a value is out of its range; there is no such CPU; the service does not do this
 * ECONNREFUSED no service listens
 * EEXIST two groups have the same name
 * ENOENT a group names one that is not before it in the list
 * EBUSY another dispatcher has a CPU, or has just ended there
 * EPERM privileges are missing; this process is the child of one that used the library
 * E2BIG attr has values that this version does not know
 * EFAULT set is NULL
 */
int punctual_open(const struct punctual_attr *attr, struct punctual **set);

/*
 * punctual_close - end a set of tasks
 *
 * Commands are killed, running processes regain their scheduling attributes, and threads continue
 * in the ordinary class, where punctual_wait_period(3) returns -ECANCELED. Calls of other threads
 * that wait return. Handles of tasks stay good.
 *
 * Errors:
 * EBADF set is no open set
 * ECANCELED the run has ended by a defect of Punctual
 * EIO the set is closed, but not all could be restored
 */
int punctual_close(struct punctual *set);

/*
 * punctual_wait - wait until all tasks of a set have ended
 *
 * Waits until the time until at most; UINT64_MAX: for ever. Tasks may be added meanwhile.
 *
 * Errors:
 * EBADF set is no open set
 * ETIMEDOUT tasks are left
 */
int punctual_wait(struct punctual *set, uint64_t until);

/*
 * punctual_stats - the figures of a set so far
 *
 * stats has its size; the rest is filled.
 *
 * Errors:
 * EBADF set is no open set
 * EINVAL stats has no size
 * EFAULT stats is NULL
 */
int punctual_stats(struct punctual *set, struct punctual_stats *stats);

/*
 * punctual_attach - make the calling thread a task
 *
 * Waits for the first release of the task. From then on the thread executes on a CPU of the set, at
 * a real-time priority; a job is what it executes until it calls punctual_wait_period(3). Where
 * task is not NULL, it gets a handle of the task, for punctual_task_close(3) at the end.
 *
 * The thread is a task until it calls punctual_detach(3), or ends. Threads and processes that it
 * creates are ordinary ones.
 *
 * Errors:
 * EBUSY the budget does not fit; punctual_last_error(3) has the least change that would make it fit
 * EINVAL a value is out of its range, or SIGXCPU has no handler
 * EEXIST a task of the set has this name
 * ENOENT the set has no such group
 * ENOSPC the CPU has as many tasks as task_limit of punctual_open(3)
 * EALREADY the thread is a task already
 * EPERM the kernel refuses the thread a real-time priority; the service permits less to this user
 * EBADF set is no open set
 * ECANCELED the set was closed meanwhile
 * E2BIG attr has values that this version does not know
 */
int punctual_attach(struct punctual *set, const struct punctual_task_attr *attr,
		    struct punctual_task **task);

/*
 * punctual_detach - end the task that the calling thread is
 *
 * The thread regains the scheduling attributes and CPUs that it had before punctual_attach(3). A
 * thread of punctual_task_create(3) may call it too, and continue.
 *
 * Errors:
 * EPERM the calling thread is no task
 */
int punctual_detach(void);

/*
 * punctual_wait_period - end a job and wait for the next release
 *
 * Ends the job of the calling thread, gives up what is left of its budget, and returns at the next
 * release; period, where it is not NULL, gets its number, release and deadline. lost is the number
 * of releases since the last call that the task did not see, because it was late (PUNCTUAL_SKIP) or
 * the machine was. Under other overrun policies a task that is late returns at once, and catches
 * up, one call for each release.
 *
 * Real-time safe.
 *
 * Errors:
 * ECANCELED the task is to end: its set was closed, or punctual_task_stop(3) called
 * EPERM the calling thread is no task
 */
int punctual_wait_period(struct punctual_period *period);

/*
 * punctual_current_period - the release on whose budget the calling thread executes
 *
 * After an overrun it is a later one than punctual_wait_period(3) returned; lost has the releases
 * that it has not returned yet.
 *
 * Real-time safe.
 *
 * Errors:
 * EPERM the calling thread is no task
 */
int punctual_current_period(struct punctual_period *period);

/*
 * punctual_remaining_budget - what is left of the budget of this release
 *
 * Execution time, not time by the clock. It lets a task end a computation in time. Near its end it
 * is exact to some 20 us.
 *
 * Returns ns. Real-time safe.
 *
 * Errors:
 * EPERM the calling thread is no task
 */
int64_t punctual_remaining_budget(void);

/*
 * punctual_is_over - whether the calling thread's task is to end
 *
 * For tasks that never call punctual_wait_period(3): they should look now and then, and return.
 *
 * Returns 1 if its set was closed, or punctual_task_stop(3) called; else 0. Real-time safe.
 *
 * Errors:
 * EPERM the calling thread is no task
 */
int punctual_is_over(void);

/*
 * punctual_self - the handle of the calling thread's task
 *
 * Returns the handle that punctual_attach(3) or punctual_task_create(3) gave; NULL if the thread is
 * no task, or none was asked for. Real-time safe.
 */
struct punctual_task *punctual_self(void);

/*
 * punctual_task_create - make a thread that is a task
 *
 * The thread calls function with argument at the first release of the task. The task ends with the
 * thread, which may also call pthread_exit(3). Where task is not NULL, it gets a handle of the
 * task, for punctual_task_join(3) or punctual_task_close(3). Where it is NULL, the thread is
 * detached.
 *
 * Errors:
 * EBUSY the budget does not fit; punctual_last_error(3) has the least change that would make it fit
 * EINVAL a value is out of its range, or SIGXCPU has no handler
 * EEXIST a task of the set has this name
 * ENOENT the set has no such group
 * ENOSPC the CPU has as many tasks as task_limit of punctual_open(3)
 * EAGAIN no thread can be made
 * EPERM the kernel refuses the thread a real-time priority
 * EBADF set is no open set
 * ECANCELED the set was closed meanwhile
 * E2BIG attr has values that this version does not know
 * EFAULT function is NULL
 */
int punctual_task_create(struct punctual *set, const struct punctual_task_attr *attr,
			 void *(*function)(void *), void *argument, struct punctual_task **task);

/*
 * punctual_task_join - wait for the end of a task
 *
 * Waits until the task has ended, and its thread, if punctual_task_create(3) made it. end, where it
 * is not NULL, gets how it ended. The handle is closed then.
 *
 * Errors:
 * EBADF task is no open task, or another thread has joined it
 * EDEADLK the calling thread is this task
 * EINVAL end has no size
 */
int punctual_task_join(struct punctual_task *task, struct punctual_task_end *end);

/*
 * punctual_task_close - give up the handle of a task
 *
 * The task continues. Its thread, if punctual_task_create(3) made it, is detached.
 *
 * Errors:
 * EBADF task is no open task
 */
int punctual_task_close(struct punctual_task *task);

/*
 * punctual_task_command - start a command that is a task
 *
 * Starts argv[0], which is looked up in PATH, with the arguments argv; NULL follows the last one.
 * It executes nothing before its first release. All its processes and threads, later ones too,
 * share the budget. Its standard input is empty, and its output goes to that of the program. It is
 * killed when the set is closed. Where task is not NULL, it gets a handle of the task.
 *
 * Errors:
 * ENOENT there is no such command; the set has no such group
 * EACCES the command cannot be executed
 * EBUSY the budget does not fit; punctual_last_error(3) has the least change that would make it fit
 * EINVAL a value is out of its range; argv is empty
 * EEXIST a task of the set has this name
 * ENOSPC the CPU has as many tasks as task_limit of punctual_open(3)
 * EBADF set is no open set
 * ECANCELED the set was closed meanwhile
 * E2BIG attr has values that this version does not know
 * EFAULT argv is NULL
 */
int punctual_task_command(struct punctual *set, const struct punctual_task_attr *attr,
			  char *const argv[], struct punctual_task **task);

/*
 * punctual_task_pid - make a running process a task
 *
 * The process pid with its children is the task. It executes nothing until its first release. When
 * the set is closed, it regains its scheduling attributes, CPUs and cgroup. Where task is not NULL,
 * it gets a handle of the task.
 *
 * Errors:
 * ESRCH there is no such process
 * EPERM the process belongs to another user
 * EBUSY the budget does not fit; punctual_last_error(3) has the least change that would make it fit
 * EINVAL a value is out of its range; the process cannot be a task
 * EEXIST a task of the set has this name
 * ENOENT the set has no such group
 * ENOSPC the CPU has as many tasks as task_limit of punctual_open(3)
 * EBADF set is no open set
 * ECANCELED the set was closed meanwhile
 * E2BIG attr has values that this version does not know
 */
int punctual_task_pid(struct punctual *set, const struct punctual_task_attr *attr, pid_t pid,
		      struct punctual_task **task);

/*
 * punctual_task_stop - ask a task to end
 *
 * In a thread, punctual_wait_period(3) returns -ECANCELED and punctual_is_over(3) 1, at its next
 * release at the latest; a command is killed; a running process is restored and continues. Does not
 * wait for the end.
 *
 * Errors:
 * EBADF task is no open task
 * ESRCH the task has ended
 * ECANCELED the set is closed
 */
int punctual_task_stop(struct punctual_task *task);

/*
 * punctual_task_set_budget - change the budget of a task
 *
 * The task has the new budget from its next release on.
 *
 * Errors:
 * EBUSY the budget does not fit; nothing was changed
 * EINVAL the budget is 0, or more than the deadline
 * EBADF task is no open task
 * ESRCH the task has ended
 * ECANCELED the set is closed
 */
int punctual_task_set_budget(struct punctual_task *task, uint64_t budget);

/*
 * punctual_task_stats - the figures of a task so far
 *
 * stats has its size; the rest is filled. The figures of a task that has ended stay until its set
 * is closed.
 *
 * Errors:
 * EBADF task is no open task
 * ECANCELED the set is closed
 * EINVAL stats has no size
 * EFAULT stats is NULL
 */
int punctual_task_stats(struct punctual_task *task, struct punctual_task_stats *stats);

/*
 * punctual_task_change - change the period, budget, deadline and priority of a task
 *
 * The task has the new parameters from its next release on, which comes when it was due; the
 * following ones come at the new period from it. A deadline that is the period stays the period
 * unless another one is given. Under PUNCTUAL_RM, PUNCTUAL_DM and PUNCTUAL_FP jobs that are in
 * flight at a change may miss their deadlines. What a task gives up is free from its next release
 * on: until then another task's change that needs it is refused.
 *
 * Errors:
 * EBUSY the set would not fit; nothing was changed
 * EAGAIN 64 changes wait for the dispatcher; nothing was changed
 * EINVAL a value is out of its range, or change has no size
 * EBADF task is no open task
 * ESRCH the task has ended
 * ECANCELED the set is closed
 * E2BIG change has values that this version does not know
 * EFAULT change is NULL
 */
int punctual_task_change(struct punctual_task *task, const struct punctual_task_change *change);

/*
 * punctual_task_suspend - suspend a task
 *
 * Suspends the task until punctual_task_resume(3) was called as often as this. Processes are frozen
 * at once. A thread of this program is suspended where it calls punctual_wait_period(3), because
 * anywhere else it may hold a lock that others need; inside the kernel it has the ordinary class
 * until then. Its releases come meanwhile, and end at once:
 * its budget is not used, no deadline is missed, and the next return from punctual_wait_period(3)
 * reports them as lost. Does not wait until the task stands still.
 *
 * A task that is to suspend itself calls punctual_suspend(3).
 *
 * Errors:
 * EBADF task is no open task
 * ESRCH the task has ended, or was asked to end
 * ECANCELED the set is closed
 * EAGAIN the task is suspended 4,294,967,294 times
 */
int punctual_task_suspend(struct punctual_task *task);

/*
 * punctual_task_resume - resume a task
 *
 * Takes back one punctual_task_suspend(3) or punctual_suspend(3). After the last one the task
 * executes from its next release on.
 *
 * Errors:
 * EBADF task is no open task
 * EALREADY the task is not suspended
 * ESRCH the task has ended, or was asked to end
 * ECANCELED the set is closed
 */
int punctual_task_resume(struct punctual_task *task);

/*
 * punctual_suspend - end a job and suspend the calling thread's task
 *
 * As punctual_wait_period(3), but returns at the first release after another thread has called
 * punctual_task_resume(3), for which the task needs a handle. A call of punctual_task_resume(3)
 * before this one does not count.
 *
 * Real-time safe on the user host. A task of the service waits for an answer of the service.
 *
 * Errors:
 * ECANCELED the task is to end: its set was closed, or punctual_task_stop(3) called
 * EPERM the calling thread is no task
 */
int punctual_suspend(struct punctual_period *period);

/*
 * punctual_fifo_create - make a FIFO in shared memory
 *
 * Other programs of the same user find it by name: 1 to 64 letters, digits, '.', '-' and '_', the
 * first a letter or a digit. Where name is NULL, it is for the threads of this program. attr may be
 * NULL: 64 KiB of bytes. The handle is for opening ends.
 *
 * Errors:
 * EEXIST the name is in use
 * EINVAL the name or a value is out of its range
 * ENOSPC there is no room in shared memory
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * E2BIG attr has values that this version does not know
 * EFAULT fifo is NULL
 */
int punctual_fifo_create(const char *name, const struct punctual_fifo_attr *attr,
			 struct punctual_fifo **fifo);

/*
 * punctual_fifo_open - open a FIFO by its name
 *
 * Errors:
 * ENOENT there is no FIFO of this name
 * EINVAL this is no name
 * EBADMSG the FIFO is damaged, or of another version
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * EFAULT name or fifo is NULL
 */
int punctual_fifo_open(const char *name, struct punctual_fifo **fifo);

/*
 * punctual_fifo_remove - remove the name of a FIFO
 *
 * Programs that have it open keep it.
 *
 * Errors:
 * ENOENT there is no FIFO of this name
 * EINVAL this is no name
 * EFAULT name is NULL
 */
int punctual_fifo_remove(const char *name);

/*
 * punctual_fifo_close - close a FIFO
 *
 * Its ends stay open.
 *
 * Errors:
 * EBADF fifo is no open FIFO
 */
int punctual_fifo_close(struct punctual_fifo *fifo);

/*
 * punctual_fifo_info - what is known of a FIFO
 *
 * info has its size; the rest is filled.
 *
 * Errors:
 * EBADF fifo is no open FIFO
 * EINVAL info has no size
 * EFAULT info is NULL
 */
int punctual_fifo_info(struct punctual_fifo *fifo, struct punctual_fifo_info *info);

/*
 * punctual_fifo_writer_open - open an end that puts
 *
 * The end has the writers' side alone; with PUNCTUAL_FIFO_SHARED in flags it shares the side with
 * others. An end is for one thread at a time; each thread opens its own.
 *
 * Errors:
 * EBUSY other ends exclude it
 * EBADF fifo is no open FIFO
 * EINVAL unknown flags
 * EMFILE the program has 1,024 writers, or too many open files
 * EFAULT writer is NULL
 */
int punctual_fifo_writer_open(struct punctual_fifo *fifo, uint32_t flags,
			      struct punctual_fifo_writer **writer);

/*
 * punctual_fifo_reader_open - open an end that gets
 *
 * The end has the readers' side alone; with PUNCTUAL_FIFO_SHARED in flags it shares the side with
 * others. An end is for one thread at a time; each thread opens its own.
 *
 * Errors:
 * EBUSY other ends exclude it
 * EBADF fifo is no open FIFO
 * EINVAL unknown flags
 * EMFILE the program has 1,024 readers, or too many open files
 * EFAULT reader is NULL
 */
int punctual_fifo_reader_open(struct punctual_fifo *fifo, uint32_t flags,
			      struct punctual_fifo_reader **reader);

/*
 * punctual_fifo_writer_close - close an end that puts
 *
 * Errors:
 * EBADF writer is no open writer
 * EBUSY another thread uses it at this moment
 */
int punctual_fifo_writer_close(struct punctual_fifo_writer *writer);

/*
 * punctual_fifo_reader_close - close an end that gets
 *
 * Errors:
 * EBADF reader is no open reader
 * EBUSY another thread uses it at this moment
 */
int punctual_fifo_reader_close(struct punctual_fifo_reader *reader);

/*
 * punctual_fifo_put - put bytes or a message
 *
 * Puts all length bytes, as one message in a FIFO of messages, or nothing. Does not wait. Wait-free
 * for the only writer.
 *
 * Real-time safe.
 *
 * Errors:
 * EAGAIN there is no room
 * EMSGSIZE more than the FIFO can hold
 * EBADF writer is no open writer
 * EBUSY another thread uses it at this moment
 * EBADMSG the memory of the FIFO is damaged
 * EFAULT from is NULL
 */
int punctual_fifo_put(struct punctual_fifo_writer *writer, const void *from, size_t length);

/*
 * punctual_fifo_put_until - put bytes or a message, waiting for room
 *
 * As punctual_fifo_put(3), but waits for room until the time until at most; UINT64_MAX: for ever.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * EMSGSIZE more than the FIFO can hold
 * EBADF writer is no open writer
 * EBUSY another thread uses it at this moment
 * EBADMSG the memory of the FIFO is damaged
 * EFAULT from is NULL
 */
int punctual_fifo_put_until(struct punctual_fifo_writer *writer, const void *from, size_t length,
			    uint64_t until);

/*
 * punctual_fifo_get - get bytes or a message
 *
 * Gets length bytes, or none; of a FIFO of messages, the next one, which is at most length bytes.
 * Does not wait. Wait-free for the only reader.
 *
 * Returns the number of bytes. Real-time safe.
 *
 * Errors:
 * EAGAIN there is no message, or there are not so many bytes
 * EMSGSIZE the next message is longer than the buffer, and stays; more bytes than it ever has
 * EBADF reader is no open reader
 * EBUSY another thread uses it at this moment
 * EBADMSG the memory of the FIFO is damaged
 * EFAULT to is NULL
 */
ssize_t punctual_fifo_get(struct punctual_fifo_reader *reader, void *to, size_t length);

/*
 * punctual_fifo_get_until - get bytes or a message, waiting for it
 *
 * Gets length bytes, or none; of a FIFO of messages, the next one, which is at most length bytes.
 * Waits for it until the time until at most; UINT64_MAX: for ever.
 *
 * Returns the number of bytes.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * EMSGSIZE the next message is longer than the buffer, and stays; more bytes than it ever has
 * EBADF reader is no open reader
 * EBUSY another thread uses it at this moment
 * EBADMSG the memory of the FIFO is damaged
 * EFAULT to is NULL
 */
ssize_t punctual_fifo_get_until(struct punctual_fifo_reader *reader, void *to, size_t length,
				uint64_t until);

/*
 * punctual_fifo_get_some - get what is there
 *
 * Gets as many bytes as there are, at most length; of a FIFO of messages, the next one. Does not
 * wait. Wait-free for the only reader.
 *
 * Returns the number of bytes. Real-time safe.
 *
 * Errors:
 * EAGAIN the FIFO is empty
 * EMSGSIZE the next message is longer than the buffer, and stays; more bytes than it ever has
 * EBADF reader is no open reader
 * EBUSY another thread uses it at this moment
 * EBADMSG the memory of the FIFO is damaged
 * EFAULT to is NULL
 */
ssize_t punctual_fifo_get_some(struct punctual_fifo_reader *reader, void *to, size_t length);

/*
 * punctual_fifo_get_some_until - get what is there, waiting for it
 *
 * Gets as many bytes as there are, at most length; of a FIFO of messages, the next one. Waits for
 * it until the time until at most; UINT64_MAX: for ever.
 *
 * Returns the number of bytes.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * EMSGSIZE the next message is longer than the buffer, and stays; more bytes than it ever has
 * EBADF reader is no open reader
 * EBUSY another thread uses it at this moment
 * EBADMSG the memory of the FIFO is damaged
 * EFAULT to is NULL
 */
ssize_t punctual_fifo_get_some_until(struct punctual_fifo_reader *reader, void *to, size_t length,
				     uint64_t until);

/*
 * punctual_fifo_writer_ready - whether there is room
 *
 * Whether there is room for length bytes, or for a message of that length. If not, the descriptor
 * of punctual_fifo_writer_fd(3) is not readable until a reader makes room.
 *
 * Returns 1 or 0. Real-time safe.
 *
 * Errors:
 * EMSGSIZE more than the FIFO can hold
 * EBADF writer is no open writer
 * EBUSY another thread uses it at this moment
 * EBADMSG the memory of the FIFO is damaged
 */
int punctual_fifo_writer_ready(struct punctual_fifo_writer *writer, size_t length);

/*
 * punctual_fifo_reader_ready - whether there is something to get
 *
 * If not, the descriptor of punctual_fifo_reader_fd(3) is not readable until a writer puts.
 *
 * Returns 1 or 0. Real-time safe.
 *
 * Errors:
 * EBADF reader is no open reader
 * EBUSY another thread uses it at this moment
 * EBADMSG the memory of the FIFO is damaged
 */
int punctual_fifo_reader_ready(struct punctual_fifo_reader *reader);

/*
 * punctual_fifo_writer_fd - a descriptor that is readable when there is room
 *
 * For poll, select and epoll: readable until a put finds no room, and again when a reader has made
 * some. It belongs to the FIFO: do not read, write or close it.
 *
 * Returns a file descriptor, which is valid until writer is closed.
 *
 * Errors:
 * EBADF writer is no open writer
 * EBUSY another thread uses it at this moment
 */
int punctual_fifo_writer_fd(struct punctual_fifo_writer *writer);

/*
 * punctual_fifo_reader_fd - a descriptor that is readable when there is something to get
 *
 * For poll, select and epoll: readable while there is something in the FIFO, and in rare cases once
 * more. It belongs to the FIFO: do not read, write or close it.
 *
 * Returns a file descriptor, which is valid until reader is closed.
 *
 * Errors:
 * EBADF reader is no open reader
 * EBUSY another thread uses it at this moment
 */
int punctual_fifo_reader_fd(struct punctual_fifo_reader *reader);

/*
 * punctual_mutex_create - make a mutex that keeps budgets true
 *
 * While a task waits for the mutex, its jobs execute the task that holds it, at the priority and on
 * the budget of the task that waits, through any number of mutexes. So a task waits for the
 * critical sections of others alone, and for none of their next budgets. It is for the tasks of one
 * CPU, of all sets of the program. A task that ends while it holds the mutex has unlocked it:
 * see punctual_mutex_consistent(3).
 *
 * Errors:
 * ENOSPC there are 1,024 mutexes
 * EPERM this process is the child of one that used the library
 * EFAULT mutex is NULL
 */
int punctual_mutex_create(struct punctual_mutex **mutex);

/*
 * punctual_mutex_create_with - make a mutex with a priority ceiling
 *
 * The same as punctual_mutex_create(3), with attributes. A task that holds a mutex with a ceiling
 * is not preempted by any task at this deadline or priority, or below it: so each job of the tasks
 * that lock such mutexes is delayed by one critical section at most, and mutexes that are nested in
 * opposite orders make no deadlock, as long as no holder suspends itself or uses up its budget. A
 * deadline is for tasks under PUNCTUAL_EDF, PUNCTUAL_DM and PUNCTUAL_RM, a priority for those under
 * PUNCTUAL_FP; other tasks, and those above the ceiling, cannot lock it. A task can hold 16 mutexes
 * with ceilings. attr may be NULL: no ceiling.
 *
 * Errors:
 * EINVAL the flags are unknown, or both are set
 * ENOSPC there are 1,024 mutexes
 * EPERM this process is the child of one that used the library
 * E2BIG attr has values that this version does not know
 * EFAULT mutex is NULL
 */
int punctual_mutex_create_with(const struct punctual_mutex_attr *attr,
			       struct punctual_mutex **mutex);

/*
 * punctual_mutex_destroy - destroy a mutex
 *
 * Errors:
 * EBADF mutex is no mutex, or another thread has destroyed it
 * EBUSY a task holds it, or another thread destroys it at this moment; nothing was changed
 */
int punctual_mutex_destroy(struct punctual_mutex *mutex);

/*
 * punctual_mutex_lock - lock a mutex, and lend to the task that holds it
 *
 * Waits for it, if another task holds it. Of several tasks that wait, the one whose job comes first
 * gets it. Once the set is closed, its tasks lock as ordinary threads do.
 *
 * Real-time safe.
 *
 * Errors:
 * EOWNERDEAD locked, but its holder had ended with it; see punctual_mutex_consistent(3)
 * EDEADLK the task holds it, or its holder waits for a mutex that this task holds
 * EINVAL a task of another CPU holds it, or the task is above its ceiling or under another policy
 * EAGAIN it has a ceiling, and the task holds 16 of these
 * EPERM the calling thread is no task
 * EBADF mutex is no mutex, or another thread has destroyed it
 * EBUSY another thread is about to destroy it
 * ENOTSUP the service schedules the task
 */
int punctual_mutex_lock(struct punctual_mutex *mutex);

/*
 * punctual_mutex_lock_until - lock a mutex, waiting until a time
 *
 * The same as punctual_mutex_lock(3), waiting until the time until at most; UINT64_MAX: for ever.
 * When that time comes, lending ends, and the task continues when it is next selected. A mutex that
 * no task holds is locked whatever the time is.
 *
 * Real-time safe.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * EOWNERDEAD locked, but its holder had ended with it; see punctual_mutex_consistent(3)
 * EDEADLK the task holds it, or its holder waits for a mutex that this task holds
 * EINVAL a task of another CPU holds it, or the task is above its ceiling or under another policy
 * EAGAIN it has a ceiling, and the task holds 16 of these
 * EPERM the calling thread is no task
 * EBADF mutex is no mutex, or another thread has destroyed it
 * EBUSY another thread is about to destroy it
 * ENOTSUP the service schedules the task
 */
int punctual_mutex_lock_until(struct punctual_mutex *mutex, uint64_t until);

/*
 * punctual_mutex_trylock - lock a mutex, if no task holds it
 *
 * Real-time safe.
 *
 * Errors:
 * EBUSY a task holds it, also this one, or another thread is about to destroy it
 * EINVAL the task is above its ceiling, or under another policy
 * EAGAIN it has a ceiling, and the task holds 16 of these
 * EOWNERDEAD locked, but its holder had ended with it; see punctual_mutex_consistent(3)
 * EPERM the calling thread is no task
 * EBADF mutex is no mutex, or another thread has destroyed it
 * ENOTSUP the service schedules the task
 */
int punctual_mutex_trylock(struct punctual_mutex *mutex);

/*
 * punctual_mutex_unlock - unlock a mutex
 *
 * It goes to the task whose job comes first of those that wait, and the others lend to that one.
 *
 * Real-time safe.
 *
 * Errors:
 * EPERM the calling thread is no task, or does not hold the mutex
 * EBADF mutex is no mutex
 * ENOTSUP the service schedules the task
 */
int punctual_mutex_unlock(struct punctual_mutex *mutex);

/*
 * punctual_mutex_consistent - what a mutex protects is consistent again
 *
 * When a task has ended while it held the mutex, each call that locks it returns -EOWNERDEAD, with
 * the mutex locked, until a task that holds it calls this.
 *
 * Real-time safe.
 *
 * Errors:
 * EINVAL no task ended while it held the mutex, or this was called since
 * EPERM the calling thread is no task, or does not hold the mutex
 * EBADF mutex is no mutex
 * ENOTSUP the service schedules the task
 */
int punctual_mutex_consistent(struct punctual_mutex *mutex);

/*
 * punctual_cond_create - make a condition variable
 *
 * Tasks wait for a condition of what a mutex protects. Waiting is a self-suspension: the budget is
 * not spent. The tasks that wait at one time are those of one CPU.
 *
 * Errors:
 * ENOSPC there are 1,024 condition variables
 * EPERM this process is the child of one that used the library
 * EFAULT cond is NULL
 */
int punctual_cond_create(struct punctual_cond **cond);

/*
 * punctual_cond_destroy - destroy a condition variable
 *
 * Errors:
 * EBADF cond is no condition variable
 * EBUSY tasks wait for it, or a thread uses it at this moment; nothing was changed
 */
int punctual_cond_destroy(struct punctual_cond *cond);

/*
 * punctual_cond_wait - unlock a mutex, wait for a condition, and lock the mutex again
 *
 * Unlocking and waiting are one step. The task is woken by punctual_cond_signal(3) and
 * punctual_cond_broadcast(3) alone; another one may nevertheless have made the condition false by
 * then. It holds the mutex when this returns, also with an error, but for ENOLCK, and EBADF of a
 * mutex that was destroyed meanwhile.
 *
 * Real-time safe.
 *
 * Errors:
 * ECANCELED the task is to end: its set was closed, or punctual_task_stop(3) called
 * EOWNERDEAD locked, but its holder had ended with it; see punctual_mutex_consistent(3)
 * ENOLCK the mutex is not locked again: a deadlock, or a task of another CPU holds it
 * EINVAL tasks of another CPU wait
 * EPERM the calling thread is no task, or does not hold the mutex
 * EBADF cond is no condition variable, or mutex no mutex
 * EBUSY another thread is about to destroy the mutex, which is not locked again
 * ENOTSUP the service schedules the task
 */
int punctual_cond_wait(struct punctual_cond *cond, struct punctual_mutex *mutex);

/*
 * punctual_cond_wait_until - wait for a condition until a time
 *
 * The same as punctual_cond_wait(3), waiting until the time until at most; UINT64_MAX: for ever.
 * The task holds the mutex when this returns, also with an error, but for ENOLCK, and EBADF of a
 * mutex that was destroyed meanwhile.
 *
 * Real-time safe.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * ECANCELED the task is to end: its set was closed, or punctual_task_stop(3) called
 * EOWNERDEAD locked, but its holder had ended with it; see punctual_mutex_consistent(3)
 * ENOLCK the mutex is not locked again: a deadlock, or a task of another CPU holds it
 * EINVAL tasks of another CPU wait
 * EPERM the calling thread is no task, or does not hold the mutex
 * EBADF cond is no condition variable, or mutex no mutex
 * EBUSY another thread is about to destroy the mutex, which is not locked again
 * ENOTSUP the service schedules the task
 */
int punctual_cond_wait_until(struct punctual_cond *cond, struct punctual_mutex *mutex,
			     uint64_t until);

/*
 * punctual_cond_signal - wake a task that waits for a condition
 *
 * Wakes the one whose job comes first, if one waits. Any thread may call it.
 *
 * Real-time safe.
 *
 * Errors:
 * EBADF cond is no condition variable
 */
int punctual_cond_signal(struct punctual_cond *cond);

/*
 * punctual_cond_broadcast - wake all tasks that wait for a condition
 *
 * Any thread may call it. Real-time safe.
 *
 * Errors:
 * EBADF cond is no condition variable
 */
int punctual_cond_broadcast(struct punctual_cond *cond);

/*
 * punctual_sem_create - make a semaphore
 *
 * A number of units, for which tasks wait, and which any thread adds. Of several tasks that wait,
 * the one whose job comes first gets the next unit. Waiting is a self-suspension; nothing is lent.
 * Tasks of several CPUs may use it. attr may be NULL: no units, and UINT32_MAX at most.
 *
 * Errors:
 * EINVAL more units than the maximum
 * ENOSPC there are 1,024 semaphores
 * EPERM this process is the child of one that used the library
 * E2BIG attr has values that this version does not know
 * EFAULT sem is NULL
 */
int punctual_sem_create(const struct punctual_sem_attr *attr, struct punctual_sem **sem);

/*
 * punctual_sem_destroy - destroy a semaphore
 *
 * Errors:
 * EBADF sem is no semaphore
 * EBUSY tasks wait for it, or a thread uses it at this moment; nothing was changed
 */
int punctual_sem_destroy(struct punctual_sem *sem);

/*
 * punctual_sem_wait - take a unit of a semaphore, waiting for it
 *
 * Real-time safe.
 *
 * Errors:
 * ECANCELED the task is to end: its set was closed, or punctual_task_stop(3) called
 * EPERM the calling thread is no task
 * EBADF sem is no semaphore
 * ENOTSUP the service schedules the task
 */
int punctual_sem_wait(struct punctual_sem *sem);

/*
 * punctual_sem_wait_until - take a unit of a semaphore, waiting until a time
 *
 * Waits until the time until at most; UINT64_MAX: for ever.
 *
 * Real-time safe.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * ECANCELED the task is to end: its set was closed, or punctual_task_stop(3) called
 * EPERM the calling thread is no task
 * EBADF sem is no semaphore
 * ENOTSUP the service schedules the task
 */
int punctual_sem_wait_until(struct punctual_sem *sem, uint64_t until);

/*
 * punctual_sem_trywait - take a unit of a semaphore, if there is one
 *
 * Any thread may call it. Real-time safe.
 *
 * Errors:
 * EAGAIN there is none, or tasks wait for it
 * EBADF sem is no semaphore
 */
int punctual_sem_trywait(struct punctual_sem *sem);

/*
 * punctual_sem_post - add a unit to a semaphore
 *
 * Any thread may call it, also in a signal handler. Real-time safe.
 *
 * Errors:
 * EOVERFLOW the semaphore has its maximum
 * EBADF sem is no semaphore
 */
int punctual_sem_post(struct punctual_sem *sem);

/*
 * punctual_barrier_create - make a barrier at which tasks meet
 *
 * For so many tasks, which meet there again and again. Waiting is a self-suspension. Tasks of
 * several CPUs may meet.
 *
 * Errors:
 * EINVAL tasks is 0
 * ENOSPC there are 1,024 barriers
 * EPERM this process is the child of one that used the library
 * EFAULT barrier is NULL
 */
int punctual_barrier_create(uint32_t tasks, struct punctual_barrier **barrier);

/*
 * punctual_barrier_destroy - destroy a barrier
 *
 * Errors:
 * EBADF barrier is no barrier
 * EBUSY tasks wait at it; nothing was changed
 */
int punctual_barrier_destroy(struct punctual_barrier *barrier);

/*
 * punctual_barrier_wait - wait until all tasks are at a barrier
 *
 * A task for which this fails has not come: the barrier waits for another one in its place.
 *
 * Returns 1 in the task that came last, and 0 in the others. Real-time safe.
 *
 * Errors:
 * ECANCELED the task is to end: its set was closed, or punctual_task_stop(3) called
 * EPERM the calling thread is no task
 * EBADF barrier is no barrier
 * ENOTSUP the service schedules the task
 */
int punctual_barrier_wait(struct punctual_barrier *barrier);

/*
 * punctual_barrier_wait_until - wait at a barrier until a time
 *
 * The same as punctual_barrier_wait(3), waiting until the time until at most; UINT64_MAX: for ever.
 *
 * Returns 1 in the task that came last, and 0 in the others. Real-time safe.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * ECANCELED the task is to end: its set was closed, or punctual_task_stop(3) called
 * EPERM the calling thread is no task
 * EBADF barrier is no barrier
 * ENOTSUP the service schedules the task
 */
int punctual_barrier_wait_until(struct punctual_barrier *barrier, uint64_t until);

/*
 * punctual_shared_mutex_create - make a mutex between programs
 *
 * Programs of the same user find it by name: 1 to 64 letters, digits, '.', '-' and '_', the first a
 * letter or a digit. Any thread may use it, a task or not. While a thread waits for the mutex, the
 * kernel has the thread that holds it execute at the level of the one that waits, through any
 * number of mutexes; where the service schedules both, the budget of the one that waits pays for
 * that. A thread that ends while it holds the mutex, also by a signal that kills its program, has
 * unlocked it: see punctual_shared_mutex_consistent(3). docs/locks.md has the rules.
 *
 * flags is PUNCTUAL_LOCK_PERSISTENT, or 0: it lives as long as a program has it open.
 *
 * Errors:
 * EEXIST the name is in use, by a lock of any kind
 * EINVAL this is no name, or the flags are unknown
 * ENOTSUP the program is not linked with glibc
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * ENOSPC there is no room in shared memory, or 1,024 of these are open
 * EFAULT name or mutex is NULL
 */
int punctual_shared_mutex_create(const char *name, uint32_t flags,
				 struct punctual_shared_mutex **mutex);

/*
 * punctual_shared_mutex_open - open a mutex between programs
 *
 * By the name of one that a program of the same user has made.
 *
 * Errors:
 * ENOENT there is no lock of this name
 * EINVAL this is no name, or that of a lock of another kind
 * EBADMSG the lock is damaged, or of another version
 * ENOTSUP the program is not linked with glibc
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * ENOSPC there is no room in shared memory, or 1,024 of these are open
 * EFAULT name or mutex is NULL
 */
int punctual_shared_mutex_open(const char *name, struct punctual_shared_mutex **mutex);

/*
 * punctual_shared_mutex_remove - remove the name of a mutex between programs
 *
 * Programs that have it open keep it.
 *
 * Errors:
 * ENOENT there is no lock of this name
 * EINVAL this is no name, or that of a lock of another kind
 * EFAULT name is NULL
 */
int punctual_shared_mutex_remove(const char *name);

/*
 * punctual_shared_mutex_close - close a mutex between programs
 *
 * Errors:
 * EBADF mutex is not open
 * EBUSY a thread of this program holds it; nothing was changed
 */
int punctual_shared_mutex_close(struct punctual_shared_mutex *mutex);

/*
 * punctual_shared_mutex_lock - lock a mutex between programs, waiting for it
 *
 * Real-time safe, but for the first call of a thread, which allocates. Not for signal handlers.
 *
 * Errors:
 * EOWNERDEAD locked, but a thread had ended with it; see punctual_shared_mutex_consistent(3)
 * EDEADLK this thread holds it, or its holder waits for a mutex of this thread
 * EAGAIN the thread holds 256 of these
 * EBADMSG another program wrote into its memory
 * ENOTSUP the thread was not made by glibc
 * EPERM the thread is ending
 * EBADF mutex is not open
 */
int punctual_shared_mutex_lock(struct punctual_shared_mutex *mutex);

/*
 * punctual_shared_mutex_lock_until - lock a mutex between programs, waiting until a time
 *
 * Waits until the time until at most; UINT64_MAX: for ever. One that no thread holds is locked
 * whatever the time is.
 *
 * Real-time safe, but for the first call of a thread, which allocates. Not for signal handlers.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * EOWNERDEAD locked, but a thread had ended with it; see punctual_shared_mutex_consistent(3)
 * EDEADLK this thread holds it, or its holder waits for a mutex of this thread
 * EAGAIN the thread holds 256 of these
 * EBADMSG another program wrote into its memory
 * ENOTSUP the thread was not made by glibc
 * EPERM the thread is ending
 * EBADF mutex is not open
 */
int punctual_shared_mutex_lock_until(struct punctual_shared_mutex *mutex, uint64_t until);

/*
 * punctual_shared_mutex_trylock - lock a mutex between programs, if no thread holds it
 *
 * Real-time safe, but for the first call of a thread, which allocates. Not for signal handlers.
 *
 * Errors:
 * EBUSY a thread holds it
 * EOWNERDEAD locked, but a thread had ended with it; see punctual_shared_mutex_consistent(3)
 * EAGAIN the thread holds 256 of these
 * EBADMSG another program wrote into its memory
 * ENOTSUP the thread was not made by glibc
 * EPERM the thread is ending
 * EBADF mutex is not open
 */
int punctual_shared_mutex_trylock(struct punctual_shared_mutex *mutex);

/*
 * punctual_shared_mutex_unlock - unlock a mutex between programs
 *
 * Real-time safe.
 *
 * Errors:
 * EPERM this thread does not hold it
 * EBADMSG another program wrote into its memory; this thread does not hold it any more
 * EBADF mutex is not open
 */
int punctual_shared_mutex_unlock(struct punctual_shared_mutex *mutex);

/*
 * punctual_shared_mutex_consistent - what a mutex between programs protects is consistent again
 *
 * Once a thread has ended while it held the mutex, each call that locks it returns -EOWNERDEAD,
 * with the mutex locked, until a thread that holds it calls this.
 *
 * Real-time safe.
 *
 * Errors:
 * EINVAL no thread ended while it held the mutex
 * EPERM this thread does not hold it
 * EBADF mutex is not open
 */
int punctual_shared_mutex_consistent(struct punctual_shared_mutex *mutex);

/*
 * punctual_shared_cond_create - make a condition variable between programs
 *
 * For what a mutex between programs protects. Names and flags are as of
 * punctual_shared_mutex_create(3).
 *
 * Errors:
 * EEXIST the name is in use, by a lock of any kind
 * EINVAL this is no name, or the flags are unknown
 * ENOTSUP the program is not linked with glibc
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * ENOSPC there is no room in shared memory, or 1,024 of these are open
 * EFAULT name or cond is NULL
 */
int punctual_shared_cond_create(const char *name, uint32_t flags,
				struct punctual_shared_cond **cond);

/*
 * punctual_shared_cond_open - open a condition variable between programs
 *
 * By the name of one that a program of the same user has made.
 *
 * Errors:
 * ENOENT there is no lock of this name
 * EINVAL this is no name, or that of a lock of another kind
 * EBADMSG the lock is damaged, or of another version
 * ENOTSUP the program is not linked with glibc
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * ENOSPC there is no room in shared memory, or 1,024 of these are open
 * EFAULT name or cond is NULL
 */
int punctual_shared_cond_open(const char *name, struct punctual_shared_cond **cond);

/*
 * punctual_shared_cond_remove - remove the name of a condition variable between programs
 *
 * Programs that have it open keep it.
 *
 * Errors:
 * ENOENT there is no lock of this name
 * EINVAL this is no name, or that of a lock of another kind
 * EFAULT name is NULL
 */
int punctual_shared_cond_remove(const char *name);

/*
 * punctual_shared_cond_close - close a condition variable between programs
 *
 * Errors:
 * EBADF cond is not open
 * EBUSY a thread of this program uses it at this moment; nothing was changed
 */
int punctual_shared_cond_close(struct punctual_shared_cond *cond);

/*
 * punctual_shared_cond_wait - wait for a condition between programs
 *
 * Unlocks the mutex, waits for a notification, and locks the mutex again. It may return without a
 * notification, once a second at least: look at the condition again. The thread holds the mutex
 * when this returns, also with an error, but for EPERM, ENOLCK and EBADF.
 *
 * Real-time safe.
 *
 * Errors:
 * EOWNERDEAD the mutex is locked, but a thread had ended with it
 * ENOLCK the mutex is not locked again: a deadlock, or its memory is damaged
 * EPERM this thread does not hold the mutex
 * EBADF cond or mutex is not open
 */
int punctual_shared_cond_wait(struct punctual_shared_cond *cond,
			      struct punctual_shared_mutex *mutex);

/*
 * punctual_shared_cond_wait_until - wait for a condition between programs until a time
 *
 * The same as punctual_shared_cond_wait(3), waiting until the time until at most; UINT64_MAX: for
 * ever.
 *
 * Real-time safe.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * EOWNERDEAD the mutex is locked, but a thread had ended with it
 * ENOLCK the mutex is not locked again: a deadlock, or its memory is damaged
 * EPERM this thread does not hold the mutex
 * EBADF cond or mutex is not open
 */
int punctual_shared_cond_wait_until(struct punctual_shared_cond *cond,
				    struct punctual_shared_mutex *mutex, uint64_t until);

/*
 * punctual_shared_cond_signal - wake a thread that waits for a condition between programs
 *
 * Real-time safe.
 *
 * Errors:
 * EBADF cond is not open
 */
int punctual_shared_cond_signal(struct punctual_shared_cond *cond);

/*
 * punctual_shared_cond_broadcast - wake all threads that wait for a condition between programs
 *
 * Real-time safe.
 *
 * Errors:
 * EBADF cond is not open
 */
int punctual_shared_cond_broadcast(struct punctual_shared_cond *cond);

/*
 * punctual_shared_sem_create - make a semaphore between programs
 *
 * A number of units, which threads take, and wait for, and add. A program that is killed does not
 * give back what it has taken. attr may be NULL: no units, and INT32_MAX at most, which is also
 * what a maximum of 0 means. Names and flags are as of punctual_shared_mutex_create(3).
 *
 * Errors:
 * EEXIST the name is in use, by a lock of any kind
 * EINVAL this is no name; the flags are unknown; more units than the maximum, or too many
 * E2BIG attr has values that this version does not know
 * ENOTSUP the program is not linked with glibc
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * ENOSPC there is no room in shared memory, or 1,024 of these are open
 * EFAULT name or sem is NULL
 */
int punctual_shared_sem_create(const char *name, const struct punctual_sem_attr *attr,
			       uint32_t flags, struct punctual_shared_sem **sem);

/*
 * punctual_shared_sem_open - open a semaphore between programs
 *
 * By the name of one that a program of the same user has made.
 *
 * Errors:
 * ENOENT there is no lock of this name
 * EINVAL this is no name, or that of a lock of another kind
 * EBADMSG the lock is damaged, or of another version
 * ENOTSUP the program is not linked with glibc
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * ENOSPC there is no room in shared memory, or 1,024 of these are open
 * EFAULT name or sem is NULL
 */
int punctual_shared_sem_open(const char *name, struct punctual_shared_sem **sem);

/*
 * punctual_shared_sem_remove - remove the name of a semaphore between programs
 *
 * Programs that have it open keep it.
 *
 * Errors:
 * ENOENT there is no lock of this name
 * EINVAL this is no name, or that of a lock of another kind
 * EFAULT name is NULL
 */
int punctual_shared_sem_remove(const char *name);

/*
 * punctual_shared_sem_close - close a semaphore between programs
 *
 * Errors:
 * EBADF sem is not open
 * EBUSY a thread of this program uses it at this moment; nothing was changed
 */
int punctual_shared_sem_close(struct punctual_shared_sem *sem);

/*
 * punctual_shared_sem_wait - take a unit of a semaphore between programs, waiting for it
 *
 * Real-time safe.
 *
 * Errors:
 * EBADMSG another program wrote into its memory
 * EBADF sem is not open
 */
int punctual_shared_sem_wait(struct punctual_shared_sem *sem);

/*
 * punctual_shared_sem_wait_until - wait for a unit of a semaphore between programs until a time
 *
 * Waits until the time until at most; UINT64_MAX: for ever.
 *
 * Real-time safe.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * EBADMSG another program wrote into its memory
 * EBADF sem is not open
 */
int punctual_shared_sem_wait_until(struct punctual_shared_sem *sem, uint64_t until);

/*
 * punctual_shared_sem_trywait - take a unit of a semaphore between programs, if there is one
 *
 * Real-time safe.
 *
 * Errors:
 * EAGAIN there is none
 * EBADMSG another program wrote into its memory
 * EBADF sem is not open
 */
int punctual_shared_sem_trywait(struct punctual_shared_sem *sem);

/*
 * punctual_shared_sem_post - add a unit to a semaphore between programs
 *
 * Real-time safe, also in a signal handler.
 *
 * Errors:
 * EOVERFLOW the semaphore has its maximum
 * EBADMSG another program wrote into its memory
 * EBADF sem is not open
 */
int punctual_shared_sem_post(struct punctual_shared_sem *sem);

/*
 * punctual_shared_barrier_create - make a barrier between programs
 *
 * At which so many threads of any programs meet again and again: 1 to 1,048,576. One that is killed
 * while it waits has come; from then on one is missing, and the barrier waits for another in its
 * place. Names and flags are as of punctual_shared_mutex_create(3).
 *
 * Errors:
 * EEXIST the name is in use, by a lock of any kind
 * EINVAL this is no name; the flags are unknown; too few or too many parties
 * ENOTSUP the program is not linked with glibc
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * ENOSPC there is no room in shared memory, or 1,024 of these are open
 * EFAULT name or barrier is NULL
 */
int punctual_shared_barrier_create(const char *name, uint32_t parties, uint32_t flags,
				   struct punctual_shared_barrier **barrier);

/*
 * punctual_shared_barrier_open - open a barrier between programs
 *
 * By the name of one that a program of the same user has made.
 *
 * Errors:
 * ENOENT there is no lock of this name
 * EINVAL this is no name, or that of a lock of another kind
 * EBADMSG the lock is damaged, or of another version
 * ENOTSUP the program is not linked with glibc
 * EACCES the folder of shared objects belongs to another user, or is open to others
 * EPERM this process is the child of one that used the library
 * ENOSPC there is no room in shared memory, or 1,024 of these are open
 * EFAULT name or barrier is NULL
 */
int punctual_shared_barrier_open(const char *name, struct punctual_shared_barrier **barrier);

/*
 * punctual_shared_barrier_remove - remove the name of a barrier between programs
 *
 * Programs that have it open keep it.
 *
 * Errors:
 * ENOENT there is no lock of this name
 * EINVAL this is no name, or that of a lock of another kind
 * EFAULT name is NULL
 */
int punctual_shared_barrier_remove(const char *name);

/*
 * punctual_shared_barrier_close - close a barrier between programs
 *
 * Errors:
 * EBADF barrier is not open
 * EBUSY a thread of this program uses it at this moment; nothing was changed
 */
int punctual_shared_barrier_close(struct punctual_shared_barrier *barrier);

/*
 * punctual_shared_barrier_wait - wait until all threads are at a barrier between programs
 *
 * Returns 1 in the thread that came last, and 0 in the others. Real-time safe.
 *
 * Errors:
 * EBADMSG another program wrote into its memory
 * EBADF barrier is not open
 */
int punctual_shared_barrier_wait(struct punctual_shared_barrier *barrier);

/*
 * punctual_shared_barrier_wait_until - wait at a barrier between programs until a time
 *
 * The same as punctual_shared_barrier_wait(3), waiting until the time until at most; UINT64_MAX:
 * for ever. A thread for which this fails has not come.
 *
 * Returns 1 in the thread that came last, and 0 in the others. Real-time safe.
 *
 * Errors:
 * ETIMEDOUT the time is over
 * EBADMSG another program wrote into its memory
 * EBADF barrier is not open
 */
int punctual_shared_barrier_wait_until(struct punctual_shared_barrier *barrier, uint64_t until);

/*
 * punctual_jobs_open - be the allocator of a task
 *
 * For a task in a group under PUNCTUAL_JOBS, which has no releases of its own: it executes on the
 * jobs that the program adds, one at a time. Its punctual_wait_period(3) ends the job as completed
 * and waits for the next one. The period and budget of the task bound its jobs: those that start
 * within a period of the first one share one budget, and the first that starts later begins the
 * next. They do not bound those of a task whose budget is its period (PUNCTUAL_OVERLOAD of
 * punctual_open(3)). It can be opened once for each task. Any thread may use it, one at a time.
 *
 * Errors:
 * EBUSY it was opened before
 * EINVAL the task is under another policy
 * ESRCH the task has ended
 * ECANCELED its set was closed
 * EMFILE 1,024 are open
 * EBADF task is no task
 * EFAULT jobs is NULL
 */
int punctual_jobs_open(struct punctual_task *task, struct punctual_jobs **jobs);

/*
 * punctual_jobs_close - stop adding jobs to a task
 *
 * Jobs that were added stay. It cannot be opened again.
 *
 * Errors:
 * EBADF jobs is not open
 * EBUSY another thread uses it at this moment
 */
int punctual_jobs_close(struct punctual_jobs *jobs);

/*
 * punctual_jobs_order - order the jobs of a group
 *
 * By one to four attributes, PUNCTUAL_ORDER_START and the following, the most important one first,
 * from now on; before that by priority. The group is under PUNCTUAL_JOBS; NULL: the tasks that are
 * in no group.
 *
 * Errors:
 * EINVAL count is not 1 to 4; an attribute is unknown, or named twice; the group has another policy
 * EAGAIN 64 changes wait for the dispatcher
 * ENOENT there is no such group
 * ECANCELED the set was closed
 * EBADF set is no set
 * EFAULT by is NULL
 */
int punctual_jobs_order(struct punctual *set, const char *group, const uint32_t *by, size_t count);

/*
 * punctual_job_add - add a job to a task
 *
 * Does not wait for the dispatcher. The end of the job comes as one event, punctual_job_event(3),
 * also where the dispatcher refuses it because of the task's other jobs. A start gone by is now;
 * a job whose finish has gone by, or without a budget, ends at once. Stores the number of the job
 * in number, unless that is NULL.
 *
 * Real-time safe.
 *
 * Errors:
 * EINVAL the finish is not after the start, or more than a period after it
 * EDQUOT the budget is more than that of the task
 * EAGAIN the dispatcher has not taken 16 requests of the task
 * ECANCELED the task has ended, or its set was closed
 * E2BIG job has values that this version does not know
 * EBADF jobs is not open
 * EBUSY another thread uses it at this moment
 * EFAULT job is NULL
 */
int punctual_job_add(struct punctual_jobs *jobs, const struct punctual_job_attr *job,
		     uint64_t *number);

/*
 * punctual_job_cancel - cancel a job that was added
 *
 * Unless it has ended by then: its event says which. Does not wait for the dispatcher.
 *
 * Real-time safe.
 *
 * Errors:
 * EAGAIN the dispatcher has not taken 16 requests of the task
 * ECANCELED the task has ended, or its set was closed
 * EBADF jobs is not open
 * EBUSY another thread uses it at this moment
 */
int punctual_job_cancel(struct punctual_jobs *jobs, uint64_t number);

/*
 * punctual_job_complete - complete a job in place of its task
 *
 * For tasks of punctual_task_pid(3) and punctual_task_command(3), whose processes cannot call
 * punctual_wait_period(3) and say in another way that they are done: the job ends as completed, and
 * the rest of its budget is given up. A job that has ended, or has not begun, stays as it is. Does
 * not wait for the dispatcher.
 *
 * Real-time safe.
 *
 * Errors:
 * EAGAIN the dispatcher has not taken 16 requests of the task
 * ECANCELED the task has ended, or its set was closed
 * EBADF jobs is not open
 * EBUSY another thread uses it at this moment
 */
int punctual_job_complete(struct punctual_jobs *jobs, uint64_t number);

/*
 * punctual_job_events_open - receive the ends of all jobs that the program adds to a set
 *
 * It can be opened once for each set. Any thread may use it, one at a time: a task, too, which then
 * has a budget for that.
 *
 * Errors:
 * EBUSY it was opened before
 * EINVAL no group of the set is under PUNCTUAL_JOBS
 * ECANCELED the set was closed
 * EMFILE 1,024 are open
 * EBADF set is no set
 * EFAULT events is NULL
 */
int punctual_job_events_open(struct punctual *set, struct punctual_job_events **events);

/*
 * punctual_job_events_close - stop receiving the ends of jobs
 *
 * It cannot be opened again.
 *
 * Errors:
 * EBADF events is not open
 * EBUSY another thread uses it at this moment
 */
int punctual_job_events_close(struct punctual_job_events *events);

/*
 * punctual_job_events_fd - a descriptor for poll
 *
 * It is readable while there is an event, and when the set was closed. It is events' own: do not
 * read or close it.
 *
 * Returns the descriptor.
 *
 * Errors:
 * EBADF events is not open
 * EBUSY another thread uses it at this moment
 */
int punctual_job_events_fd(struct punctual_job_events *events);

/*
 * punctual_job_event - the end of the next job
 *
 * Waits for it until the time until at most; UINT64_MAX: for ever; 0: not at all. Events come in
 * order for each CPU. 1,024 of each CPU are kept; what finds no room is counted in dropped.
 *
 * Real-time safe.
 *
 * Errors:
 * ETIMEDOUT there is none
 * ECANCELED the set was closed, and its events were read
 * EINVAL the size of event is no such structure's
 * EBADF events is not open
 * EBUSY another thread uses it at this moment
 * EFAULT event is NULL
 */
int punctual_job_event(struct punctual_job_events *events, struct punctual_job_event *event,
		       uint64_t until);

#ifdef __cplusplus
}
#endif

#endif
