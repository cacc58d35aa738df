/* SPDX-License-Identifier: MIT */
/* Threads are made, joined, detached, cancelled and deleted; what is no thread is refused. */
#include "check.h"

#include <rtl.h>

#define THREADS 256

static volatile int cleaned, begun;
static sem_t gate;

static void *returns(void *argument)
{
	begun++;
	return argument;
}

static void clean(void *argument)
{
	(void)argument;
	cleaned++;
}

enum wait { PERIOD, SUSPENSION, SLEEP, SEMAPHORE };

static void *waits(void *argument)
{
	pthread_cleanup_push(clean, NULL);
	begun++;
	for (;;)
		switch (*(enum wait *)argument) {
		case PERIOD:
			pthread_wait_np();
			break;
		case SUSPENSION:
			pthread_suspend_np(pthread_self());
			break;
		case SLEEP:
			usleep(1000000000);
			break;
		case SEMAPHORE:
			sem_wait(&gate);
			break;
		}
	pthread_cleanup_pop(0);
	return NULL;
}

static pthread_t create(const pthread_attr_t *attr, void *(*function)(void *), void *argument)
{
	pthread_t thread;
	int before = begun;

	RETURNS(pthread_create(&thread, attr, function, argument), 0);
	UNTIL(begun > before);
	return thread;
}

static void are_joined_once(void)
{
	pthread_t thread = create(NULL, returns, &gate);
	void *value;

	RETURNS(pthread_join(thread, &value), 0);
	CHECK(value == &gate);
	RETURNS(pthread_join(thread, &value), ESRCH);
	RETURNS(pthread_detach(thread), ESRCH);
	RETURNS(pthread_cancel(thread), ESRCH);
	RETURNS(pthread_delete_np(thread), ESRCH);
	RETURNS(pthread_join(pthread_self(), NULL), ESRCH);
	RETURNS(pthread_join(0, NULL), ESRCH);
}

static void *joins_itself(void *argument)
{
	RETURNS(pthread_join(pthread_self(), NULL), EDEADLK);
	return argument;
}

static void are_cancelled_in_every_wait(void)
{
	for (int n = 0; n < 4; n++) {
		enum wait wait = (enum wait)n;
		pthread_t thread = create(NULL, waits, &wait);
		int before = cleaned;
		void *value;

		RETURNS(pthread_cancel(thread), 0);
		RETURNS(pthread_join(thread, &value), 0);
		CHECK(value == PTHREAD_CANCELED && cleaned == before + 1);
		thread = create(NULL, waits, &wait);
		RETURNS(pthread_delete_np(thread), 0);
		CHECK(cleaned == before + 2);
		thread = create(NULL, waits, &wait);
		RETURNS(pthread_kill(thread, RTL_SIGNAL_CANCEL), 0);
		RETURNS(pthread_join(thread, NULL), 0);
		CHECK(cleaned == before + 3);
	}
}

static volatile bool may_be_cancelled, has_waited;

static void *cannot_be_cancelled(void *argument)
{
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	begun++;
	/* The cancellation ends one wait, and not the thread. */
	pthread_suspend_np(pthread_self());
	has_waited = true;
	while (!may_be_cancelled)
		usleep(1000);
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	usleep(1000);
	CHECK(!"it is cancelled before it sleeps");
	return argument;
}

static void are_cancelled_when_they_can_be(void)
{
	pthread_t thread = create(NULL, cannot_be_cancelled, NULL);
	int before;

	RETURNS(pthread_cancel(thread), 0);
	UNTIL(has_waited);
	may_be_cancelled = true;
	RETURNS(pthread_join(thread, NULL), 0);
	RETURNS(pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &before), ENOTSUP);
	RETURNS(pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &before), 0);
}

static void *deletes_itself(void *argument)
{
	begun++;
	pthread_delete_np(pthread_self());
	return argument;
}

