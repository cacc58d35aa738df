/* SPDX-License-Identifier: MIT */
/* The headers' numbers, sizes and offsets, for the tests of raw.rs to compare. */
#include "punctual_dispatcher.h"
#include "record.h"

#define NUMBER(of) { #of, (pd_u64)(of) }
#define SIZE(type) { #type, sizeof(struct type) }
#define FIELD(type, field) { #type "." #field, __builtin_offsetof(struct type, field) }

const struct pd_number {
	const char *name;
	pd_u64 value;
} pd_numbers[] = {
	NUMBER(PD_NONE), NUMBER(PD_INFINITE), NUMBER(PD_MAX_DELAYED),
	NUMBER(ENOENT), NUMBER(EBUSY), NUMBER(EINVAL), NUMBER(ENOSPC), NUMBER(ELOOP),
	NUMBER(PD_BY_START), NUMBER(PD_BY_FINISH), NUMBER(PD_BY_BUDGET), NUMBER(PD_BY_PRIORITY),
	NUMBER(PD_CARRY), NUMBER(PD_SKIP), NUMBER(PD_BACKGROUND), NUMBER(PD_SIGNAL),
	NUMBER(PD_EV_COMPLETED), NUMBER(PD_EV_EXHAUSTED), NUMBER(PD_EV_EXPIRED),
	NUMBER(PD_EV_CANCELLED), NUMBER(PD_EV_TASK_GONE), NUMBER(PD_EV_TASK_READY),
	NUMBER(PD_EV_TASK_BLOCKED), NUMBER(PD_EV_GROUP_ACTIVE), NUMBER(PD_EV_GROUP_IDLE),
	NUMBER(PD_EV_SEGMENT_EXHAUSTED), NUMBER(PD_EV_TIMER), NUMBER(PD_EV_LOST),
	NUMBER(PD_EV_RELEASED), NUMBER(PD_EV_RELEASES_LOST), NUMBER(PD_EV_OVERRUN),
	NUMBER(PD_EV_BACKGROUND), NUMBER(PD_EV_DELAYED_SATURATED),
	NUMBER(PD_EV_SEGMENT_EXPIRED), NUMBER(PD_EV_WINDOW_EXHAUSTED),
	NUMBER(PD_EV_WINDOW_EXPIRED),
	NUMBER(PD_REC_GRANULARITY), NUMBER(PD_REC_ORDER), NUMBER(PD_REC_TASK_ADD),
	NUMBER(PD_REC_TASK_READY), NUMBER(PD_REC_TASK_BLOCKED), NUMBER(PD_REC_TASK_GONE),
	NUMBER(PD_REC_TASK_DONE), NUMBER(PD_REC_CHARGE_TASK), NUMBER(PD_REC_CHARGE),
	NUMBER(PD_REC_JOB_CANCEL), NUMBER(PD_REC_JOB_COMPLETE), NUMBER(PD_REC_ADVANCE),
	NUMBER(PD_REC_TAKE_LOST), NUMBER(PD_REC_RESERVATION_REMOVE), NUMBER(PD_REC_TIMER_ASK),
	NUMBER(PD_REC_TIMER_CANCEL), NUMBER(PD_REC_WINDOW_ADD), NUMBER(PD_REC_WINDOW_DROP),
	NUMBER(PD_REC_JOB_ADD), NUMBER(PD_REC_JOB_ADD_2), NUMBER(PD_REC_JOB_ADD_3),
	NUMBER(PD_REC_RESERVATION_ADD), NUMBER(PD_REC_RESERVATION_ADD_2),
	NUMBER(PD_REC_RESERVATION_ADD_3), NUMBER(PD_REC_RESERVATION_ADD_4),
	NUMBER(PD_REC_RESERVATION_CHANGE), NUMBER(PD_REC_SELECTED), NUMBER(PD_REC_EVENT),
	SIZE(pd_limits), FIELD(pd_limits, jobs), FIELD(pd_limits, tasks),
	FIELD(pd_limits, reservations), FIELD(pd_limits, groups),
	FIELD(pd_limits, budget_groups), FIELD(pd_limits, timers), FIELD(pd_limits, depth),
	FIELD(pd_limits, events), FIELD(pd_limits, records), FIELD(pd_limits, cpus),
	FIELD(pd_limits, windows),
	SIZE(pd_job_attr), FIELD(pd_job_attr, start), FIELD(pd_job_attr, finish),
	FIELD(pd_job_attr, budget), FIELD(pd_job_attr, priority), FIELD(pd_job_attr, cookie),
	FIELD(pd_job_attr, task), FIELD(pd_job_attr, group), FIELD(pd_job_attr, server),
	FIELD(pd_job_attr, budget_group), FIELD(pd_job_attr, budget_server),
	FIELD(pd_job_attr, reserved),
	SIZE(pd_reservation_attr), FIELD(pd_reservation_attr, start),
	FIELD(pd_reservation_attr, period), FIELD(pd_reservation_attr, budget),
	FIELD(pd_reservation_attr, deadline), FIELD(pd_reservation_attr, priority),
	FIELD(pd_reservation_attr, cookie), FIELD(pd_reservation_attr, task),
	FIELD(pd_reservation_attr, group), FIELD(pd_reservation_attr, overrun),
	FIELD(pd_reservation_attr, wakeup_rule), FIELD(pd_reservation_attr, server),
	FIELD(pd_reservation_attr, budget_group), FIELD(pd_reservation_attr, budget_server),
	FIELD(pd_reservation_attr, own_cookie),
	SIZE(pd_event), FIELD(pd_event, time), FIELD(pd_event, kind), FIELD(pd_event, task),
	FIELD(pd_event, job), FIELD(pd_event, cookie), FIELD(pd_event, used),
	FIELD(pd_event, remaining),
	SIZE(pd_record), FIELD(pd_record, time), FIELD(pd_record, a), FIELD(pd_record, b),
	FIELD(pd_record, small), FIELD(pd_record, kind),
	{ 0, 0 },
};
