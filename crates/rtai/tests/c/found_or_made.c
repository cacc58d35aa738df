/* SPDX-License-Identifier: MIT */
/* Programs that begin together find or make objects of the same names. */
#include "check.h"

#include <rtai_mbx.h>
#include <rtai_msg.h>
#include <rtai_sem.h>
#include <rtai_tbx.h>
#include <sys/wait.h>

#define PROGRAMS 4
#define ROUNDS 1000

/* One kind after the other: most of the time there is none, and two programs make it. */
static void find_or_make(void)
{
	for (int n = 0; n < ROUNDS; n++) {
		SEM *semaphore = rt_typed_named_sem_init("FMSEM", 1, CNT_SEM);

		CHECK(semaphore && rt_named_sem_delete(semaphore) >= 0);
	}
	for (int n = 0; n < ROUNDS; n++) {
		MBX *mailbox = rt_typed_named_mbx_init("FMMBX", 64, FIFO_Q);

		CHECK(mailbox && rt_named_mbx_delete(mailbox) >= 0);
	}
	for (int n = 0; n < ROUNDS; n++) {
		RT_MSGQ *queue = rt_named_msgq_init("FMTBX", 8, 64);

		CHECK(queue && rt_named_msgq_delete(queue) >= 0);
	}
}

static void together(void)
{
	pid_t programs[PROGRAMS];
	int status;

	for (int n = 0; n < PROGRAMS; n++) {
		programs[n] = fork();
		CHECK(programs[n] >= 0);
		if (programs[n] == 0) {
			find_or_make();
			_exit(0);
		}
	}
	for (int n = 0; n < PROGRAMS; n++)
		CHECK(waitpid(programs[n], &status, 0) == programs[n] && status == 0);
	/* As many deleted as found or made. */
	CHECK(!rt_get_adr(nam2num("FMSEM")) && !rt_get_adr(nam2num("FMMBX")));
	CHECK(!rt_get_adr(nam2num("FMTBX")));
}

/* A name of a program that was killed is there for the next one. */
static void again(void)
{
	for (int n = 0; n < 5; n++) {
		pid_t program = fork();
		int status;

		CHECK(program >= 0);
		if (program == 0) {
			CHECK(rt_mbx_init(nam2num("AGAIN"), 64));
			CHECK(rt_sem_init(nam2num("AGAINS"), 1));
			kill(getpid(), SIGKILL);
		}
		CHECK(waitpid(program, &status, 0) == program && WIFSIGNALED(status));
		CHECK(WTERMSIG(status) == SIGKILL);
	}
}

int main(void)
{
	alarm(100);
	together();
	again();
	return 0;
}
