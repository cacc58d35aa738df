/* SPDX-License-Identifier: MIT */
/* Programs are loaded, started, killed, reaped and reported. Those of loaded.c are beside it. */
#include "check.h"

#include <limits.h>
#include <rtlinux.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "loaded.h"

static char folder[PATH_MAX];

static const char *path(const char *name)
{
	static char path[PATH_MAX];

	CHECK(snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path));
	return path;
}

static int load(const char *name)
{
	int pid = RTload(path(name));

	if (pid < 0)
		fprintf(stderr, "RTload %s: %s\n", name, strerror(errno));
	CHECK(pid > 0);
	return pid;
}

static int ends(int pid)
{
	int status;

	RETURNS(RTwait(pid, &status), pid);
	FAILS(RTwait(pid, &status), ESRCH);
	FAILS(RTrun(pid), ESRCH);
	FAILS(RTkill(pid), ESRCH);
	return status;
}

static bool is_gone(int pid)
{
	return kill(pid, 0) == -1 && errno == ESRCH;
}

/* The same of one whose parent may not have reaped it. */
static bool has_ended(int pid)
{
	char name[64], state = 'Z';
	FILE *file;

	snprintf(name, sizeof(name), "/proc/%d/stat", pid);
	file = fopen(name, "r");
	if (file) {
		if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			state = 'Z';
		fclose(file);
	}
	return state == 'Z' || state == 'X';
}

static void is_refused(void)
{
	const int numbers[] = { 0, -1, 1, INT_MIN, INT_MAX, getpid() };
	FILE *file;

	FAILS(RTload(NULL), EFAULT);
	FAILS(RTload(""), ENOENT);
	FAILS(RTload("no such program"), ENOENT);
	FAILS(RTload("/no/such/program"), ENOENT);
	FAILS(RTload(folder), EACCES);
	file = fopen(path("text"), "w");
	CHECK(file && fputs("no program\n", file) >= 0 && fclose(file) == 0);
	if (geteuid() != 0)
		FAILS(RTload(path("text")), EACCES);
	CHECK(chmod(path("text"), 0700) == 0);
	FAILS(RTload(path("text")), ENOEXEC);
	for (size_t n = 0; n < sizeof(numbers) / sizeof(*numbers); n++) {
		FAILS(RTrun(numbers[n]), ESRCH);
		FAILS(RTkill(numbers[n]), ESRCH);
		FAILS(RTwait(numbers[n], NULL), ESRCH);
	}
}

/* What the program has found of itself; false: it is no task. */
static bool probes(struct facts *facts)
{
	int pid = load("probe");

	/* It executes nothing before it is started. */
	sleep_ms(20);
	FAILS(RTfifo_get(FACTS, (char *)facts, sizeof(*facts)), EAGAIN);
	RETURNS(RTrun(pid), 0);
	CHECK(RTrun(pid) == -1 && (errno == EALREADY || errno == ESRCH));
	RETURNS(ends(pid), 0);
	RETURNS(RTfifo_get(FACTS, (char *)facts, sizeof(*facts)), sizeof(*facts));
	return facts->policy == SCHED_FIFO;
}

static void executes_as_a_task_with_fixed_resources(void)
{
	long long end = clock_ns() + LIVENESS;
	struct facts facts;

	RETURNS(RTfifo_create(FACTS, sizeof(facts)), 0);
	/* Another dispatcher may have the CPU for a while. */
	while (!probes(&facts)) {
		if (clock_ns() > end || geteuid() != 0) {
			puts("tasks need a CPU without another dispatcher, and root");
			exit(MISSING);
		}
		sleep_ms(100);
	}
	CHECK(facts.memory_is_fixed && facts.memory_is_bounded && facts.stack_is_fixed);
	CHECK(facts.locked_kib > 1000);
}

static void has_periods(void)
{
	RTime times[PERIODS];
	int pid;

	RETURNS(RTfifo_create(TIMES, sizeof(times)), 0);
	pid = load("periodic");
	RETURNS(RTrun(pid), 0);
	RETURNS(ends(pid), 0);
	RETURNS(RTfifo_get(TIMES, (char *)times, sizeof(times)), sizeof(times));
	for (int n = 1; n < PERIODS; n++)
		CHECK(times[n] > times[n - 1]);
	pid = load("asks");
	RETURNS(RTrun(pid), 0);
	RETURNS(ends(pid), 0);
}

static void is_reaped(void)
{
	int pid = load("exits"), status;

	RETURNS(RTrun(pid), 0);
	status = ends(pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 3 && is_gone(pid));
	pid = load("crashes");
	RETURNS(RTrun(pid), 0);
	status = ends(pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && is_gone(pid));
	/* Killed by another program, before and after its start. */
	for (int started = 0; started < 2; started++) {
		pid = load("spins");
		if (started)
			RETURNS(RTrun(pid), 0);
		CHECK(kill(pid, SIGKILL) == 0);
		status = ends(pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && is_gone(pid));
		pid = load("spins");
		if (started)
			RETURNS(RTrun(pid), 0);
		RETURNS(RTkill(pid), 0);
		CHECK(is_gone(pid));
		FAILS(RTkill(pid), ESRCH);
		FAILS(RTwait(pid, NULL), ESRCH);
	}
	/* Several at a time, which never wait, and the machine continues. */
	for (int n = 0; n < 3; n++) {
		pid = load("spins");
		RETURNS(RTrun(pid), 0);
	}
	sleep_ms(50);
	/* The end of this program ends them. */
}

/* A program that loads others, and ends. */
static void loads_and_ends(bool is_killed)
{
	int pids[2] = { load("spins"), load("spins") };

	RETURNS(RTrun(pids[0]), 0);
	RETURNS(RTfifo_put(PIDS, (const char *)pids, sizeof(pids)), sizeof(pids));
	if (is_killed)
		raise(SIGKILL);
}

static void end_with_the_program_that_has_loaded_them(const char *self)
{
	RETURNS(RTfifo_create(PIDS, 8), 0);
	for (int is_killed = 0; is_killed < 2; is_killed++) {
		int pids[2], status;
		pid_t pid = fork();

		if (pid == 0) {
			execl(self, self, is_killed ? "killed" : "ends", NULL);
			_exit(127);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(is_killed ? WIFSIGNALED(status) : status == 0);
		RETURNS(RTfifo_get(PIDS, (char *)pids, sizeof(pids)), sizeof(pids));
		UNTIL(has_ended(pids[0]) && has_ended(pids[1]));
	}
}

int main(int argc, char **argv)
{
	const char *end = strrchr(argv[0], '/');

	CHECK(end);
	memcpy(folder, argv[0], (size_t)(end - argv[0]));
	if (argc > 1) {
		loads_and_ends(strcmp(argv[1], "killed") == 0);
		return 0;
	}
	is_refused();
	executes_as_a_task_with_fixed_resources();
	has_periods();
	end_with_the_program_that_has_loaded_them(argv[0]);
	is_reaped();
	return 0;
}
