/* SPDX-License-Identifier: MIT */
/* Calls on sets. */
#include "calls.h"

/* Of the thread that becomes a task: it would wait for a first job that nothing adds. */
static uint32_t choose_policy(struct stream *in)
{
	uint32_t policy = stream_below(in, 6);

	return policy == PUNCTUAL_JOBS ? UINT32_MAX : policy;
}

static void choose_group(struct stream *in, struct punctual_group *group)
{
	group->size = stream_byte(in) % 16 ? sizeof(*group) : stream_below(in, sizeof(*group));
	group->name = group_name(in);
	group->parent = stream_byte(in) % 4 ? NULL : group_name(in);
	group->budget_group = stream_byte(in) % 4 ? NULL : group_name(in);
	group->period = stream_byte(in) % 4 ? 5 * MS : stream_number(in);
	group->budget = stream_byte(in) % 4 ? MS : stream_number(in);
	group->priority = (int64_t)stream_number(in);
	group->policy = choose_policy(in);
	group->cpu = (uint32_t)stream_number(in);
}

static void observe(const struct punctual_report *report, void *argument)
{
	(void)argument;
	MUST(report->kind <= PUNCTUAL_REPORT_WARNING);
	MUST(report->kind == PUNCTUAL_REPORT_WARNING ? report->text != NULL : report->task != NULL);
	MUST(punctual_wait(running, 0) < 0);
}

void call_set(struct stream *in)
{
	struct punctual_stats stats = PUNCTUAL_STATS_INIT;
	struct punctual_group groups[2] = { PUNCTUAL_GROUP_INIT, PUNCTUAL_GROUP_INIT };
	struct punctual_budget_group node = PUNCTUAL_BUDGET_GROUP_INIT;
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	uint32_t cpus[] = { (uint32_t)stream_number(in), 0 };

	switch (stream_byte(in) % 4) {
	case 0:
		attr.cpus = cpus;
		attr.cpu_count = stream_below(in, 3);
		attr.policy = choose_policy(in);
		attr.flags = stream_byte(in) % 4 ? 0 : (uint32_t)stream_number(in);
		attr.task_limit = stream_byte(in) % 4 ? 0 : (uint32_t)stream_number(in);
		attr.size = stream_byte(in) % 8 ? sizeof(attr) : stream_below(in, 256);
		attr.observer = stream_byte(in) % 4 ? observe : NULL;
		attr.groups = groups;
		attr.group_count = stream_below(in, 3);
		attr.budget_groups = stream_byte(in) % 8 ? &node : NULL;
		attr.budget_group_count = stream_below(in, 2);
		for (int n = 0; n < 2; n++)
			choose_group(in, &groups[n]);
		node.name = group_name(in);
		node.parent = stream_byte(in) % 4 ? NULL : group_name(in);
		node.period = stream_byte(in) % 4 ? 5 * MS : stream_number(in);
		node.budget = stream_byte(in) % 4 ? MS : stream_number(in);
		node.cpu = (uint32_t)stream_number(in);
		checked(punctual_open(&attr, room(in, held.set)));
		break;
	case 1:
		checked(punctual_wait(handle(in, held.set), soon(in)));
		break;
	case 2:
		stats.size = stream_byte(in) % 8 ? sizeof(stats) : stream_below(in, sizeof(stats));
		checked(punctual_stats(handle(in, held.set), &stats));
		break;
	case 3: {
		void *set = handle(in, held.set);

		if (set != running)
			checked(punctual_close(set));
		break;
	}
	}
}
