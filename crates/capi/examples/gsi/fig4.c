/* SPDX-License-Identifier: MIT */
/* RED-Linux, Fig. 4: a part of fig3.c. */
// Event Handler for Imprecise Computation

static void Imprecise_EventHandler(GSI_Event *e)
{
    TASK *t = (TASK *) e->private;    // Get the task data structure
    GSI_JOB *j = &t->job;

    switch(e->type) {
        case GSI_EV_JOB_EXPIRED: {      // The last job has finished
            if (t->isOptional) {
                //If the last job is an optional job, produce a mandatory job
                // for the next period.
                j->starttime += t->period;
                j->finishtime = j->starttime + t->period;
                j->budget = t->budget;      // Reset to the full budget
                j->priority = HIGH_PRIORITY; // Mandatory part has the high priority
            } else {
                //If the last job is a mandatory job, produce an optional job in the same period
                j->budget = e->budget;      // Use only the remaining budget
                j->priority = LOW_PRIORITY; // Optional part has the low priority
            }
            t->isOptional = 1 - t->isOptional;
            GSI_addjob(j,1);              // Send the job to the dispatcher
        }
    }
}
