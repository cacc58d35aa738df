/* SPDX-License-Identifier: (MIT OR GPL-2.0-only) */
/* For Rust: the limits that it uses, and commands for its tests to compare (src/abi.rs). */
#include "punctual_dispatcher.h"
#include "commands.h"
#include "limits.h"

const pd_u32 punctual_domains = PD_DOMAINS;
const struct pd_limits punctual_limits = PD_ARENA_LIMITS;
const pd_u64 punctual_cap_window = CAP_WINDOW;
const pd_u64 punctual_cap_share = CAP_SHARE;

/* A command of that kind, whose arguments have the values 1, 2, 3 ... in the order of the header;
 * 0 if there is no such kind. */
int punctual_sample(struct punctual_command *command, pd_u32 kind)
{
	*command = (struct punctual_command){ .kind = kind };
	switch (kind) {
	case PUNCTUAL_JOB_ADD:
		command->job = (struct pd_job_attr){ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
		return 1;
	case PUNCTUAL_RESERVATION_ADD:
		command->reservation_add = (struct pd_reservation_attr){ 1, 2,	3,  4,	5,  6,	7,
									 8, 9, 10, 11, 12, 13, 14 };
		return 1;
	case PUNCTUAL_RESERVATION_CHANGE:
		command->reservation_change.to.start = 1;
		command->reservation_change.reservation = 2;
		return 1;
	case PUNCTUAL_JOB_CANCEL:
		command->job_id = 1;
		return 1;
	case PUNCTUAL_JOB_STATE:
		command->job_state.used = 1;
		command->job_state.remaining = 2;
		command->job_state.job = 3;
		return 1;
	case PUNCTUAL_RESERVATION_REMOVE:
	case PUNCTUAL_RESERVATION_JOB:
	case PUNCTUAL_RESERVATION_DELAYED:
		command->reservation = 1;
		return 1;
	case PUNCTUAL_WINDOW_ADD:
		command->window.start = 1;
		command->window.length = 2;
		command->window.begins = 3;
		return 1;
	case PUNCTUAL_RESERVATION_ERROR:
		command->reservation_error.error = 1;
		command->reservation_error.reservation = 2;
		return 1;
	case PUNCTUAL_TASK_RETIRE:
		command->task = 1;
		return 1;
	case PUNCTUAL_TASK_JOIN:
		command->join.task = 1;
		command->join.thread = 2;
		command->join.flags = 3;
		return 1;
	case PUNCTUAL_GROUP_ORDER:
		command->group.group = 1;
		command->group.order = 2;
		return 1;
	case PUNCTUAL_TIMER_ADD:
		command->timer.at = 1;
		command->timer.cookie = 2;
		return 1;
	case PUNCTUAL_TIMER_CANCEL:
		command->timer_id = 1;
		return 1;
	case PUNCTUAL_RELEASE_END:
		command->release_end.task = 1;
		command->release_end.flags = 2;
		return 1;
	case PUNCTUAL_TASK_LEND:
		command->lend.task = 1;
		command->lend.to = 2;
		return 1;
	case PUNCTUAL_TASK_SUSPEND:
		command->suspend.task = 1;
		command->suspend.on = 2;
		return 1;
	case PUNCTUAL_WINDOW_DROP:
	case PUNCTUAL_TASK_ADD:
	case PUNCTUAL_TIMER_CREATE:
	case PUNCTUAL_TIMER_PROCESS:
		return 1;
	}
	return 0;
}
