/* SPDX-License-Identifier: MIT */
/* Calls on locks. */
#include "calls.h"

void call_mutex(struct stream *in)
{
	struct punctual_mutex_attr attr = PUNCTUAL_MUTEX_ATTR_INIT;
	struct punctual_mutex *mutex = handle(in, held.mutex);

	switch (stream_byte(in) % 8) {
	case 0:
		checked(punctual_mutex_create(room(in, held.mutex)));
		break;
	case 1:
		checked(punctual_mutex_destroy(mutex));
		break;
	case 2:
		checked(punctual_mutex_lock(mutex));
		break;
	case 3:
		checked(punctual_mutex_lock_until(mutex, stream_number(in)));
		break;
	case 4:
		checked(punctual_mutex_trylock(mutex));
		break;
	case 5:
		checked(punctual_mutex_unlock(mutex));
		break;
	case 6:
		checked(punctual_mutex_consistent(mutex));
		break;
	case 7:
		attr.flags = stream_byte(in) % 4;
		attr.ceiling_deadline = stream_number(in);
		attr.ceiling_priority = (int64_t)stream_number(in);
		checked(punctual_mutex_create_with(&attr, room(in, held.mutex)));
		break;
	}
}

void call_queue(struct stream *in)
{
	struct punctual_sem_attr attr = PUNCTUAL_SEM_ATTR_INIT;
	struct punctual_cond *cond = handle(in, held.cond);
	struct punctual_sem *sem = handle(in, held.sem);
	struct punctual_barrier *barrier = handle(in, held.barrier);

	switch (stream_byte(in) % 13) {
	case 0:
		checked(punctual_cond_create(room(in, held.cond)));
		break;
	case 1:
		checked(punctual_cond_destroy(cond));
		break;
	case 2:
		checked(punctual_cond_wait_until(cond, handle(in, held.mutex), soon(in)));
		break;
	case 3:
		checked(punctual_cond_signal(cond));
		break;
	case 4:
		checked(punctual_cond_broadcast(cond));
		break;
	case 5:
		attr.units = (uint32_t)stream_number(in);
		attr.maximum = (uint32_t)stream_number(in);
		attr.size = stream_byte(in) % 8 ? sizeof(attr) : stream_below(in, sizeof(attr));
		checked(punctual_sem_create(&attr, room(in, held.sem)));
		break;
	case 6:
		checked(punctual_sem_destroy(sem));
		break;
	case 7:
		checked(punctual_sem_wait_until(sem, soon(in)));
		break;
	case 8:
		checked(punctual_sem_trywait(sem));
		break;
	case 9:
		checked(punctual_sem_post(sem));
		break;
	case 10:
		checked(punctual_barrier_create((uint32_t)stream_number(in),
						room(in, held.barrier)));
		break;
	case 11:
		checked(punctual_barrier_destroy(barrier));
		break;
	case 12:
		checked(punctual_barrier_wait_until(barrier, soon(in)));
		break;
	}
}
