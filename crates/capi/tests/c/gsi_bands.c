/* SPDX-License-Identifier: MIT */
/* Two tasks with mandatory and optional parts by Fig. 4, and a job between their bands. */
#include <gsi.h>
#include <string.h>

#include "../../examples/gsi/application.h"

#define HIGH_PRIORITY 3
#define LOW_PRIORITY  1

typedef struct {
	int period;
	int budget;
	int isOptional;
	GSI_JOB job;
} TASK;

#include "../../examples/gsi/fig4.c"

#define TASKS 2

int main(void)
{
	TASK tasks[TASKS];
	GSI_JOB between;
	GSI_Event event;
	GSI_TIME start;

	if (GSI_register() < 0)
		return cannot();
	memset(tasks, 0, sizeof(tasks));
	memset(&between, 0, sizeof(between));
	start = GSI_now() + GSI_msec_to_ticks(100);
	for (int n = 0; n < TASKS; n++) {
		TASK *t = &tasks[n];

		t->period = (int)GSI_msec_to_ticks(20);
		t->budget = (int)GSI_msec_to_ticks(6);
		t->job.starttime = start + n * GSI_msec_to_ticks(1);
		t->job.finishtime = t->job.starttime + t->period;
		t->job.budget = t->budget;
		t->job.priority = HIGH_PRIORITY;
		t->job.private = (intptr_t)t;
		t->job.pid = start_application(15, 2000, 2000);
		if (GSI_addjob(&t->job, 1) != 1)
			return cannot();
	}
	between.pid = start_application(5, 8000, 8000);
	between.starttime = start;
	between.finishtime = between.budget = GSI_INFINITE;
	between.priority = 2;
	if (GSI_addjob(&between, 1) != 1)
		return cannot();
	while (GSI_getevents(&event, 1) == 1) {
		if (event.private) {
			Imprecise_EventHandler(&event);
		} else if (event.reason != GSI_GONE) {
			between.starttime = event.time + GSI_msec_to_ticks(5);
			GSI_addjob(&between, 1);
		}
	}
	return GSI_unregister() < 0 ? cannot() : 0;
}
