/* SPDX-License-Identifier: MIT */
/* Locks between programs: what they do, what they refuse, and what a killed program leaves. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

/* Of this test's own, so that no other one has the same. */
static char name[32];

static uint64_t soon(void)
{
	return punctual_clock() + MS;
}

static uint64_t liveness(void)
{
	return punctual_clock() + LIVENESS;
}

static void bad_handles(struct punctual_shared_mutex *good)
{
	int local;
	void *bad[] = { NULL, &local, (void *)1, (void *)-1, (void *)((uintptr_t)good + 7) };

	for (size_t n = 0; n < sizeof(bad) / sizeof(*bad); n++) {
		FAILS(punctual_shared_mutex_lock(bad[n]), EBADF);
		FAILS(punctual_shared_mutex_lock_until(bad[n], 0), EBADF);
		FAILS(punctual_shared_mutex_trylock(bad[n]), EBADF);
		FAILS(punctual_shared_mutex_unlock(bad[n]), EBADF);
		FAILS(punctual_shared_mutex_consistent(bad[n]), EBADF);
		FAILS(punctual_shared_mutex_close(bad[n]), EBADF);
		FAILS(punctual_shared_cond_wait(bad[n], good), EBADF);
		FAILS(punctual_shared_cond_wait_until(bad[n], good, 0), EBADF);
		FAILS(punctual_shared_cond_signal(bad[n]), EBADF);
		FAILS(punctual_shared_cond_broadcast(bad[n]), EBADF);
		FAILS(punctual_shared_cond_close(bad[n]), EBADF);
		FAILS(punctual_shared_sem_wait(bad[n]), EBADF);
		FAILS(punctual_shared_sem_wait_until(bad[n], 0), EBADF);
		FAILS(punctual_shared_sem_trywait(bad[n]), EBADF);
		FAILS(punctual_shared_sem_post(bad[n]), EBADF);
		FAILS(punctual_shared_sem_close(bad[n]), EBADF);
		FAILS(punctual_shared_barrier_wait(bad[n]), EBADF);
		FAILS(punctual_shared_barrier_wait_until(bad[n], 0), EBADF);
		FAILS(punctual_shared_barrier_close(bad[n]), EBADF);
	}
}

static void names_and_values(void)
{
	struct punctual_sem_attr attr = PUNCTUAL_SEM_ATTR_INIT;
	struct punctual_shared_mutex *mutex = NULL, *again = NULL;
	struct punctual_shared_barrier *barrier = NULL;
	struct punctual_shared_cond *cond = NULL;
	struct punctual_shared_sem *sem = NULL;

	FAILS(punctual_shared_mutex_create(NULL, 0, &mutex), EFAULT);
	FAILS(punctual_shared_mutex_create(name, 0, NULL), EFAULT);
	FAILS(punctual_shared_mutex_create("../x", 0, &mutex), EINVAL);
	FAILS(punctual_shared_mutex_create("\xff", 0, &mutex), EINVAL);
	FAILS(punctual_shared_mutex_create(name, 2, &mutex), EINVAL);
	FAILS(punctual_shared_cond_create(name, 2, &cond), EINVAL);
	FAILS(punctual_shared_barrier_create(name, 0, 0, &barrier), EINVAL);
	FAILS(punctual_shared_barrier_create(name, UINT32_MAX, 0, &barrier), EINVAL);
	FAILS(punctual_shared_barrier_create(name, 1, 2, &barrier), EINVAL);
	attr.units = 2;
	attr.maximum = 1;
	FAILS(punctual_shared_sem_create(name, &attr, 0, &sem), EINVAL);
	attr.maximum = UINT32_MAX;
	FAILS(punctual_shared_sem_create(name, &attr, 0, &sem), EINVAL);
	attr.size = 1;
	FAILS(punctual_shared_sem_create(name, &attr, 0, &sem), EINVAL);
	FAILS(punctual_shared_mutex_open(name, &mutex), ENOENT);
	FAILS(punctual_shared_mutex_remove(name), ENOENT);
	FAILS(punctual_shared_mutex_remove(NULL), EFAULT);
	CHECK(!mutex && !barrier && !cond && !sem);

	CHECK(punctual_shared_mutex_create(name, 0, &mutex) == 0);
	FAILS(punctual_shared_mutex_create(name, 0, &again), EEXIST);
	FAILS(punctual_shared_cond_create(name, 0, &cond), EEXIST);
	FAILS(punctual_shared_cond_open(name, &cond), EINVAL);
	FAILS(punctual_shared_sem_open(name, &sem), EINVAL);
	FAILS(punctual_shared_barrier_open(name, &barrier), EINVAL);
	FAILS(punctual_shared_barrier_remove(name), EINVAL);
	CHECK(punctual_shared_mutex_open(name, &again) == 0);
	bad_handles(mutex);
	FAILS(punctual_shared_sem_post((void *)mutex), EBADF);
	CHECK(punctual_shared_mutex_close(mutex) == 0);
	FAILS(punctual_shared_mutex_lock(mutex), EBADF);
	/* Its slot is used again. */
	CHECK(punctual_shared_mutex_open(name, &mutex) == 0);
	CHECK(punctual_shared_mutex_close(mutex) == 0);
	CHECK(punctual_shared_mutex_close(again) == 0);
	/* It lived as long as it was open. */
	FAILS(punctual_shared_mutex_open(name, &mutex), ENOENT);
	CHECK(punctual_shared_mutex_create(name, PUNCTUAL_LOCK_PERSISTENT, &mutex) == 0);
	CHECK(punctual_shared_mutex_close(mutex) == 0);
	CHECK(punctual_shared_mutex_open(name, &mutex) == 0);
	CHECK(punctual_shared_mutex_remove(name) == 0);
	FAILS(punctual_shared_mutex_open(name, &again), ENOENT);
	CHECK(punctual_shared_mutex_close(mutex) == 0);
}