static void are_detached(void)
{
	enum wait wait = SUSPENSION;
	pthread_attr_t attr;
	pthread_t thread;
	void *value;

	pthread_attr_init(&attr);
	RETURNS(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED), 0);
	thread = create(&attr, waits, &wait);
	RETURNS(pthread_join(thread, NULL), EINVAL);
	RETURNS(pthread_detach(thread), EINVAL);
	RETURNS(pthread_delete_np(thread), 0);
	UNTIL(pthread_kill(thread, RTL_SIGNAL_NULL) == ESRCH);
	thread = create(NULL, waits, &wait);
	RETURNS(pthread_detach(thread), 0);
	RETURNS(pthread_cancel(thread), 0);
	UNTIL(pthread_kill(thread, RTL_SIGNAL_NULL) == ESRCH);
	thread = create(NULL, deletes_itself, NULL);
	RETURNS(pthread_join(thread, &value), 0);
	CHECK(value == PTHREAD_CANCELED);
	/* One that has ended can be deleted. */
	thread = create(NULL, returns, NULL);
	UNTIL(pthread_cancel(thread) == ESRCH);
	RETURNS(pthread_delete_np(thread), 0);
	RETURNS(pthread_delete_np(thread), ESRCH);
}

static void have_priorities(void)
{
	struct sched_param parameters = { .sched_priority = 5 };
	enum wait wait = SUSPENSION;
	pthread_t thread = create(NULL, waits, &wait);
	int policy;

	RETURNS(pthread_setschedparam(thread, SCHED_FIFO, &parameters), 0);
	parameters.sched_priority = 0;
	RETURNS(pthread_getschedparam(thread, &policy, &parameters), 0);
	CHECK(policy == SCHED_FIFO && parameters.sched_priority == 5);
	RETURNS(pthread_getschedparam(thread, NULL, &parameters), EINVAL);
	RETURNS(pthread_getschedparam(thread, &policy, NULL), EINVAL);
	RETURNS(pthread_setschedparam(thread, SCHED_FIFO, NULL), EINVAL);
	RETURNS(pthread_setschedparam(thread, 77, &parameters), EINVAL);
	parameters.sched_priority = 1000001;
	RETURNS(pthread_setschedparam(thread, SCHED_FIFO, &parameters), EINVAL);
	parameters.sched_priority = 1;
	RETURNS(pthread_setfp_np(thread, 1), 0);
	RETURNS(pthread_setfp_np(pthread_self(), 1), 0);
	RETURNS(pthread_delete_np(thread), 0);
	RETURNS(pthread_setfp_np(thread, 1), ESRCH);
	RETURNS(pthread_setschedparam(thread, SCHED_FIFO, &parameters), ESRCH);
	RETURNS(pthread_getschedparam(thread, &policy, &parameters), ESRCH);
	/* This thread is none of them. */
	RETURNS(pthread_setschedparam(pthread_self(), SCHED_FIFO, &parameters), ESRCH);
}

static void are_no_more_than_there_may_be(void)
{
	static pthread_t threads[THREADS];
	enum wait wait = SUSPENSION;
	pthread_t thread;

	for (int n = 0; n < THREADS; n++)
		RETURNS(pthread_create(&threads[n], NULL, waits, &wait), 0);
	RETURNS(pthread_create(&thread, NULL, waits, &wait), EAGAIN);
	RETURNS(pthread_delete_np(threads[7]), 0);
	RETURNS(pthread_create(&threads[7], NULL, waits, &wait), 0);
	for (int n = 0; n < THREADS; n++)
		RETURNS(pthread_cancel(threads[n]), 0);
	for (int n = 0; n < THREADS; n++)
		RETURNS(pthread_join(threads[n], NULL), 0);
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	/* Ordinary threads: classes are for hard.c. */
	setenv("PUNCTUAL_RTLINUX_HOST", "none", 1);
	CHECK(sem_init(&gate, 0, 0) == 0);
	RETURNS(pthread_create(NULL, NULL, returns, NULL), EINVAL);
	RETURNS(pthread_create(&thread, NULL, NULL, NULL), EINVAL);
	pthread_attr_init(&attr);
	pthread_attr_destroy(&attr);
	RETURNS(pthread_create(&thread, &attr, returns, NULL), EINVAL);
	are_joined_once();
	RETURNS(pthread_create(&thread, NULL, joins_itself, NULL), 0);
	RETURNS(pthread_join(thread, NULL), 0);
	are_cancelled_in_every_wait();
	are_cancelled_when_they_can_be();
	are_detached();
	have_priorities();
	are_no_more_than_there_may_be();
	return 0;
}
