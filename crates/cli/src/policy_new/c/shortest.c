/* The policy "shortest": the smaller budget first. */
#include "punctual_policy.h"

static int64_t smaller_budget_first(const struct punctual_attributes *of)
{
	return -(int64_t)of->budget; /* the larger priority first */
}

const struct punctual_policy punctual_policy = {
	PUNCTUAL_POLICY,
	.name = "shortest",
	.title = "the smaller budget first",
	.priority = smaller_budget_first,
};
