/*
 * Loaded into QEMU (LD_PRELOAD), where the guest's course depends on this machine's time otherwise:
 * its main loop works only while the processor waits for an event, and the time of day is counted.
 *
 * With a counted clock and sleep=off, QEMU's main loop advances the guest's clock to the next timer
 * when the processor is halted. But the processor's thread sets "halted" some instructions before
 * it adds up what it has executed, and the main loop may look in between: it comes by a second time
 * after each advance, whenever this machine schedules it. Then it computes with a clock that is
 * some instructions old, and advances the guest's clock that much too far: 1 to 4 of 10 boots with
 * 40,000 short sleeps differed from the others by 5 to 11 ns, beside other work (docs/vm.md).
 *
 * So whenever the main loop has waited for events and takes QEMU's lock, it takes it again and
 * again until the processor's thread waits under that lock, and so has added up everything.
 *
 * QEMU's part in this: os_host_main_loop_wait (util/main-loop.c) calls ppoll and then locks the
 * lock of all devices; rr_wait_io_event (accel/tcg/tcg-accel-ops-rr.c) waits for a condition under
 * the same lock, in the one other thread that does.
 *
 * The time of day: QEMU keeps translations of the guest's addresses in a table, and makes it
 * smaller when few of its entries were in use for 100 ms by gettimeofday (tlb_mmu_resize_locked in
 * accel/tcg/cputlb.c). In a smaller table more pages displace each other, and a page that is looked
 * up again has the "accessed" bit set in the guest's page table. Linux clears such bits, does not
 * flush, and looks later: DAMON, which is at work in Debian's 6.18, then executes some instructions
 * more or fewer (docs/vm.md). So the time of day is the number of times that the table was flushed.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/*
 * So long a processor may execute before the main loop works beside it: after a guest's end, or its
 * reset, it need not wait again. What a main loop does then was due long ago, and it meets a
 * processor that is just halting once in a million times.
 */
enum { PATIENCE_MS = 200 };

/*
 * What a flush counts for: as long as one takes on a machine with nothing else to do (26,000 in
 * 11 s of the self-test's job), so the table's size is what it would be there. Were the time
 * constant, it would only grow, and each flush clears all of it.
 */
enum { FLUSH_US = 400 };

/* Of all devices; NULL until the main loop has taken it for the first time. */
static _Atomic(pthread_mutex_t *) big_lock;
/* Whether the processor's thread waits; changes under that lock only. */
static atomic_int waits;
/* The main loop waits for that; changes under that lock only. */
static bool wanted;
/* The main thread has polled, and has not locked since. */
static bool polled;

static bool is_main(void)
{
	static _Thread_local int is;

	if (!is)
		is = gettid() == getpid() ? 1 : -1;
	return is > 0;
}

/* QEMU's libraries are bound to the version of a name that has all its features, which dlsym need
 * not find. */
static void *real(const char *name, const char *version)
{
	void *found = dlvsym(RTLD_NEXT, name, version);

	return found ? found : dlsym(RTLD_NEXT, name);
}

#define REAL(result, name, version, ...)                             \
	static result (*_Atomic own)(__VA_ARGS__);                   \
	if (!own)                                                    \
		own = (result (*)(__VA_ARGS__))real(#name, version)

int ppoll(struct pollfd *files, nfds_t count, const struct timespec *time, const sigset_t *mask)
{
	REAL(int, ppoll, "GLIBC_2.4", struct pollfd *, nfds_t, const struct timespec *,
	     const sigset_t *);
	int ready = own(files, count, time, mask);

	if (is_main())
		polled = true;
	return ready;
}

int pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	REAL(int, pthread_cond_wait, "GLIBC_2.3.2", pthread_cond_t *, pthread_mutex_t *);

	if (lock != big_lock || is_main())
		return own(condition, lock);
	waits = 1;
	if (wanted)
		syscall(SYS_futex, &waits, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	int error = own(condition, lock);

	waits = 0;
	return error;
}

int pthread_mutex_lock(pthread_mutex_t *lock)
{
	REAL(int, pthread_mutex_lock, "GLIBC_2.2.5", pthread_mutex_t *);
	int error = own(lock);

	if (!polled || !is_main())
		return error;
	polled = false;
	big_lock = lock;
	if (error || waits)
		return error;
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_nsec += PATIENCE_MS * 1000000L;
	end.tv_sec += end.tv_nsec / 1000000000;
	end.tv_nsec %= 1000000000;
	wanted = true;
	/* A signal ends QEMU. */
	for (bool over = false; !error && !waits && !over;) {
		pthread_mutex_unlock(lock);
		over = syscall(SYS_futex, &waits, FUTEX_WAIT_BITSET_PRIVATE, 0, &end, NULL,
			       FUTEX_BITSET_MATCH_ANY) == -1 && errno != EAGAIN;
		error = own(lock);
	}
	wanted = false;
	return error;
}

/* Not by a library: GLib's allocator asks for the time too, in any thread. */
static bool called_by_qemu(const void *caller)
{
	Dl_info program, object;

	return dladdr((void *)getauxval(AT_ENTRY), &program) && dladdr(caller, &object) &&
	       object.dli_fbase == program.dli_fbase;
}

/*
 * The processor's thread calls it to flush, and only that advances it. The main thread does so
 * before the guest begins. No timer of QEMU's goes by it (-rtc clock=vm).
 */
int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
	static atomic_ulong flushes;

	(void)zone;
	if (!is_main() && called_by_qemu(__builtin_return_address(0)))
		flushes++;
	unsigned long us = flushes * FLUSH_US;

	*now = (struct timeval){ us / 1000000, us % 1000000 };
	return 0;
}
