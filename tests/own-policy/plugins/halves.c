/* Each release is two jobs with half of the budget; the second one begins at half of the period. */
#include <stdlib.h>

#include "punctual_policy.h"

struct halves {
	uint32_t members;
	uint32_t second[]; /* of each member: its second job was made */
};

static void *make(const struct punctual_setup *setup, char *error, size_t room)
{
	struct halves *halves = calloc(1, sizeof(*halves) + setup->members * sizeof(uint32_t));

	for (uint32_t i = 0; i < setup->tasks; i++) {
		if (setup->of_set[i].of.budget % 2) {
			static const char why[] = "an odd budget has no halves";

			for (size_t at = 0; at < sizeof(why) && at < room; at++)
				error[at] = why[at];
			free(halves);
			return NULL;
		}
	}
	if (halves)
		halves->members = setup->members;
	return halves;
}

static void handle(void *self, struct punctual_context *context,
		   const struct punctual_event *event)
{
	struct halves *halves = self;
	struct punctual_member member = punctual_member_of(context);
	struct punctual_release release = punctual_release_of(context);
	struct punctual_job job = { release.at, release.deadline, member.of.budget / 2, 0 };

	if (member.index >= halves->members)
		return;
	switch (event->kind) {
	case PUNCTUAL_RELEASED:
		halves->second[member.index] = 0;
		/* Its end is the time of the second one, also where it ended before. */
		punctual_add_job(context, &job);
		break;
	case PUNCTUAL_JOB_ENDED:
		if (event->end == PUNCTUAL_EXHAUSTED && !halves->second[member.index])
			punctual_set_timer(context, release.at + member.of.period / 2);
		break;
	case PUNCTUAL_TIMER:
		halves->second[member.index] = 1;
		job.start = punctual_now(context);
		job.budget = release.left;
		punctual_add_job(context, &job);
		break;
	}
}

const struct punctual_policy punctual_policy = {
	PUNCTUAL_POLICY,
	.name = "halves",
	.title = "two halves",
	.source = "tests/own-policy",
	.order = { PUNCTUAL_BY_FINISH, PUNCTUAL_BY_BUDGET },
	.make = make,
	.drop = free,
	.handle = handle,
};
