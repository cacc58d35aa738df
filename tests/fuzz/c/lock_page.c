/* SPDX-License-Identifier: MIT */
/*
 * The shared memory of locks between programs, into which a process of the same user writes what
 * the fuzzer chooses, before and while threads lock, wait and unlock: each call returns, and stays
 * within the memory. The robust list of each thread stays as the library made it: at the end it has
 * what it had at first.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <linux/futex.h>

#include <punctual.h>

#include "numbers.h"

#define PAGE 4096u
/* Where the word of a mutex is. */
#define WORD (PAGE - 16)
#define SOON 50000u

enum { MUTEX, COND, SEM, BARRIER, KINDS };
static const char *const names[KINDS] = { "page-m", "page-c", "page-s", "page-b" };

static struct punctual_shared_mutex *mutex;
static struct punctual_shared_cond *cond;
static struct punctual_shared_sem *sem;
static struct punctual_shared_barrier *barrier;
static unsigned char *pages[KINDS];

static unsigned char *map_page(const char *name)
{
	const char *folder = getenv("PUNCTUAL_SHM_DIR");
	char path[128];
	void *page;
	int fd;

	MUST(folder);
	snprintf(path, sizeof(path), "%s/lock/%s/memory", folder, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	MUST(fd >= 0);
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(page != MAP_FAILED);
	close(fd);
	return page;
}

/* The first entry of this thread's robust list. */
static void *first_robust(void)
{
	struct robust_list_head *head;
	size_t length;

	MUST(syscall(SYS_get_robust_list, 0, &head, &length) == 0);
	return head->list.next;
}

/*
 * One word: in the header and the state, anywhere, or that of the mutex, which may name this thread
 * or none. It names no other one that lives, for whose end a thread would then wait.
 */
static void scribble(struct stream *in)
{
	unsigned char *page = pages[stream_byte(in) % KINDS];
	uint32_t value = (uint32_t)stream_number(in);
	uint32_t at;

	switch (stream_byte(in) % 3) {
	case 0:
		at = stream_byte(in) & ~3u;
		break;
	case 1:
		at = (uint32_t)(stream_byte(in) * 256 + stream_byte(in)) % WORD & ~3u;
		break;
	default:
		at = WORD;
		if (stream_byte(in) % 2)
			value = value % 4 * (FUTEX_OWNER_DIED / 2) +
				(stream_byte(in) % 2 ? (uint32_t)syscall(SYS_gettid) : 0);
		break;
	}
	memcpy(page + at, &value, sizeof(value));
}

static int checked(int result)
{
	MUST(result > -4096);
	MUST(result >= 0 || punctual_last_error()[0] != '\0');
	return result;
}

/* Where the bytes of an input end, a thread beside has done enough. */
static void call(struct stream *in)
{
	uint64_t soon = punctual_clock() + SOON;

	switch (stream_byte(in) % 12) {
	case 0:
		checked(punctual_shared_mutex_lock_until(mutex, soon));
		break;
	case 1:
		checked(punctual_shared_mutex_trylock(mutex));
		break;
	case 2:
	case 3:
		checked(punctual_shared_mutex_unlock(mutex));
		break;
	case 4:
		checked(punctual_shared_mutex_consistent(mutex));
		break;
	case 5:
		/* Its mutex is locked again without a bound: not one that names a thread. */
		MUST(punctual_shared_cond_signal(cond) == 0);
		break;
	case 6:
		MUST(punctual_shared_cond_broadcast(cond) == 0);
		break;
	case 7:
		checked(punctual_shared_sem_wait_until(sem, soon));
		break;
	case 8:
		checked(punctual_shared_sem_trywait(sem));
		break;
	case 9:
		checked(punctual_shared_sem_post(sem));
		break;
	default:
		checked(punctual_shared_barrier_wait_until(barrier, soon));
		break;
	}
}

static void *beside(void *argument)
{
	struct stream in = *(struct stream *)argument;
	void *first = first_robust();

	for (int calls = 0; in.left > 0 && calls < 32; calls++)
		call(&in);
	punctual_shared_mutex_unlock(mutex);
	MUST(first_robust() == first);
	return NULL;
}

/* A program that comes later: opens what is there, if it can. */
static void open_again(void)
{
	struct punctual_shared_mutex *other;
	struct punctual_shared_sem *other_sem;

	if (checked(punctual_shared_mutex_open(names[MUTEX], &other)) == 0) {
		/* The same page, mapped twice. */
		if (checked(punctual_shared_mutex_trylock(other)) == 0)
			checked(punctual_shared_mutex_unlock(other));
		else
			punctual_shared_mutex_unlock(other);
		MUST(punctual_shared_mutex_close(other) == 0);
	}
	if (checked(punctual_shared_sem_open(names[SEM], &other_sem)) == 0) {
		checked(punctual_shared_sem_post(other_sem));
		MUST(punctual_shared_sem_close(other_sem) == 0);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct stream in = { data, size }, half = { data + size / 2, size / 2 };
	struct punctual_sem_attr attr = PUNCTUAL_SEM_ATTR_INIT;
	void *first = first_robust();
	pthread_t thread;
	int threads;

	attr.maximum = 3;
	MUST(punctual_shared_mutex_create(names[MUTEX], 0, &mutex) == 0);
	MUST(punctual_shared_cond_create(names[COND], 0, &cond) == 0);
	MUST(punctual_shared_sem_create(names[SEM], &attr, 0, &sem) == 0);
	MUST(punctual_shared_barrier_create(names[BARRIER], 2, 0, &barrier) == 0);
	for (int kind = 0; kind < KINDS; kind++)
		pages[kind] = map_page(names[kind]);
	threads = stream_byte(&in) % 4 == 0;
	if (threads)
		MUST(pthread_create(&thread, NULL, beside, &half) == 0);
	for (int calls = 0; in.left > 0 && calls < 48; calls++) {
		switch (stream_byte(&in) % 8) {
		case 0:
		case 1:
		case 2:
			scribble(&in);
			break;
		case 3:
			open_again();
			break;
		case 4:
			if (threads || punctual_shared_mutex_unlock(mutex) < 0)
				break;
			/* Nothing is written while it waits: it locks what it unlocked. */
			memset(pages[MUTEX] + WORD, 0, 4);
			MUST(punctual_shared_mutex_lock(mutex) <= 0);
			checked(punctual_shared_cond_wait_until(cond, mutex,
								punctual_clock() + SOON));
			break;
		default:
			call(&in);
			break;
		}
	}
	if (threads)
		MUST(pthread_join(thread, NULL) == 0);
	punctual_shared_mutex_unlock(mutex);
	MUST(punctual_shared_mutex_unlock(mutex) == -EPERM);
	MUST(first_robust() == first);
	MUST(punctual_shared_mutex_close(mutex) == 0);
	MUST(punctual_shared_cond_close(cond) == 0);
	MUST(punctual_shared_sem_close(sem) == 0);
	MUST(punctual_shared_barrier_close(barrier) == 0);
	for (int kind = 0; kind < KINDS; kind++)
		munmap(pages[kind], PAGE);
	return 0;
}