static void *contends(void *mutex)
{
	FAILS(punctual_shared_mutex_trylock(mutex), EBUSY);
	FAILS(punctual_shared_mutex_lock_until(mutex, soon()), ETIMEDOUT);
	FAILS(punctual_shared_mutex_unlock(mutex), EPERM);
	FAILS(punctual_shared_mutex_consistent(mutex), EPERM);
	FAILS(punctual_shared_mutex_close(mutex), EBUSY);
	return NULL;
}

static void *ends_with_it(void *mutex)
{
	CHECK(punctual_shared_mutex_lock(mutex) == 0);
	return NULL;
}

static void a_mutex(void)
{
	struct punctual_shared_mutex *mutex, *again;
	pthread_t thread;

	CHECK(punctual_shared_mutex_create(name, 0, &mutex) == 0);
	CHECK(punctual_shared_mutex_open(name, &again) == 0);
	CHECK(punctual_shared_mutex_lock(mutex) == 0);
	FAILS(punctual_shared_mutex_lock(mutex), EDEADLK);
	FAILS(punctual_shared_mutex_lock(again), EDEADLK);
	FAILS(punctual_shared_mutex_trylock(again), EBUSY);
	FAILS(punctual_shared_mutex_consistent(mutex), EINVAL);
	CHECK(pthread_create(&thread, NULL, contends, mutex) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(punctual_shared_mutex_unlock(mutex) == 0);
	FAILS(punctual_shared_mutex_unlock(mutex), EPERM);

	CHECK(pthread_create(&thread, NULL, ends_with_it, again) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	for (int n = 0; n < 2; n++) {
		FAILS(punctual_shared_mutex_lock_until(mutex, liveness()), EOWNERDEAD);
		CHECK(strstr(punctual_last_error(), "punctual_shared_mutex_consistent"));
		CHECK(punctual_shared_mutex_unlock(mutex) == 0);
	}
	FAILS(punctual_shared_mutex_trylock(mutex), EOWNERDEAD);
	CHECK(punctual_shared_mutex_consistent(mutex) == 0);
	CHECK(punctual_shared_mutex_unlock(mutex) == 0);
	CHECK(punctual_shared_mutex_trylock(mutex) == 0 && punctual_shared_mutex_unlock(mutex) == 0);
	CHECK(punctual_shared_mutex_close(mutex) == 0 && punctual_shared_mutex_close(again) == 0);
}

struct condition {
	struct punctual_shared_mutex *mutex;
	struct punctual_shared_cond *cond;
	int stage;
};

static void *answers(void *argument)
{
	struct condition *condition = argument;

	CHECK(punctual_shared_mutex_lock(condition->mutex) == 0);
	while (condition->stage != 1)
		CHECK(punctual_shared_cond_wait_until(condition->cond, condition->mutex,
						      liveness()) == 0);
	condition->stage = 2;
	CHECK(punctual_shared_cond_broadcast(condition->cond) == 0);
	CHECK(punctual_shared_mutex_unlock(condition->mutex) == 0);
	return NULL;
}

static void a_condition(void)
{
	struct condition condition = { NULL, NULL, 0 };
	char other[48];
	pthread_t thread;

	snprintf(other, sizeof(other), "%s.cond", name);
	CHECK(punctual_shared_mutex_create(name, 0, &condition.mutex) == 0);
	CHECK(punctual_shared_cond_create(other, 0, &condition.cond) == 0);
	FAILS(punctual_shared_cond_wait(condition.cond, condition.mutex), EPERM);
	FAILS(punctual_shared_cond_wait(condition.cond, NULL), EBADF);
	CHECK(pthread_create(&thread, NULL, answers, &condition) == 0);
	CHECK(punctual_shared_mutex_lock(condition.mutex) == 0);
	condition.stage = 1;
	CHECK(punctual_shared_cond_signal(condition.cond) == 0);
	while (condition.stage != 2)
		CHECK(punctual_shared_cond_wait(condition.cond, condition.mutex) == 0);
	FAILS(punctual_shared_cond_wait_until(condition.cond, condition.mutex, soon()), ETIMEDOUT);
	CHECK(punctual_shared_mutex_unlock(condition.mutex) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(punctual_shared_cond_close(condition.cond) == 0);
	CHECK(punctual_shared_mutex_close(condition.mutex) == 0);
}

static void *comes(void *barrier)
{
	CHECK(punctual_shared_barrier_wait(barrier) >= 0);
	return NULL;
}

static void a_semaphore_and_a_barrier(void)
{
	struct punctual_sem_attr attr = PUNCTUAL_SEM_ATTR_INIT;
	struct punctual_shared_barrier *barrier;
	struct punctual_shared_sem *sem;
	pthread_t thread;

	attr.units = attr.maximum = 1;
	CHECK(punctual_shared_sem_create(name, &attr, 0, &sem) == 0);
	CHECK(punctual_shared_sem_wait(sem) == 0);
	FAILS(punctual_shared_sem_trywait(sem), EAGAIN);
	FAILS(punctual_shared_sem_wait_until(sem, soon()), ETIMEDOUT);
	CHECK(punctual_shared_sem_post(sem) == 0);
	FAILS(punctual_shared_sem_post(sem), EOVERFLOW);
	CHECK(punctual_shared_sem_close(sem) == 0);
	CHECK(punctual_shared_sem_create(name, NULL, 0, &sem) == 0);
	FAILS(punctual_shared_sem_trywait(sem), EAGAIN);
	CHECK(punctual_shared_sem_post(sem) == 0 && punctual_shared_sem_wait(sem) == 0);
	CHECK(punctual_shared_sem_close(sem) == 0);

	CHECK(punctual_shared_barrier_create(name, 1, 0, &barrier) == 0);
	CHECK(punctual_shared_barrier_wait(barrier) == 1);
	CHECK(punctual_shared_barrier_close(barrier) == 0);
	CHECK(punctual_shared_barrier_create(name, 2, 0, &barrier) == 0);
	FAILS(punctual_shared_barrier_wait_until(barrier, soon()), ETIMEDOUT);
	CHECK(pthread_create(&thread, NULL, comes, barrier) == 0);
	CHECK(punctual_shared_barrier_wait_until(barrier, liveness()) >= 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(punctual_shared_barrier_close(barrier) == 0);
}

/* A child has none of its parent's handles; it opens its own after exec. */
static void a_child_of_fork(void)
{
	struct punctual_shared_mutex *mutex;
	int status;
	pid_t child;

	CHECK(punctual_shared_mutex_create(name, 0, &mutex) == 0);
	CHECK(punctual_shared_mutex_lock(mutex) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		FAILS(punctual_shared_mutex_unlock(mutex), EBADF);
		FAILS(punctual_shared_mutex_open(name, &mutex), EPERM);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(punctual_shared_mutex_unlock(mutex) == 0);
	CHECK(punctual_shared_mutex_close(mutex) == 0);
}

/* Another program: locks, says so, and waits to be killed. */
static int holds(void)
{
	struct punctual_shared_mutex *mutex;

	CHECK(punctual_shared_mutex_open(name, &mutex) == 0);
	CHECK(punctual_shared_mutex_lock(mutex) == 0);
	CHECK(write(STDOUT_FILENO, "x", 1) == 1);
	sleep_ms(60000);
	return 0;
}

static void a_program_that_is_killed(const char *program)
{
	struct punctual_shared_mutex *mutex;
	int ends[2];
	char byte;
	pid_t child;

	CHECK(punctual_shared_mutex_create(name, 0, &mutex) == 0);
	CHECK(pipe(ends) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		execl(program, program, name, (char *)NULL);
		_exit(1);
	}
	close(ends[1]);
	CHECK(read(ends[0], &byte, 1) == 1);
	close(ends[0]);
	FAILS(punctual_shared_mutex_trylock(mutex), EBUSY);
	CHECK(kill(child, SIGKILL) == 0);
	FAILS(punctual_shared_mutex_lock_until(mutex, liveness()), EOWNERDEAD);
	CHECK(punctual_shared_mutex_consistent(mutex) == 0);
	CHECK(punctual_shared_mutex_unlock(mutex) == 0);
	CHECK(waitpid(child, NULL, 0) == child);
	CHECK(punctual_shared_mutex_close(mutex) == 0);
}

int main(int argc, char **argv)
{
	if (argc > 1) {
		snprintf(name, sizeof(name), "%s", argv[1]);
		return holds();
	}
	snprintf(name, sizeof(name), "test-%d", getpid());
	names_and_values();
	a_mutex();
	a_condition();
	a_semaphore_and_a_barrier();
	a_program_that_is_killed(argv[0]);
	a_child_of_fork();
	return 0;
}
