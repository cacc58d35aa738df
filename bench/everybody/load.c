// SPDX-License-Identifier: MIT
/*
 * Ordinary programs for bench/everybody: what an ordinary scheduler is judged by.
 *
 *   load shares SECONDS NICE...           processes that spin, each at its nice value (or "idle", "batch"): how far what
 *                                         each executed is from what its weight says
 *   load pipe ROUNDS                      two processes and two pipes: ns for a round
 *   load wake HOGS PERIOD_US COUNT        a process that sleeps on an absolute clock beside so many that spin: how late
 *                                         it runs
 *   load shell HOGS COUNT                 a shell's life beside them: sleep, then start /bin/true and wait for its end
 *   load sleepers BUSY SECONDS            processes that sleep for 1, 2, 5 and 10 ms on an absolute clock, and then so
 *                                         many that spin, forked at once: how late the former run, from the fork on
 *   load vforks COUNT                     processes that vfork all the time; every second one's children execute
 *                                         /bin/true, the others' exit at once
 *   load periods NAME PERIOD_US BUDGET_US SETTLE_MS SECONDS [deadline]
 *                                         spins, as a task of this budget or, with "deadline", under SCHED_DEADLINE:
 *                                         how far the CPU time of each period is from the budget
 *
 * Lines of a name, a tab and a number: ns, or parts in a thousand.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST 512
#define SECOND 1000000000ULL

static void die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(126);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static void sleep_until(uint64_t time)
{
	struct timespec t = { .tv_sec = time / SECOND, .tv_nsec = time % SECOND };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/* ns on a CPU, by the kernel's count. */
static uint64_t executed(pid_t pid)
{
	unsigned long long ran = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%llu", &ran) != 1)
		die(path);
	fclose(f);
	return ran;
}

/* Takes "5", "-5", "idle" or "batch"; its weight where nice 0 has 1,024 (sched(7): a quarter per step). */
static double become(const char *how)
{
	struct sched_param zero = { 0 };
	double weight = 1024;
	int nice;

	if (!strcmp(how, "idle")) {
		if (sched_setscheduler(0, SCHED_IDLE, &zero))
			die("SCHED_IDLE");
		return 3;
	}
	if (!strcmp(how, "batch")) {
		if (sched_setscheduler(0, SCHED_BATCH, &zero))
			die("SCHED_BATCH");
		return weight;
	}
	if (setpriority(PRIO_PROCESS, 0, atoi(how)))
		die("nice");
	for (nice = atoi(how); nice > 0; nice--)
		weight /= 1.25;
	for (; nice < 0; nice++)
		weight *= 1.25;
	return weight;
}

static pid_t spin(const char *how, double *weight)
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		*weight = become(how);
		for (;;)
			__asm__ volatile("" ::: "memory");
	}
	return pid;
}

