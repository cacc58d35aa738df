//! What makes a period one in which its task was ready throughout, missed or overran.

use crate::*;

const BUDGET: u64 = 1_000;

/// A period that received so much and ended so; the task gave up the rest of its budget.
fn period(end: JobEnd, received: u64) -> Period {
    let unused = BUDGET - received;
    Period { end, received, unused, ..Period::unjudged(0, 0, 0, 10_000, BUDGET) }
}

/// Ready throughout, unused, missed.
fn said(p: Period) -> (bool, u64, bool) {
    (p.ready_throughout, p.unused, p.miss)
}

#[test]
fn a_job_that_used_up_its_budget_was_ready_unless_it_slept() {
    let exhausted = period(JobEnd::Exhausted, BUDGET);
    assert_eq!(said(exhausted.judged(false, Some(false))), (true, 0, false));
    assert_eq!(said(exhausted.judged(false, Some(true))), (false, 0, false));
    assert_eq!(
        said(exhausted.judged(true, Some(true))),
        (false, 0, true),
        "its wait still came too late"
    );
}

#[test]
fn a_job_that_slept_and_was_cut_was_not_ready_however_short_it_slept() {
    let cut = period(JobEnd::Exhausted, 600);
    for slept in [false, true] {
        assert_eq!(said(cut.judged(false, Some(slept))), (false, 400, false));
    }
    // One that never sleeps has lost what was cut off.
    assert_eq!(said(cut.judged(false, None)), (true, 0, false));
}

#[test]
fn a_job_that_expired_was_ready_unless_it_slept() {
    let expired = period(JobEnd::Expired, 600);
    assert_eq!(said(expired.judged(false, Some(false))), (true, 0, true));
    assert_eq!(said(expired.judged(false, Some(true))), (false, 400, false));
    assert_eq!(said(expired.judged(false, None)), (true, 0, true));
}

#[test]
fn after_other_ends_a_task_was_not_ready_throughout() {
    let completed = period(JobEnd::Completed, 600);
    assert_eq!(said(completed.judged(true, None)), (false, 400, false));
    // The host says so of a job that does not expire at its deadline.
    let late = Period { miss: true, ..completed };
    assert_eq!(said(late.judged(true, None)), (false, 400, true));
    for end in [JobEnd::Cancelled, JobEnd::TaskGone] {
        let p = Period { unused: 0, ..period(end, 600) };
        assert_eq!(said(p.judged(true, Some(false))), (false, 400, false));
    }
}
