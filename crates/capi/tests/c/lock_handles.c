/* SPDX-License-Identifier: MIT */
/* Locks that are bad, or not for the caller: each call returns its error and changes nothing. */
#include "locks.h"

#include <sys/wait.h>

static void every_call_refuses(const struct locks *locks, int number)
{
	FAILS(punctual_mutex_lock(locks->mutex), number);
	FAILS(punctual_mutex_lock_until(locks->mutex, 0), number);
	FAILS(punctual_mutex_trylock(locks->mutex), number);
	FAILS(punctual_mutex_unlock(locks->mutex), number);
	FAILS(punctual_mutex_consistent(locks->mutex), number);
	FAILS(punctual_cond_wait(locks->cond, locks->mutex), number);
	FAILS(punctual_cond_wait_until(locks->cond, locks->mutex, 0), number);
	FAILS(punctual_sem_wait(locks->sem), number);
	FAILS(punctual_sem_wait_until(locks->sem, 0), number);
	FAILS(punctual_barrier_wait(locks->barrier), number);
	FAILS(punctual_barrier_wait_until(locks->barrier, 0), number);
}

static void none_is_there(const struct locks *locks)
{
	every_call_refuses(locks, EBADF);
	FAILS(punctual_cond_signal(locks->cond), EBADF);
	FAILS(punctual_cond_broadcast(locks->cond), EBADF);
	FAILS(punctual_sem_trywait(locks->sem), EBADF);
	FAILS(punctual_sem_post(locks->sem), EBADF);
	FAILS(punctual_mutex_destroy(locks->mutex), EBADF);
	FAILS(punctual_cond_destroy(locks->cond), EBADF);
	FAILS(punctual_sem_destroy(locks->sem), EBADF);
	FAILS(punctual_barrier_destroy(locks->barrier), EBADF);
}

static void values_and_handles_that_are_refused(void)
{
	struct punctual_mutex_attr mutex_attr = PUNCTUAL_MUTEX_ATTR_INIT;
	struct punctual_sem_attr attr = PUNCTUAL_SEM_ATTR_INIT;
	struct punctual_mutex *mutex = NULL;
	struct punctual_barrier *barrier = NULL;
	struct punctual_sem *sem = NULL;
	struct locks locks, other;
	int local;
	void *bad[] = { NULL, &local, (void *)1, (void *)-1 };

	FAILS(punctual_mutex_create(NULL), EFAULT);
	FAILS(punctual_mutex_create_with(&mutex_attr, NULL), EFAULT);
	mutex_attr.flags = PUNCTUAL_CEILING_DEADLINE | PUNCTUAL_CEILING_PRIORITY;
	FAILS(punctual_mutex_create_with(&mutex_attr, &mutex), EINVAL);
	CHECK(strstr(punctual_last_error(), "PUNCTUAL_CEILING_DEADLINE"));
	mutex_attr.flags = 4;
	FAILS(punctual_mutex_create_with(&mutex_attr, &mutex), EINVAL);
	mutex_attr.flags = 0;
	mutex_attr.reserved = 1;
	FAILS(punctual_mutex_create_with(&mutex_attr, &mutex), EINVAL);
	mutex_attr.size = 1;
	FAILS(punctual_mutex_create_with(&mutex_attr, &mutex), EINVAL);
	CHECK(mutex == NULL);
	FAILS(punctual_cond_create(NULL), EFAULT);
	FAILS(punctual_sem_create(NULL, NULL), EFAULT);
	FAILS(punctual_barrier_create(1, NULL), EFAULT);
	FAILS(punctual_barrier_create(0, &barrier), EINVAL);
	attr.units = 2;
	attr.maximum = 1;
	FAILS(punctual_sem_create(&attr, &sem), EINVAL);
	attr.size = 1;
	FAILS(punctual_sem_create(&attr, &sem), EINVAL);
	CHECK(sem == NULL && barrier == NULL);

	for (size_t n = 0; n < sizeof(bad) / sizeof(*bad); n++) {
		locks.mutex = bad[n];
		locks.cond = bad[n];
		locks.sem = bad[n];
		locks.barrier = bad[n];
		none_is_there(&locks);
	}
	create(&locks, 0, 1, 1);
	/* Of other kinds. */
	other.mutex = (void *)locks.cond;
	other.cond = (void *)locks.sem;
	other.sem = (void *)locks.barrier;
	other.barrier = (void *)locks.mutex;
	none_is_there(&other);
	other = locks;
	destroy(&locks);
	none_is_there(&other);
	/* Their slots are used again. */
	create(&locks, 0, 1, 1);
	none_is_there(&other);
	destroy(&locks);
}

/* Any thread may do what waits for nothing. */
static void a_thread_that_is_no_task(void)
{
	struct locks locks;

	create(&locks, 0, 1, 1);
	every_call_refuses(&locks, EPERM);
	CHECK(strstr(punctual_last_error(), "no task"));
	FAILS(punctual_sem_trywait(locks.sem), EAGAIN);
	CHECK(punctual_sem_post(locks.sem) == 0);
	FAILS(punctual_sem_post(locks.sem), EOVERFLOW);
	CHECK(punctual_sem_trywait(locks.sem) == 0);
	CHECK(punctual_cond_signal(locks.cond) == 0 && punctual_cond_broadcast(locks.cond) == 0);
	destroy(&locks);
}

static void as_many_as_there_can_be(void)
{
	static struct punctual_mutex *mutexes[2048];
	size_t made = 0;

	while (punctual_mutex_create(&mutexes[made]) == 0)
		made++;
	FAILS(punctual_mutex_create(&mutexes[made]), ENOSPC);
	CHECK(made == 1024);
	while (made > 0)
		CHECK(punctual_mutex_destroy(mutexes[--made]) == 0);
}

/* The child has none of its parent's locks. */
static void a_child_of_fork(void)
{
	struct punctual_mutex *mutex = NULL;
	struct locks locks;
	int status;
	pid_t child;

	create(&locks, 0, 1, 1);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		none_is_there(&locks);
		FAILS(punctual_mutex_create(&mutex), EPERM);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	destroy(&locks);
}

int main(void)
{
	values_and_handles_that_are_refused();
	a_thread_that_is_no_task();
	as_many_as_there_can_be();
	a_child_of_fork();
	return 0;
}
