//! Hard tasks of RTAI by the service, on the user host and inside the kernel (rtai_roles.rs).

use crate::library_by_service::play_as;
use crate::privileges::UNPRIVILEGED;

const ROOT: u32 = 0;

#[test]
fn a_task_of_rtai_that_runs_over_its_budget_catches_up_with_the_next() {
    // More than the share of the user.
    play_as(ROOT, "rtai-budget");
}

#[test]
fn a_hard_task_of_rtai_has_its_periods() {
    play_as(UNPRIVILEGED, "rtai-periods");
}

#[test]
fn hard_tasks_of_rtai_call_and_signal_each_other() {
    play_as(UNPRIVILEGED, "rtai-talks");
}
