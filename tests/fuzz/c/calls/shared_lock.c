/* SPDX-License-Identifier: MIT */
/* Calls on locks between programs. */
#include "calls.h"

static const char *name(struct stream *in)
{
	static const char *const names[] = { "a", "b", "c", NULL, "../a", "\xff" };

	return names[stream_below(in, 6)];
}

void call_shared_mutex(struct stream *in)
{
	struct punctual_shared_mutex *mutex = handle(in, held.shared_mutex);

	switch (stream_byte(in) % 8) {
	case 0:
		checked(punctual_shared_mutex_create(name(in), stream_below(in, 3),
						     room(in, held.shared_mutex)));
		break;
	case 1:
		checked(punctual_shared_mutex_open(name(in), room(in, held.shared_mutex)));
		break;
	case 2:
		checked(punctual_shared_mutex_remove(name(in)));
		break;
	case 3:
		checked(punctual_shared_mutex_close(mutex));
		break;
	case 4:
		checked(punctual_shared_mutex_lock_until(mutex, soon(in)));
		break;
	case 5:
		checked(punctual_shared_mutex_trylock(mutex));
		break;
	case 6:
		checked(punctual_shared_mutex_unlock(mutex));
		break;
	case 7:
		checked(punctual_shared_mutex_consistent(mutex));
		break;
	}
}

void call_shared_queue(struct stream *in)
{
	struct punctual_sem_attr attr = PUNCTUAL_SEM_ATTR_INIT;
	struct punctual_shared_cond *cond = handle(in, held.shared_cond);
	struct punctual_shared_sem *sem = handle(in, held.shared_sem);
	struct punctual_shared_barrier *barrier = handle(in, held.shared_barrier);

	switch (stream_byte(in) % 18) {
	case 0:
		checked(punctual_shared_cond_create(name(in), stream_below(in, 3),
						    room(in, held.shared_cond)));
		break;
	case 1:
		checked(punctual_shared_cond_open(name(in), room(in, held.shared_cond)));
		break;
	case 2:
		checked(punctual_shared_cond_remove(name(in)));
		break;
	case 3:
		checked(punctual_shared_cond_close(cond));
		break;
	case 4:
		checked(punctual_shared_cond_wait_until(cond, handle(in, held.shared_mutex),
							soon(in)));
		break;
	case 5:
		checked(punctual_shared_cond_signal(cond));
		break;
	case 6:
		checked(punctual_shared_cond_broadcast(cond));
		break;
	case 7:
		attr.units = (uint32_t)stream_number(in);
		attr.maximum = (uint32_t)stream_number(in);
		attr.size = stream_byte(in) % 8 ? sizeof(attr) : stream_below(in, sizeof(attr));
		checked(punctual_shared_sem_create(name(in), &attr, stream_below(in, 3),
						   room(in, held.shared_sem)));
		break;
	case 8:
		checked(punctual_shared_sem_open(name(in), room(in, held.shared_sem)));
		break;
	case 9:
		checked(punctual_shared_sem_remove(name(in)));
		break;
	case 10:
		checked(punctual_shared_sem_close(sem));
		break;
	case 11:
		checked(punctual_shared_sem_wait_until(sem, soon(in)));
		break;
	case 12:
		checked(punctual_shared_sem_trywait(sem));
		break;
	case 13:
		checked(punctual_shared_sem_post(sem));
		break;
	case 14:
		checked(punctual_shared_barrier_create(name(in), (uint32_t)stream_number(in),
						       stream_below(in, 3),
						       room(in, held.shared_barrier)));
		break;
	case 15:
		checked(punctual_shared_barrier_open(name(in), room(in, held.shared_barrier)));
		break;
	case 16:
		checked(punctual_shared_barrier_remove(name(in)));
		checked(punctual_shared_barrier_close(barrier));
		break;
	case 17:
		checked(punctual_shared_barrier_wait_until(barrier, soon(in)));
		break;
	}
}