static double *weights(void)
{
	double *w = mmap(NULL, MOST * sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (w == MAP_FAILED)
		die("mmap");
	return w;
}

static void stop(pid_t *pids, int count)
{
	/* All of them first: one that is to die waits for its time slice among those that spin. */
	for (int i = 0; i < count; i++)
		kill(pids[i], SIGKILL);
	for (int i = 0; i < count; i++)
		waitpid(pids[i], NULL, 0);
}

static int shares(int seconds, char **how, int count)
{
	double *weight = weights(), all = 0, total = 0;
	uint64_t began[MOST], ran[MOST];
	pid_t pids[MOST];

	/* So that who measures is not what is measured. */
	setpriority(PRIO_PROCESS, 0, -20);
	for (int i = 0; i < count; i++)
		pids[i] = spin(how[i], &weight[i]);
	sleep_until(now() + SECOND / 2);
	for (int i = 0; i < count; i++)
		began[i] = executed(pids[i]);
	sleep_until(now() + seconds * SECOND);
	for (int i = 0; i < count; i++) {
		ran[i] = executed(pids[i]) - began[i];
		all += ran[i];
		total += weight[i];
	}
	stop(pids, count);
	for (int i = 0; i < count; i++) {
		double off = (ran[i] / all) / (weight[i] / total) * 1000 - 1000;

		printf("share_off_nice_%s\t%+.1f\n", how[i], off);
	}
	return 0;
}

static int pipes(int rounds)
{
	int there[2], back[2];
	uint64_t began;
	pid_t pid;
	char c = 0;

	if (pipe(there) || pipe(back))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		for (int i = 0; i < rounds + 100; i++)
			if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
				_exit(1);
		_exit(0);
	}
	began = now();
	for (int i = 0; i < rounds + 100; i++) {
		if (i == 100)
			began = now();
		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			die("pipe");
	}
	printf("pipe_round\t%llu\n", (unsigned long long)((now() - began) / rounds));
	waitpid(pid, NULL, 0);
	return 0;
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static void distribution(const char *name, uint64_t *values, int count)
{
	qsort(values, count, sizeof(*values), by_size);
	printf("%s_p50\t%llu\n", name, (unsigned long long)values[count / 2]);
	printf("%s_p99\t%llu\n", name, (unsigned long long)values[(count - 1) * 99 / 100]);
	printf("%s_max\t%llu\n", name, (unsigned long long)values[count - 1]);
}

static int beside(int hogs, uint64_t period, int count, int start)
{
	uint64_t *late = calloc(count, sizeof(*late)), next;
	double *weight = weights();
	pid_t pids[MOST], child;
	char name[64];

	/* A timer of an ordinary thread may be 50 us late by default. */
	prctl(PR_SET_TIMERSLACK, 1);
	if (!late || hogs > MOST || count < 1)
		die("arguments");
	for (int i = 0; i < hogs; i++)
		pids[i] = spin("0", &weight[i]);
	next = now() + SECOND / 5;
	for (int i = 0; i < count; i++, next += period) {
		sleep_until(next);
		if (start) {
			child = fork();
			if (!child) {
				execl("/bin/true", "true", (char *)NULL);
				_exit(1);
			}
			if (child < 0 || waitpid(child, NULL, 0) != child)
				die("a program");
		}
		late[i] = now() - next;
		if (now() > next + period)
			next = now();
	}
	stop(pids, hogs);
	snprintf(name, sizeof(name), "%s_beside_%d", start ? "shell" : "wake", hogs);
	distribution(name, late, count);
	return 0;
}

/* What a sleeper shares with the process that started it. */
struct sleeper {
	volatile uint64_t begin; /* wake-ups that are due from then on count; 0: none */
	volatile uint64_t next;	 /* when it is to wake */
	uint64_t count;
	uint64_t late[];
};

/* Never returns. */
static void sleep_on(struct sleeper *s, uint64_t period, uint64_t most)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_TIMERSLACK, 1);
	s->next = now() + period;
	for (;;) {
		uint64_t at;

		sleep_until(s->next);
		at = now();
		if (s->begin && s->next >= s->begin && s->count < most)
			s->late[s->count++] = at - s->next;
		s->next = (at > s->next + period ? at : s->next) + period;
	}
}

static int sleepers(int busy, int seconds)
{
	static const uint64_t periods_ms[] = { 1, 2, 5, 10 };
	enum { SLEEPERS = 4 };
	uint64_t most = seconds * 1000ULL, begin, end;
	size_t size = sizeof(struct sleeper) + (most + 1) * sizeof(uint64_t);
	struct sched_param first = { .sched_priority = 1 };
	struct sleeper *sleeper[SLEEPERS];
	double *weight = weights();
	pid_t pids[MOST], sleeping[SLEEPERS];
	char name[64];

	if (busy > MOST || seconds < 1)
		die("arguments");
	for (int i = 0; i < SLEEPERS; i++) {
		sleeper[i] = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
		if (sleeper[i] == MAP_FAILED)
			die("mmap");
		sleeping[i] = fork();
		if (sleeping[i] < 0)
			die("fork");
		if (!sleeping[i])
			sleep_on(sleeper[i], periods_ms[i] * 1000000, most);
	}
	sleep_until(now() + SECOND / 5);
	/* All forks before anything else; the children are ordinary processes. */
	if (sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &first))
		die("SCHED_FIFO");
	for (int i = 0; i < busy; i++)
		pids[i] = spin("0", &weight[i]);
	begin = now();
	end = begin + seconds * SECOND;
	for (int i = 0; i < SLEEPERS; i++)
		sleeper[i]->begin = begin;
	sleep_until(end);
	stop(sleeping, SLEEPERS);
	stop(pids, busy);
	for (int i = 0; i < SLEEPERS; i++) {
		struct sleeper *s = sleeper[i];

		/* One that waits still is late by at least so much. */
		if (s->next < end)
			s->late[s->count++] = end - s->next;
		snprintf(name, sizeof(name), "sleep_%llums_beside_%d", (unsigned long long)periods_ms[i], busy);
		printf("%s_count\t%llu\n", name, (unsigned long long)s->count);
		if (s->count)
			distribution(name, s->late, s->count);
	}
	return 0;
}

