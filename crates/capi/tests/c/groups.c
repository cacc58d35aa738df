/* SPDX-License-Identifier: MIT */
/* Scheduling groups and budget groups. */
#include "check.h"

static void *executes(void *argument)
{
	(void)argument;
	while (!punctual_is_over())
		;
	return NULL;
}

static void lists_that_are_none(void)
{
	const struct punctual_group good = PUNCTUAL_GROUP_INIT;
	const struct punctual_budget_group node = PUNCTUAL_BUDGET_GROUP_INIT;
	struct punctual_group groups[2] = { good, good };
	struct punctual_budget_group nodes[1] = { node };
	const struct punctual_attr init = PUNCTUAL_ATTR_INIT;
	struct punctual_attr attr = init;
	struct punctual *set = NULL;

	attr.group_count = 1;
	FAILS(punctual_open(&attr, &set), EINVAL);
	attr.groups = groups;
	attr.group_count = SIZE_MAX;
	FAILS(punctual_open(&attr, &set), EINVAL);
	attr.group_count = 2;
	/* Without a name and times. */
	FAILS(punctual_open(&attr, &set), EINVAL);
	groups[0].name = groups[1].name = "g";
	groups[0].period = groups[1].period = 20 * MS;
	groups[0].budget = groups[1].budget = 6 * MS;
	FAILS(punctual_open(&attr, &set), EEXIST);
	CHECK(strstr(punctual_last_error(), "two groups"));
	groups[1].size = 8;
	FAILS(punctual_open(&attr, &set), EINVAL);
	groups[0].size = 8;
	FAILS(punctual_open(&attr, &set), EINVAL);
	groups[0].size = groups[1].size = SIZE_MAX;
	FAILS(punctual_open(&attr, &set), EINVAL);
	groups[0].size = groups[1].size = sizeof(good);
	groups[1].name = "\xff";
	FAILS(punctual_open(&attr, &set), EINVAL);
	groups[1].name = "h";
	groups[1].parent = "none";
	FAILS(punctual_open(&attr, &set), ENOENT);
	groups[1].parent = "g";
	groups[1].policy = PUNCTUAL_JOBS + 1;
	FAILS(punctual_open(&attr, &set), EINVAL);
	groups[1].policy = PUNCTUAL_RM;
	groups[1].budget_group = "n";
	FAILS(punctual_open(&attr, &set), ENOENT);
	attr.budget_groups = nodes;
	attr.budget_group_count = 1;
	FAILS(punctual_open(&attr, &set), EINVAL);
	nodes[0].name = "n";
	nodes[0].period = MS;
	nodes[0].budget = 2 * MS;
	FAILS(punctual_open(&attr, &set), EINVAL);
	nodes[0].budget = MS;
	nodes[0].parent = "n";
	FAILS(punctual_open(&attr, &set), ENOENT);
	CHECK(set == NULL);
}

/* What two tasks receive together in each of so many periods, once there are some. */
static uint64_t received(struct punctual_task *a, struct punctual_task *b)
{
	struct punctual_task_stats of_a = PUNCTUAL_TASK_STATS_INIT, of_b = of_a;
	uint64_t until = punctual_clock() + LIVENESS;

	do {
		CHECK(punctual_clock() < until);
		sleep_ms(20);
		CHECK(punctual_task_stats(a, &of_a) == 0 && punctual_task_stats(b, &of_b) == 0);
	} while (of_a.periods < 10 || of_b.periods < 10);
	return of_a.received / of_a.periods + of_b.received / of_b.periods;
}

static void tasks_share_the_budgets_of_their_groups(void)
{
	struct punctual_group group = PUNCTUAL_GROUP_INIT;
	struct punctual_budget_group node = PUNCTUAL_BUDGET_GROUP_INIT;
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual_task_attr of[4] = {
		task_attr("a", 20 * MS, 4 * MS), task_attr("b", 20 * MS, 4 * MS),
		task_attr("c", 20 * MS, 4 * MS), task_attr("d", 20 * MS, 4 * MS),
	};
	struct punctual_task *task[4];
	uint64_t until = punctual_clock() + LIVENESS;
	struct punctual *set;

	group.name = "g";
	group.policy = PUNCTUAL_FP;
	node.name = "n";
	group.period = node.period = 20 * MS;
	group.budget = node.budget = 5 * MS;
	attr.groups = &group;
	attr.budget_groups = &node;
	attr.group_count = attr.budget_group_count = 1;
	set = open_set(&attr);
	of[0].group = "none";
	FAILS(punctual_task_create(set, of, executes, NULL, task), ENOENT);
	of[0].group = NULL;
	of[0].budget_group = "none";
	FAILS(punctual_attach(set, of, NULL), ENOENT);
	of[0].budget_group = NULL;
	of[0].group = "g";
	of[0].budget = 6 * MS;
	FAILS(punctual_task_create(set, of, executes, NULL, task), EBUSY);
	CHECK(punctual_close(set) == 0);

	attr.flags = PUNCTUAL_OVERLOAD;
	set = open_set(&attr);
	of[0].budget = 4 * MS;
	of[1].group = "g";
	of[2].budget_group = of[3].budget_group = "n";
	for (int n = 0; n < 4; n++)
		CHECK(punctual_task_create(set, &of[n], executes, NULL, &task[n]) == 0);
	/* Each alone would have 4 ms; together they have 5. */
	while (received(task[0], task[1]) > 6 * MS || received(task[2], task[3]) > 6 * MS)
		CHECK(punctual_clock() < until);
	CHECK(received(task[0], task[1]) > 0 && received(task[2], task[3]) > 0);
	CHECK(punctual_close(set) == 0);
}

/* What a program passes that was compiled before there were groups. */
static void older_structures(void)
{
	struct punctual_attr attr = PUNCTUAL_ATTR_INIT;
	struct punctual_task_attr of = task_attr("older", 20 * MS, MS);
	struct punctual_task *task;
	struct punctual *set;

	attr.size = offsetof(struct punctual_attr, groups);
	attr.group_count = 7;
	set = open_set(&attr);
	of.size = offsetof(struct punctual_task_attr, group);
	of.group = "none";
	CHECK(punctual_task_create(set, &of, executes, NULL, &task) == 0);
	of.size--;
	FAILS(punctual_task_create(set, &of, executes, NULL, NULL), EINVAL);
	CHECK(punctual_close(set) == 0);
}

int main(void)
{
	older_structures();
	lists_that_are_none();
	tasks_share_the_budgets_of_their_groups();
	return 0;
}
