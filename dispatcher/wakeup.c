/* SPDX-License-Identifier: MIT */
/*
 * The revised CBS wake-up rule: a job that comes back in the middle of its period may use no more
 * than the bandwidth of its reservation before its finish. Without it, a task or group that slept
 * could use its whole budget shortly before its deadline, and again after it.
 */
#include "internal.h"

/* x * budget / deadline for x <= deadline: exact below 2^32 ns, else rounded down a little more. */
PD_FN pd_u64 pd_bandwidth_of(pd_u64 x, pd_u64 budget, pd_u64 deadline)
{
	pd_u32 shift = 0;

	pd_while (deadline >> 32) {
		deadline = (deadline >> 1) + 1;
		budget >>= 1;
		x >>= 1;
		shift++;
	}
	return x * budget / deadline << shift;
}

/* What the bandwidth of a job's reservation allows before the job's finish; what it has left, if
 * that is less or there is no wake-up rule. */
PD_FN pd_u64 pd_wakeup_allows(pd_ref d, pd_u32 i, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);
	pd_reservation_p v;

	if (j->reservation == PD_NONE || j->attr.finish <= now)
		return j->attr.budget;
	v = PD_RESERVATION(d, j->reservation);
	if (!v->now.wakeup_rule)
		return j->attr.budget;
	return pd_min(j->attr.budget,
		      pd_bandwidth_of(j->attr.finish - now, v->now.budget, v->now.deadline));
}

/*
 * What an idle server job may use when its group becomes active. One that competes in a served
 * group has no CPU of its own, so that what its bandwidth allows before its finish may not be
 * supplied by then. It is left what it would have if it had executed since its release, which is
 * never more: no member of its group then demands more than a periodic one that was ready all the
 * time.
 */
PD_FN pd_u64 pd_server_allows(pd_ref d, pd_u32 i, pd_u64 now)
{
	pd_job_p j = PD_JOB(d, i);
	pd_u64 allowed = pd_wakeup_allows(d, i, now);
	pd_reservation_p v;
	pd_u64 laxity, left;

	if (!j->attr.group || j->reservation == PD_NONE || j->attr.finish <= now)
		return allowed;
	v = PD_RESERVATION(d, j->reservation);
	if (!v->now.wakeup_rule)
		return allowed;
	laxity = v->now.deadline - v->now.budget;
	left = j->attr.finish - now;
	return pd_min(allowed, left > laxity ? left - laxity : 0);
}

/* A group that was idle is active: the budget of its idle server jobs is cut in place, since no
 * queue has them. Less than the granularity is none. */
PD_FN int pd_servers_woke(pd_ref d, pd_u32 group, pd_u64 now)
{
	pd_u32 i = PD_GROUP(d, group)->first_server;

	pd_while (i != PD_NONE) {
		pd_job_p j = PD_JOB(d, i);
		pd_u64 allowed;

		if (j->state == PD_IDLE) {
			allowed = pd_server_allows(d, i, now);
			if (allowed != j->attr.budget)
				j->attr.budget = allowed > PD(d)->granularity ? allowed : 0;
		}
		i = j->next;
	}
	return 0;
}