/* Never returns. */
static void vfork_on(int execute)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pid_t child = vfork();

		if (!child) {
			if (execute)
				execl("/bin/true", "true", (char *)NULL);
			_exit(0);
		}
		if (child > 0)
			waitpid(child, NULL, 0);
	}
}

static int vforks(int count)
{
	for (int i = 0; i < count; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (!pid)
			vfork_on(i % 2);
	}
	pause();
	return 0;
}

struct gap {
	uint64_t from, to; /* the monotonic clock */
	uint64_t executed; /* the thread's CPU clock */
};

static uint64_t own_cpu_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

static void under_deadline(uint64_t period, uint64_t budget)
{
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr), .policy = 6, .runtime = budget, .deadline = period, .period = period };

	if (syscall(SYS_sched_setattr, 0, &attr, 0))
		die("SCHED_DEADLINE");
}

/* Shorter ones are interrupts. */
#define GAP 200000ULL

/* The CPU clock at an instant: of the gap that spans it, or of the gap before it and what was executed since. */
static uint64_t executed_at(const struct gap *gaps, int count, uint64_t time)
{
	int i = 0;

	while (i + 1 < count && gaps[i + 1].from <= time)
		i++;
	return gaps[i].executed + (time > gaps[i].to ? time - gaps[i].to : 0);
}

static int periods(const char *name, uint64_t period, uint64_t budget, uint64_t settle, int seconds, int deadline)
{
	int most = 4 * seconds * SECOND / period + 16, count = 0, seen = 0;
	struct gap *gaps = calloc(most, sizeof(*gaps));
	uint64_t *off = calloc(most, sizeof(*off));
	uint64_t began, end, last, phase = period, all = 0;
	char text[64];

	if (!gaps || !off || seconds < 1)
		die("arguments");
	memset(gaps, 1, most * sizeof(*gaps));
	memset(off, 1, most * sizeof(*off));
	if (deadline)
		under_deadline(period, budget);
	began = now() + settle;
	end = began + seconds * SECOND;
	for (last = now(); last < end && count < most;) {
		uint64_t time = now();

		if (time - last > GAP && time > began) {
			gaps[count].from = last;
			gaps[count].to = time;
			gaps[count].executed = own_cpu_clock() - (now() - time);
			count++;
		}
		last = time;
		for (int i = 0; i < 500; i++)
			__asm__ volatile("" ::: "memory");
	}
	if (count < 3)
		die("there are no gaps");
	/* The releases: the earliest of the gaps' ends within a period, the first one's as the origin. */
	for (int i = 0; i < count; i++) {
		uint64_t at = (gaps[i].to - gaps[0].to + period / 2) % period;

		if (at < phase)
			phase = at;
	}
	began = gaps[0].to + phase - period / 2;
	for (uint64_t time = began; time + period <= gaps[count - 1].to && seen < most; time += period) {
		uint64_t got = executed_at(gaps, count, time + period) - executed_at(gaps, count, time);

		all += got;
		off[seen++] = got > budget ? got - budget : budget - got;
	}
	snprintf(text, sizeof(text), "%s_off", name);
	printf("%s_periods\t%d\n", name, seen);
	distribution(text, off, seen);
	printf("%s_mean\t%llu\n", name, (unsigned long long)(all / seen));
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "shares") && argc > 3 && argc - 3 <= MOST)
		return shares(atoi(argv[2]), argv + 3, argc - 3);
	if (!strcmp(what, "pipe"))
		return pipes(atoi(argv[2]));
	if (!strcmp(what, "wake") && argc == 5)
		return beside(atoi(argv[2]), atoi(argv[3]) * 1000ULL, atoi(argv[4]), 0);
	if (!strcmp(what, "shell") && argc == 4)
		return beside(atoi(argv[2]), SECOND / 50, atoi(argv[3]), 1);
	if (!strcmp(what, "sleepers") && argc == 4)
		return sleepers(atoi(argv[2]), atoi(argv[3]));
	if (!strcmp(what, "vforks"))
		return vforks(atoi(argv[2]));
	if (!strcmp(what, "periods") && (argc == 7 || argc == 8))
		return periods(argv[2], atoi(argv[3]) * 1000ULL, atoi(argv[4]) * 1000ULL, atoi(argv[5]) * 1000000ULL,
			       atoi(argv[6]), argc == 8);
	fprintf(stderr, "load: shares SECONDS NICE... | pipe ROUNDS | wake HOGS PERIOD_US COUNT | shell HOGS COUNT |\n"
			"      sleepers BUSY SECONDS | vforks COUNT |\n"
			"      periods NAME PERIOD_US BUDGET_US SETTLE_MS SECONDS [deadline]\n");
	return 126;
}
