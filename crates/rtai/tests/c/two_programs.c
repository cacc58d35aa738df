/* SPDX-License-Identifier: MIT */
/* Programs that were started separately find each other by name, also after a fork. */
#include "hard_tasks.h"

#include <rtai_sem.h>
#include <sys/wait.h>

#define ROUNDS 500

static pid_t start(char *program, char *role)
{
	char *arguments[] = { program, role, NULL };
	pid_t pid = fork();

	if (pid == 0) {
		execv(program, arguments);
		_exit(127);
	}
	CHECK(pid > 0);
	return pid;
}

static int ended(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* Answers each unit with one, then ends without deleting anything. */
static int answer(void)
{
	SEM *ask, *answer;

	UNTIL((ask = (SEM *)rt_get_adr(nam2num("ASK"))));
	UNTIL((answer = (SEM *)rt_get_adr(nam2num("ANSWER"))));
	CHECK(rt_task_init(nam2num("PEER"), 3, 0, 0));
	CHECK(rt_sem_init(nam2num("PEERS"), 7));
	for (int n = 0; n < ROUNDS; n++) {
		RETURNS(rt_sem_wait(ask) < RTE_LOWERR, 1);
		RETURNS(rt_sem_signal(answer), 0);
	}
	return 0;
}

/* Owns a resource until it is killed. */
static int own(void)
{
	SEM *owned = (SEM *)rt_get_adr(nam2num("OWNED"));

	CHECK(rt_task_init(nam2num("OWNER"), 1, 0, 0));
	RETURNS(rt_sem_wait(owned), 1);
	for (;;)
		pause();
}

/* Waits until another task resumes it, and is killed then. */
static int wait_until_killed(void)
{
	CHECK(rt_task_init(nam2num("WAITER"), 1, 0, 0));
	rt_sem_wait((SEM *)rt_get_adr(nam2num("WANTED")));
	return 1;
}

static void asks_and_gets_answers(char *program)
{
	SEM *ask = rt_sem_init(nam2num("ASK"), 0), *answer = rt_sem_init(nam2num("ANSWER"), 0);
	pid_t pid = start(program, "answer");
	RT_TASK *peer;
	SEM *others;

	UNTIL((peer = (RT_TASK *)rt_get_adr(nam2num("PEER"))));
	UNTIL((others = (SEM *)rt_get_adr(nam2num("PEERS"))));
	CHECK(has_priorities(peer, 3 + SOFT, 3 + SOFT) && rt_get_linux_tid(peer) == pid);
	RETURNS(rt_sem_count(others), 7);
	for (int n = 0; n < ROUNDS; n++) {
		RETURNS(rt_sem_signal(ask), 0);
		CHECK(rt_sem_wait_timed(answer, LIVENESS) < RTE_LOWERR);
	}
	CHECK(ended(pid) == 0);
	/* What it made ends with it. */
	UNTIL(!rt_get_adr(nam2num("PEER")) && !rt_get_adr(nam2num("PEERS")));
	RETURNS(rt_sem_count(others), RTE_OBJINV);
	RETURNS(rt_task_suspend(peer), -EINVAL);
	RETURNS(rt_sem_delete(ask), 0);
	RETURNS(rt_sem_delete(answer), 0);
}

/* A killed owner's resource goes to the task that waits, which inherits nothing from the dead. */
static void outlives_an_owner(char *program)
{
	SEM *owned = rt_typed_sem_init(nam2num("OWNED"), 1, RES_SEM);
	pid_t pid = start(program, "own");

	UNTIL(rt_sem_count(owned) == 0);
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(rt_sem_wait_timed(owned, LIVENESS) < RTE_LOWERR);
	CHECK(WIFSIGNALED(ended(pid)));
	CHECK(!rt_get_adr(nam2num("OWNER")));
	RETURNS(rt_sem_signal(owned), 0);
	RETURNS(rt_sem_count(owned), 1);
	RETURNS(rt_sem_delete(owned), 0);
}

/* A killed task waits no more. */
static void outlives_a_waiter(char *program)
{
	SEM *wanted = rt_sem_init(nam2num("WANTED"), 0);
	pid_t pid = start(program, "wait");

	UNTIL(rt_sem_count(wanted) == -1);
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(WIFSIGNALED(ended(pid)));
	UNTIL(!rt_get_adr(nam2num("WAITER")));
	RETURNS(rt_sem_count(wanted), 0);
	RETURNS(rt_sem_signal(wanted), 0);
	RETURNS(rt_sem_wait_if(wanted), 1);
	RETURNS(rt_sem_delete(wanted), 0);
}

/* A child has the objects, and is another task. */
static void forks(void)
{
	SEM *shared = rt_sem_init(nam2num("SHARED"), 0);
	pid_t pid = fork();

	if (pid == 0) {
		if (rt_agent() || rt_get_adr(nam2num("SHARED")) != shared)
			_exit(1);
		if (rt_task_init(nam2num("MAIN"), 1, 0, 0) || !rt_task_init(nam2num("CHILD"), 1, 0, 0))
			_exit(2);
		rt_sem_signal(shared);
		_exit(0);
	}
	CHECK(rt_sem_wait_timed(shared, LIVENESS) < RTE_LOWERR);
	CHECK(ended(pid) == 0);
	CHECK(rt_get_adr(nam2num("MAIN")) == rt_agent());
	UNTIL(!rt_get_adr(nam2num("CHILD")));
	RETURNS(rt_sem_delete(shared), 0);
}

int main(int argc, char **argv)
{
	alarm(100);
	if (argc > 1 && !strcmp(argv[1], "answer"))
		return answer();
	if (argc > 1 && !strcmp(argv[1], "own"))
		return own();
	if (argc > 1)
		return wait_until_killed();
	CHECK(rt_task_init(nam2num("MAIN"), 5, 0, 0));
	asks_and_gets_answers(argv[0]);
	outlives_an_owner(argv[0]);
	outlives_a_waiter(argv[0]);
	forks();
	return 0;
}
