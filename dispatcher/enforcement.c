/* SPDX-License-Identifier: MIT */
/*
 * Enforcement error (docs/model.md): what a reservation's tasks executed beyond their budgets (+)
 * or short of them (-), because a host preempts them some microseconds late or early. It is
 * carried, so that long-run bandwidth is exact, and settled by the budgets of later releases:
 *
 *   overrun, early stop ──> error ──> release: budget - settled, error - settled
 *
 * A small error is settled slowly: all at once it would disturb the next period as much as the
 * period in which it arose. Half of it each time, and not a fixed amount, so that what remains of a
 * host's constant error is twice that and does not grow.
 *
 * Invariants: the magnitude of an error is at most one budget, and that of what is settled at most
 * the error's; so a release's budget is never negative, nor more than two budgets.
 */
#include "internal.h"

/* Parts of a budget: an error is small up to a tenth, and a release settles 4 % at most of that. */
#define PD_SMALL_ERROR 10U
#define PD_SETTLING_STEP 25U

/* Adds to a reservation's error, within one budget either way. */
PD_FN int pd_error_add(pd_ref d, pd_u32 r, pd_i64 by)
{
	pd_reservation_p v = PD_RESERVATION(d, r);
	pd_i64 most = (pd_i64)v->now.budget;

	v->error += by;
	if (v->error > most)
		v->error = most;
	if (v->error < -most)
		v->error = -most;
	return 0;
}

/* At least 1 ns of any error is settled, or one of a tiny budget would stay for ever. */
PD_API pd_i64 pd_error_settled(pd_u64 budget, pd_i64 error)
{
	pd_u64 magnitude = error < 0 ? 0 - (pd_u64)error : (pd_u64)error;
	pd_u64 small = pd_min(magnitude, budget / PD_SMALL_ERROR);
	pd_u64 step = budget / PD_SETTLING_STEP;
	pd_u64 settled = magnitude - small + pd_min(small - small / 2, step ? step : 1);

	return (pd_i64)(error < 0 ? 0 - settled : settled);
}
