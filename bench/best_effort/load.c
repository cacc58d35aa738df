// SPDX-License-Identifier: MIT
/*
 * Ordinary programs for bench/best_effort: what an ordinary scheduler is judged by.
 *
 *   load shares SECONDS NICE...      processes that spin, each at its nice value (or "idle",
 *                                    "batch"): how far what each executed is from its weight
 *   load pipe ROUNDS                 two processes and two pipes: ns for a round
 *   load wake LOADS PERIOD_US COUNT  a process that sleeps on an absolute clock beside so many
 *                                    that spin: its latency
 *   load shell LOADS COUNT           a shell's life beside them: sleep, then start /bin/true and
 *                                    wait for its end
 *   load sleeping BUSY SECONDS       processes that sleep for 1, 2, 5 and 10 ms on an absolute
 *                                    clock, and then so many that spin, forked at once: latency of
 *                                    the sleeping ones
 *   load vforks COUNT                processes that vfork all the time; the children of every
 *                                    second one execute /bin/true, the others exit at once
 *
 * Lines of a name, a tab and a number: ns, or parts in a thousand.
 */
#include "figures.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MOST 512

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

/* Of "5", "-5", "idle" or "batch" the weight; nice 0 has 1,024 (sched(7): a quarter a step). */
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
	double *w = mmap(NULL, MOST * sizeof(*w), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

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

	/* So that the measuring process is not what is measured. */
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

static int beside(int loads, uint64_t period, int count, int start)
{
	uint64_t *late = calloc(count, sizeof(*late)), next;
	double *weight = weights();
	pid_t pids[MOST], child;
	char name[64];

	/* A timer of an ordinary thread may be 50 us late by default. */
	prctl(PR_SET_TIMERSLACK, 1);
	if (!late || loads > MOST || count < 1)
		die("arguments");
	for (int i = 0; i < loads; i++)
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
	stop(pids, loads);
	snprintf(name, sizeof(name), "%s_beside_%d", start ? "shell" : "wake", loads);
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

static _Noreturn void sleep_on(struct sleeper *s, uint64_t period, uint64_t most)
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

static int sleeping(int busy, int seconds)
{
	static const uint64_t periods_ms[] = { 1, 2, 5, 10 };
	enum { SLEEPING = 4 };
	uint64_t most = seconds * 1000ULL, begin, end;
	size_t size = sizeof(struct sleeper) + (most + 1) * sizeof(uint64_t);
	struct sched_param first = { .sched_priority = 1 };
	struct sleeper *sleeper[SLEEPING];
	double *weight = weights();
	pid_t pids[MOST], sleeping[SLEEPING];
	char name[64];

	if (busy > MOST || seconds < 1)
		die("arguments");
	for (int i = 0; i < SLEEPING; i++) {
		sleeper[i] = mmap(NULL, size, PROT_READ | PROT_WRITE,
				  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
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
	for (int i = 0; i < SLEEPING; i++)
		sleeper[i]->begin = begin;
	sleep_until(end);
	stop(sleeping, SLEEPING);
	stop(pids, busy);
	for (int i = 0; i < SLEEPING; i++) {
		struct sleeper *s = sleeper[i];

		/* One that waits still is late by at least so much. */
		if (s->next < end)
			s->late[s->count++] = end - s->next;
		snprintf(name, sizeof(name), "sleep_%llums_beside_%d",
			 (unsigned long long)periods_ms[i], busy);
		printf("%s_count\t%llu\n", name, (unsigned long long)s->count);
		if (s->count)
			distribution(name, s->late, s->count);
	}
	return 0;
}

static _Noreturn void vfork_on(int execute)
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
	if (!strcmp(what, "sleeping") && argc == 4)
		return sleeping(atoi(argv[2]), atoi(argv[3]));
	if (!strcmp(what, "vforks"))
		return vforks(atoi(argv[2]));
	fprintf(stderr, "load: shares SECONDS NICE... | pipe ROUNDS | wake LOADS PERIOD_US COUNT |\n"
			"      shell LOADS COUNT | sleeping BUSY SECONDS | vforks COUNT\n");
	return 126;
}
