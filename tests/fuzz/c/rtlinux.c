/* SPDX-License-Identifier: MIT */
/*
 * The calls of librtlinux, in any order, with right and wrong arguments: each returns what its
 * header says, whatever number it gets.
 *
 * Threads are ordinary ones here: tasks of a dispatcher are what `calls` is for. A thread wakes all
 * others all the time, so that no wait is without an end.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>

#include <mbuff.h>
#include <rtl.h>
#include <rtl_fifo.h>
#include <rtlinux.h>

#include "numbers.h"

#define SLOTS 6

static struct {
	pthread_t thread[SLOTS];
	pthread_attr_t attr[SLOTS];
	RT_TASK task[SLOTS];
	int pid[SLOTS];
	bool is_started[SLOTS];
	void *buffer[SLOTS];
} held;

static const char *const buffers[] = { "a", "b/c", "", NULL, "0123456789012345678901234567890123" };

/* 0, or an error number. */
static void refused(int result)
{
	MUST(result >= 0 && result < 4096);
}

/* 0 or more, or a negative error number. */
static int negative(int result)
{
	MUST(result > -4096);
	return result;
}

/* 0 or more, or -1 with an error number. */
static int with_errno(int result)
{
	MUST(result >= 0 || (result == -1 && errno > 0 && errno < 4096));
	return result;
}

static int number(struct stream *in)
{
	static const int bounds[] = { 0,    1,       -1,      2,       7,      63, 64,
		4096, 1000000, 1000001, INT_MIN, INT_MAX };
	uint32_t choice = stream_below(in, sizeof(bounds) / sizeof(*bounds) + 2);

	return choice < sizeof(bounds) / sizeof(*bounds) ? bounds[choice] : (int)stream_number(in);
}

static unsigned int fifo(struct stream *in)
{
	return stream_byte(in) % 8 ? stream_below(in, 3) : (unsigned int)number(in);
}

/* A thread of these, or no thread. */
static pthread_t thread(struct stream *in)
{
	uint8_t choice = stream_byte(in);

	if (choice < 200)
		return held.thread[choice % SLOTS];
	return choice < 230 ? pthread_self() : (pthread_t)stream_number(in);
}

/* A time that may be waited for. */
static long long soon(struct stream *in)
{
	long long time = (long long)stream_number(in), latest = gethrtime() + 1000000;

	return time < latest ? time : latest;
}

static void *waits(void *argument)
{
	for (size_t n = (size_t)argument; ; n++)
		switch (n % 4) {
		case 0:
			pthread_wait_np();
			break;
		case 1:
			pthread_suspend_np(pthread_self());
			break;
		case 2:
			usleep(1000);
			break;
		case 3:
			pthread_make_periodic_np(pthread_self(), gethrtime(), 100000);
			break;
		}
	return NULL;
}

static void function(int data)
{
	waits((void *)(size_t)data);
}

static int handler(unsigned int number)
{
	char buffer[16];

	MUST(number < RTF_NO);
	rtf_get(number, buffer, sizeof(buffer));
	return 0;
}

static void *wakes_all(void *argument)
{
	pthread_t main_thread = *(pthread_t *)argument;

	for (;;) {
		struct timespec time = { 0, 500000 };

		nanosleep(&time, NULL);
		pthread_wakeup_np(main_thread);
	}
	return NULL;
}

static void call_thread(struct stream *in)
{
	struct sched_param parameters = { .sched_priority = number(in) };
	uint32_t slot = stream_below(in, SLOTS);
	pthread_attr_t *attr = stream_byte(in) % 4 ? &held.attr[slot] : NULL;
	pthread_t to;
	int value;

	switch (stream_below(in, 12)) {
	case 0:
		/* One that is not held any more goes on until the end. */
		if (!held.thread[slot])
			refused(pthread_create(&held.thread[slot], attr,
					       stream_byte(in) % 8 ? waits : NULL,
					       (void *)(size_t)stream_byte(in)));
		break;
	case 1:
		if (pthread_delete_np(held.thread[slot]) == 0)
			held.thread[slot] = 0;
		break;
	case 2:
		refused(pthread_cancel(held.thread[slot]));
		break;
	case 3:
		/* Of one that was cancelled: no other one ends. */
		if (pthread_cancel(held.thread[slot]) == 0)
			refused(pthread_join(held.thread[slot], NULL));
		held.thread[slot] = 0;
		break;
	case 4:
		if (pthread_cancel(held.thread[slot]) == 0)
			refused(pthread_detach(held.thread[slot]));
		held.thread[slot] = 0;
		break;
	case 5:
		to = thread(in);
		value = stream_below(in, 2) ? RTL_SIGNAL_NULL : number(in);
		/* The fuzzer's own thread, which is a task by now perhaps, must not end. */
		if (value != RTL_SIGNAL_CANCEL || !pthread_equal(to, pthread_self()))
			refused(pthread_kill(to, value));
		break;
	case 6:
		refused(pthread_setschedparam(thread(in), stream_below(in, 4), &parameters));
		break;
	case 7:
		refused(pthread_getschedparam(thread(in), &value, &parameters));
		break;
	case 8:
		refused(pthread_setfp_np(thread(in), 1));
		break;
	case 9:
		refused(pthread_make_periodic_np(thread(in), (hrtime_t)stream_number(in),
						 (hrtime_t)stream_number(in)));
		break;
	case 10:
		refused(pthread_suspend_np(held.thread[slot]));
		break;
	case 11:
		refused(pthread_wakeup_np(thread(in)));
		break;
	}
}

