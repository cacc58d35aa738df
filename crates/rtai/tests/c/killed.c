/* SPDX-License-Identifier: MIT */
/* Programs that are killed at random instants, in all that they do: nothing is corrupted. */
#include "check.h"

#include <rtai_mbx.h>
#include <rtai_msg.h>
#include <rtai_sem.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define PROCESSES 4
#define KILLS 400
#define UNITS 3

/* What the processes share beside the library. */
static struct {
	/* The process that is in the critical section; 0: none. */
	volatile int inside;
	/* Those that are being killed, or are dead, are as often negative. */
	volatile int is_alive[1 << 16];
	volatile long operations;
} *shared;

static unsigned seed;

static unsigned draw(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % below;
}

static void critical_section(int me, SEM *resource)
{
	int result = draw(3) ? rt_sem_wait(resource) : rt_sem_wait_timed(resource, MS);
	int before;

	if (result >= RTE_LOWERR) {
		CHECK(result == RTE_TIMOUT || result == RTE_UNBLKD);
		return;
	}
	before = __atomic_exchange_n(&shared->inside, me, __ATOMIC_SEQ_CST);
	CHECK(before == 0 || !shared->is_alive[before]);
	if (!draw(4))
		RETURNS(rt_sem_wait(resource), 2);
	before = __atomic_exchange_n(&shared->inside, 0, __ATOMIC_SEQ_CST);
	CHECK(before == me);
	while (rt_sem_signal(resource) == 0)
		;
}

static void other_operations(int me, SEM *units, MBX *mailbox)
{
	static char text[2000];
	static int proxies;
	unsigned message[2];
	RT_TASK *other;
	SEM *own;
	long length;

	switch (draw(11)) {
	case 0:
		if (rt_sem_wait_timed(units, MS) < RTE_LOWERR)
			RETURNS(rt_sem_signal(units), 0);
		break;
	case 1:
		own = rt_sem_init(0, 1);
		CHECK(own && rt_sem_wait(own) == 1 && rt_sem_delete(own) == 0);
		break;
	case 2:
		other = (RT_TASK *)rt_get_adr(1000 + (unsigned long)draw(PROCESSES));
		if (other && rt_task_masked_unblock(other, RT_SCHED_SEMAPHORE) == -EINVAL)
			CHECK(other != rt_agent());
		break;
	case 3:
		other = (RT_TASK *)rt_get_adr(1000 + (unsigned long)draw(PROCESSES));
		if (draw(2))
			rt_send_timed(other, draw(100), MS / 4);
		else
			rt_rpcx_timed(other, text, text, (int)draw(2000), (int)draw(2000), MS / 4);
		break;
	case 4:
		other = rt_receivex_timed(NULL, text, (int)draw(2000), &length, MS / 4);
		if (draw(4) && (unsigned long)other > RTE_HIGERR && rt_isrpc(other))
			rt_returnx(other, text, (int)draw(2000));
		break;
	case 5:
		other = rt_proxy_attach(NULL, text, (int)draw(600), 1);
		if (other)
			CHECK(rt_trigger(other) == rt_agent());
		/* Some are left when the process is killed. */
		if (other && (proxies >= 5 || draw(2)))
			RETURNS(rt_proxy_detach(other), 0);
		else if (other)
			proxies++;
		break;
	case 6:
		/* Messages that fit are never divided. */
		message[0] = draw(10000);
		message[1] = ~message[0];
		if (draw(4))
			rt_mbx_send_timed(mailbox, message, sizeof(message), MS / 4);
		else
			rt_mbx_ovrwr_send(mailbox, message, sizeof(message));
		break;
	case 7:
		if (rt_mbx_receive_timed(mailbox, message, sizeof(message), MS / 4) == 0)
			CHECK(message[0] == ~message[1]);
		break;
	case 8:
		rt_change_prio(NULL, (int)draw(100));
		break;
	default:
		rt_task_delete(NULL);
		CHECK(rt_task_init(10000 + (unsigned long)me, (int)draw(100), 0, 0));
	}
}

static void churn(int me, int place)
{
	SEM *resource = rt_typed_named_sem_init("RES", 1, RES_SEM);
	SEM *units = rt_named_sem_init("UNITS", UNITS);
	MBX *mailbox = rt_named_mbx_init("MBX", 64);

	seed = (unsigned)me;
	CHECK(resource && units && mailbox);
	rt_task_init(1000 + (unsigned long)place, 1, 0, 0);
	for (;;) {
		critical_section(me, resource);
		other_operations(me, units, mailbox);
		__atomic_add_fetch(&shared->operations, 1, __ATOMIC_SEQ_CST);
	}
}

static pid_t begin_process(int number, int place)
{
	pid_t pid = fork();

	if (pid == 0) {
		alarm(100);
		churn(number, place);
	}
	CHECK(pid > 0);
	return pid;
}

int main(void)
{
	pid_t pids[PROCESSES];
	int numbers[PROCESSES], next = 1, status;
	long seen = 0;
	SEM *resource, *units;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	seed = 7;
	for (int n = 0; n < PROCESSES; n++) {
		numbers[n] = next++;
		shared->is_alive[numbers[n]] = 1;
		pids[n] = begin_process(numbers[n], n);
	}
	for (int kills = 0; kills < KILLS; kills++) {
		struct timespec time = { 0, (long)draw(2000) * 1000 };
		int n = (int)draw(PROCESSES);

		nanosleep(&time, NULL);
		if (kills % 20 == 0)
			UNTIL(shared->operations > seen + 20);
		seen = shared->operations;
		/* Processes see this before it dies. */
		__atomic_store_n(&shared->is_alive[numbers[n]], 0, __ATOMIC_SEQ_CST);
		CHECK(kill(pids[n], SIGKILL) == 0);
		CHECK(waitpid(pids[n], &status, 0) == pids[n]);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		numbers[n] = next++;
		shared->is_alive[numbers[n]] = 1;
		pids[n] = begin_process(numbers[n], n);
	}
	resource = rt_typed_named_sem_init("RES", 1, RES_SEM);
	units = rt_named_sem_init("UNITS", UNITS);
	for (int n = 0; n < PROCESSES; n++) {
		CHECK(kill(pids[n], SIGKILL) == 0);
		CHECK(waitpid(pids[n], &status, 0) == pids[n] && WIFSIGNALED(status));
	}
	/* All that they left is gone; no unit came from nowhere. */
	CHECK(rt_sem_wait_timed(resource, LIVENESS) < RTE_LOWERR);
	RETURNS(rt_sem_signal(resource), 0);
	UNTIL(!rt_get_adr(1000) && !rt_get_adr(1001) && !rt_get_adr(1002) && !rt_get_adr(1003));
	RETURNS(rt_sem_count(resource), 1);
	CHECK(rt_sem_count(units) >= 0 && rt_sem_count(units) <= UNITS);
	return 0;
}
