/* SPDX-License-Identifier: MIT */
/* RED-Linux, Fig. 5, in a program like that of Fig. 3. EDITS.md lists what is not the paper's. */
#include <gsi.h>
#include <string.h>

#include "application.h"

// Event Handler for Dual Priority Scheduling
typedef struct {
    int period;           // period of the task
    int budget;           // budget of the task
    int high_priority;    // the priority after the promotion time
    int low_priority;     // the priority before the promotion time
    int promotion;        // the promotion time
    int isPromoted;       // The current priority status of the task
                        // 0 : before promotion
                        // 1 : after promotion
    GSI_JOB job;          // scheduling attributes of the job
} TASK;

static void DualPriority_EventHandler(GSI_Event *e)
{
    TASK *t = (TASK *) e->private;
    GSI_JOB *j = &t->job;

    switch(e->type) {
        case GSI_EV_JOB_EXPIRED: {
            if (t->isPromoted || e->reason == GSI_COMPLETED) {
                //If the last job is a high priority job,
                // produce a low-priority job for the next period.
                j->starttime += t->period - (t->isPromoted ? t->promotion : 0);
                j->finishtime = j->starttime + t->promotion;
                j->budget = t->budget;
                j->priority = t->low_priority;
                t->isPromoted = 1;
            } else {
                //If the last job is a low priority job, produce a prompted job
                // high-priority job.
                j->finishtime = j->starttime + t->period;
                j->starttime += t->promotion;
                j->budget = e->budget;           // Use only the remaining budget
                j->priority = t->high_priority;
            }
            t->isPromoted = 1 - t->isPromoted;
            GSI_addjob(j,1);                     // Send the job to the dispatcher
        }
    }
}

/* From here on it is not the paper's. */

/* A best-effort job: of the middle band, as long as there is something to execute. */
static void Middle_EventHandler(GSI_Event *e)
{
    GSI_JOB *j = (GSI_JOB *) e->private;

    j->starttime = e->time;
    GSI_addjob(j,1);
}

int main(void)
{
    TASK t;
    GSI_JOB middle, *j = &t.job;
    GSI_QOS qos[4] = { QOS_PRIORITY, -1, -1, -1 };
    GSI_Event e;

    if (GSI_register() < 0) return cannot();
    memset(&t, 0, sizeof(t));
    memset(&middle, 0, sizeof(middle));
    t.period = GSI_msec_to_ticks(20);
    t.budget = GSI_msec_to_ticks(6);
    t.promotion = GSI_msec_to_ticks(10);
    t.high_priority = 3;
    middle.priority = 2;
    t.low_priority = 1;
    GSI_setQOS(qos);

    // 100 ms ahead: processes are adopted at their first jobs.
    j->pid = start_application(20, 3000, 2000);
    middle.pid = start_application(20, 15000, 15000);
    middle.private = (intptr_t)&middle;
    j->private = (intptr_t)&t;
    middle.starttime = GSI_now();
    middle.finishtime = middle.budget = GSI_INFINITE;
    j->starttime = middle.starttime + 5 * t.period;
    j->finishtime = j->starttime + t.promotion;
    j->budget = t.budget;
    j->priority = t.low_priority;
    GSI_addjob(j, 1);
    GSI_addjob(&middle, 1);
    while (GSI_getevents(&e, 1) == 1) {
        if (e.private == middle.private)
            Middle_EventHandler(&e);
        else
            DualPriority_EventHandler(&e);
    }
    return GSI_unregister() < 0 ? cannot() : 0;
}