static void call_attr(struct stream *in)
{
	pthread_attr_t *attr = stream_byte(in) % 8 ? &held.attr[stream_below(in, SLOTS)] : NULL;
	struct sched_param parameters = { .sched_priority = number(in) };
	size_t size = (size_t)stream_number(in);
	int value = number(in);

	switch (stream_below(in, 14)) {
	case 0:
	case 1:
		refused(pthread_attr_init(attr));
		break;
	case 2:
		refused(pthread_attr_destroy(attr));
		break;
	case 3:
		refused(pthread_attr_setschedparam(attr, &parameters));
		break;
	case 4:
		refused(pthread_attr_getschedparam(attr, stream_below(in, 2) ? &parameters : NULL));
		break;
	case 5:
		/* What a thread may have. */
		refused(pthread_attr_setstacksize(attr, size % (1 << 20)));
		break;
	case 6:
		refused(pthread_attr_getstacksize(attr, &size));
		break;
	case 7:
		refused(pthread_attr_setdetachstate(attr, value));
		break;
	case 8:
		refused(pthread_attr_getdetachstate(attr, &value));
		break;
	case 9:
		refused(pthread_attr_setcpu_np(attr, value));
		break;
	case 10:
		refused(pthread_attr_getcpu_np(attr, &value));
		break;
	case 11:
		refused(pthread_attr_setschedpolicy(attr, value));
		refused(pthread_attr_getschedpolicy(attr, &value));
		break;
	case 12:
		refused(pthread_attr_setfp_np(attr, value));
		break;
	case 13:
		refused(pthread_attr_getfp_np(attr, &value));
		break;
	}
}

static void call_fifo(struct stream *in)
{
	static char buffer[1 << 16];
	void *memory = stream_byte(in) % 16 ? buffer : NULL;
	unsigned int fifo_number = fifo(in);
	int count = number(in), result;

	/* What the buffer has, or what is refused. */
	if (count > (int)sizeof(buffer))
		count %= (int)sizeof(buffer);
	memset(buffer, 0x5a, 64);
	switch (stream_below(in, 14)) {
	case 0:
		with_errno(RTfifo_create(fifo_number, count));
		break;
	case 1:
		with_errno(RTfifo_destroy(fifo_number));
		break;
	case 2:
		result = with_errno(RTfifo_put(fifo_number, (const char *)memory, count));
		MUST(result == -1 || result == count);
		break;
	case 3:
		result = with_errno(RTfifo_get(fifo_number, (char *)memory, count));
		MUST(result == -1 || result == count);
		/* All or nothing, and nothing behind it. */
		for (int n = result < 0 ? 0 : result; memory && n < 64; n++)
			MUST(buffer[n] == 0x5a);
		break;
	case 4:
	case 5:
		negative(rtf_create(fifo_number, count));
		break;
	case 6:
		negative(rtf_destroy(fifo_number));
		break;
	case 7:
	case 8:
		result = negative(rtf_put(fifo_number, memory, count));
		MUST(result < 0 || result == count);
		break;
	case 9:
		result = negative(rtf_get(fifo_number, memory, count));
		MUST(result < 0 || result <= count);
		break;
	case 10:
		negative(rtf_flush(fifo_number));
		break;
	case 11:
		negative(rtf_isempty(fifo_number));
		break;
	case 12:
		negative(rtf_create_handler(fifo_number, stream_byte(in) % 8 ? handler : NULL));
		break;
	case 13:
		/* It calls itself as long as there is something. */
		negative(rtf_create_rt_handler(fifo_number, stream_byte(in) % 8 ? handler : NULL));
		break;
	}
}

static void call_paper(struct stream *in)
{
	RTime time = soon(in), period = (RTime)stream_number(in);
	RTime *start = stream_byte(in) % 8 ? &time : NULL;

	with_errno(RTget_time(stream_byte(in) % 8 ? &time : NULL));
	switch (stream_below(in, 3)) {
	case 0:
		with_errno(RTset_params(start, stream_byte(in) % 4 ? &period : NULL, number(in)));
		break;
	case 1:
		with_errno(RTwait_start(start, stream_byte(in) % 4 ? &period : NULL, number(in)));
		break;
	case 2:
		/* It is woken. */
		with_errno(RTwait_period());
		break;
	}
}

