/* SPDX-License-Identifier: MIT */
/* Scheduling groups: which order their members stand in. */
#include "internal.h"

/* Up to four attributes, none twice, no gap before the last. */
PD_FN int pd_order_valid(pd_u32 order)
{
	pd_u32 seen = 0;

	if (!order)
		return 0;
	pd_while (order) {
		pd_u32 attribute = order & 255;

		if (attribute < PD_BY_START || attribute > PD_BY_PRIORITY)
			return 0;
		if (seen & 1U << attribute)
			return 0;
		seen |= 1U << attribute;
		order >>= 8;
	}
	return 1;
}

/* The ordering, and what follows from it. */
PD_FN int pd_group_order(pd_ref d, pd_u32 group, pd_u32 order)
{
	pd_group_p g = PD_GROUP(d, group);
	pd_u32 first = order & 255;

	g->order = order;
	g->first = first - 1;
	g->turned = pd_turned(first);
	g->by_finish = group == 0 && first == PD_BY_FINISH;
	g->by_budget = 0;
	pd_while (order) {
		if ((order & 255) == PD_BY_BUDGET)
			g->by_budget = 1;
		order >>= 8;
	}
	return 0;
}

/* Only while it is empty: a queue is never re-sorted. */
PD_API int pd_group_set_order(pd_ref d, pd_u32 group, pd_u32 order)
{
	if (group >= PD(d)->limits.groups)
		return PD_ENOTHING;
	if (!pd_order_valid(order))
		return PD_EINVALID;
	if (pd_heap_size(d, PD_GROUPS + group))
		return PD_EBUSY;
	pd_record(d, PD_REC_ORDER, group, 0, order, 0);
	pd_group_order(d, group, order);
	return 0;
}
