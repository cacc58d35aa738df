/* SPDX-License-Identifier: MIT */
/* Names and handles. */
#include "check.h"

#include <rtai_sem.h>

static bool is_named(unsigned long number, const char *name)
{
	char text[7];

	num2nam(number, text);
	return strcmp(text, name) == 0;
}

int main(void)
{
	RT_TASK *task;
	SEM *semaphore;
	unsigned long unused;

	CHECK(nam2num("a") == 12 && nam2num("A") == 12 && nam2num("10") == 42);
	CHECK(nam2num("abcdef") == nam2num("ABCDEFGH") && nam2num("") == 0xFFFFFFFF);
	CHECK(nam2num("$$$$$$") + 2 == MAX_NAM2NUM);
	CHECK(is_named(nam2num("LatMbx"), "LATMBX") && is_named(nam2num("a_@."), "A_@."));
	CHECK(is_named(nam2num("#"), "$") && is_named(MAX_NAM2NUM, "|null|"));
	CHECK(nam2num(NULL) == 0xFFFFFFFF);

	CHECK(rt_get_adr(nam2num("TASK")) == NULL);
	task = rt_task_init(nam2num("TASK"), 1, 0, 0);
	CHECK(task && rt_get_adr(nam2num("TASK")) == task);
	CHECK(rt_get_name(task) == nam2num("TASK"));
	semaphore = rt_sem_init(nam2num("SEM"), 1);
	CHECK(semaphore && rt_get_adr(nam2num("SEM")) == semaphore);
	CHECK(rt_get_name(semaphore) == nam2num("SEM"));
	/* Names are of all kinds. */
	CHECK(rt_sem_init(nam2num("TASK"), 1) == NULL && rt_sem_init(nam2num("SEM"), 1) == NULL);
	/* Unused ones are no names of texts. */
	unused = rt_get_name(NULL);
	CHECK(unused >= MAX_NAM2NUM && rt_get_name(NULL) != unused);
	CHECK(rt_get_adr(unused) == NULL);

	/* Addresses are not memory, not error numbers, and not each other's. */
	CHECK((unsigned long)task > RTE_HIGERR && (unsigned long)semaphore > RTE_HIGERR);
	RETURNS(rt_sem_signal((SEM *)task), RTE_OBJINV);
	RETURNS(rt_task_resume((RT_TASK *)semaphore), -EINVAL);
	RETURNS(rt_get_name((char *)task + 1), 0);
	RETURNS(rt_get_name(&unused), 0);
	RETURNS(rt_sem_delete(semaphore), 0);
	RETURNS(rt_get_name(semaphore), 0);
	RETURNS(rt_sem_signal(semaphore), RTE_OBJINV);
	/* The next one in the same place is another one. */
	CHECK(rt_sem_init(nam2num("SEM"), 1) != semaphore);
	RETURNS(rt_sem_signal(semaphore), RTE_OBJINV);
	RETURNS(rt_task_delete(task), 0);
	CHECK(rt_get_adr(nam2num("TASK")) == NULL);
	RETURNS(rt_task_resume(task), -EINVAL);
	return 0;
}
