/* SPDX-License-Identifier: MIT */
/* RED-Linux, Fig. 3, with the event handler of Fig. 4. EDITS.md lists what is not the paper's. */
#include <gsi.h>
#include <string.h>

#include "application.h"

#define HIGH_PRIORITY 3
#define LOW_PRIORITY  1

// Allocator for Imprecise Computation
typedef struct {
    int period;           // period of the job
    int budget;           // budget of the job
    int isOptional;       // mandatory or optional
    GSI_JOB job;          // scheduling attributes of the job
} TASK;

#include "fig4.c"

int main(void)
{
    TASK t;
    GSI_JOB *j;
    GSI_QOS qos[4];       // scheduling policy selector
    GSI_Event e;          // dispatcher event feedback

    if (GSI_register() < 0) return cannot(); // Register to get the allocator privilege
    memset(&t, 0, sizeof(t)); // Clean up the TASK data structure t
    t.period = GSI_msec_to_ticks(10); // Period is set to 10ms
    t.budget = GSI_msec_to_ticks(3);  // Budget is set to 3ms
    t.isOptional=0;        // First job is a mandatory part

    j=&t.job;               // Set up the first job
    j->starttime = GSI_now() + t.period;
    j->finishtime = j->starttime + t.period;
    j->budget = t.budget;    // Assign the full budget
    j->priority = HIGH_PRIORITY; // Mandatory part has the high priority
    j->private=(intptr_t)&t; // Pointer to the task data structure
    j->pid = start_application(20, 1000, 1000); // Mandatory and optional parts of 1 ms each
    qos[0] = QOS_PRIORITY; // Set priority as the primary scheduling attribute
    qos[1] = -1;           // Define no other scheduling attribute
    GSI_setQOS(qos);        // Send scheduling policy to the dispatcher
    GSI_addjob(j, 1);       // Send one job to the dispatcher
    while(1) {
        int n = GSI_getevents(&e, 1); // Wait until a response event from dispatcher
        if (n < 1) break;             // The application has ended
        Imprecise_EventHandler(&e);   // Call the event handler in Fig 4
    }
    return GSI_unregister() < 0 ? cannot() : 0;
}