static void call_program(struct stream *in)
{
	static const char *const files[] = { "/bin/true", "/bin/true", "/", "", NULL, "no program" };
	uint32_t slot = stream_below(in, SLOTS);
	int pid = stream_byte(in) % 8 ? held.pid[slot] : number(in), status;

	switch (stream_below(in, 4)) {
	case 0:
		if (held.pid[slot] <= 0) {
			held.pid[slot] = with_errno(RTload(files[stream_below(in, 6)]));
			held.is_started[slot] = false;
		}
		break;
	case 1:
		if (with_errno(RTrun(pid)) == 0 && pid == held.pid[slot])
			held.is_started[slot] = true;
		break;
	case 2:
		with_errno(RTkill(pid));
		break;
	case 3:
		/* One that is held has no end. */
		if (pid == held.pid[slot] && !held.is_started[slot])
			RTkill(pid);
		for (int n = 0; n < SLOTS; n++)
			if (pid == held.pid[n] && !held.is_started[n])
				RTkill(pid);
		with_errno(RTwait(pid, stream_below(in, 2) ? &status : NULL));
		break;
	}
}

static void call_task(struct stream *in)
{
	RT_TASK *task = stream_byte(in) % 8 ? &held.task[stream_below(in, SLOTS)] : NULL;

	switch (stream_below(in, 6)) {
	case 0:
		/* The memory of one that was not deleted is in use. */
		if (!task || task->magic == 0)
			negative(rt_task_init(task, stream_byte(in) % 8 ? function : NULL,
					      number(in), number(in), number(in)));
		break;
	case 1:
		negative(rt_task_delete(task));
		break;
	case 2:
		negative(rt_task_make_periodic(task, (RTIME)stream_number(in),
					       (RTIME)stream_number(in)));
		break;
	case 3:
		negative(rt_task_suspend(task));
		break;
	case 4:
		negative(rt_task_wakeup(task));
		break;
	case 5:
		/* Of a thread that is no task, or is woken. */
		negative(rt_task_wait());
		break;
	}
}

static void call_rest(struct stream *in)
{
	uint32_t slot = stream_below(in, SLOTS);
	const char *name = buffers[slot % (sizeof(buffers) / sizeof(*buffers))];
	struct timespec time = { stream_below(in, 2), (long)stream_number(in) };
	long long until;
	int size = number(in);

	switch (stream_below(in, 10)) {
	case 0:
		if (size < 1 << 20 && !held.buffer[slot])
			held.buffer[slot] = mbuff_alloc(name, size);
		break;
	case 1:
		if (!held.buffer[slot])
			held.buffer[slot] = mbuff_mmap(name, size);
		break;
	case 2:
		mbuff_free(name, held.buffer[slot]);
		held.buffer[slot] = NULL;
		break;
	case 3:
		negative(mbuff_size(name));
		break;
	case 4:
		refused(rtl_setclockmode(number(in), number(in), (hrtime_t)stream_number(in)));
		break;
	case 5:
		clock_gethrtime(number(in));
		rtl_cpu_exists(number(in));
		break;
	case 6:
		/* This thread is woken. */
		refused(clock_nanosleep(number(in), stream_below(in, 3), &time, &time));
		break;
	case 7:
		rtl_end_critical_np(stream_below(in, 2) ? rtl_begin_critical_np() : 0);
		break;
	case 8:
		until = soon(in);
		rtl_delay(until < 0 ? (long)until : (long)(until - gethrtime()));
		break;
	case 9:
		refused(pthread_wait_np());
		break;
	}
}

static void release_all(void)
{
	for (int n = 0; n < SLOTS; n++) {
		if (held.thread[n])
			pthread_delete_np(held.thread[n]);
		rt_task_delete(&held.task[n]);
		if (held.pid[n] > 0)
			RTkill(held.pid[n]);
		if (held.buffer[n])
			mbuff_free(buffers[n % (sizeof(buffers) / sizeof(*buffers))], held.buffer[n]);
		rtf_destroy((unsigned int)n);
	}
	memset(&held, 0, sizeof(held));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static pthread_t self, waker;
	static RTime none;

	(void)argc;
	(void)argv;
	/* scripts/fuzz sets it: named objects of others stay out of it. */
	MUST(getenv("PUNCTUAL_SHM_DIR"));
	setenv("PUNCTUAL_RTLINUX_HOST", "none", 1);
	/* This thread takes part, so that it can be woken. */
	self = pthread_self();
	MUST(RTset_params(NULL, &none, 1) == 0);
	MUST(pthread_create(&waker, NULL, wakes_all, &self) == 0);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const calls[])(struct stream *) = { call_thread, call_attr, call_fifo,
							  call_fifo, call_paper, call_task,
							  call_rest };
	struct stream in = { data, size };

	for (int n = 0; in.left > 0 && n < 64; n++) {
		uint32_t choice = stream_below(&in, 64);

		/* Seldom: a process takes some ms. */
		if (choice == 63)
			call_program(&in);
		else
			calls[choice % (sizeof(calls) / sizeof(*calls))](&in);
	}
	release_all();
	return 0;
}
