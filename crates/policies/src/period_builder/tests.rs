use super::*;

const MS: u64 = 1_000_000;

fn builder(suspends: bool) -> PeriodBuilder {
    PeriodBuilder::new(params(suspends), false)
}

fn params(suspends: bool) -> PeriodParams {
    let (period, deadline, budget) = (10 * MS, 10 * MS, 4 * MS);
    PeriodParams { task: 0, period, deadline, budget, suspends, overdue: false }
}

fn release(number: u64) -> NewRelease {
    let release = 10 * MS * number;
    NewRelease { number, release, deadline: release + 10 * MS, assigned: 4 * MS }
}

/// The period of one release of 4 ms in 10 ms.
fn period(mut builder: PeriodBuilder, observed: impl FnOnce(&mut PeriodBuilder)) -> Period {
    assert_eq!(builder.released(release(0)), None);
    observed(&mut builder);
    builder.released(release(1)).expect("one was released")
}

#[test]
fn a_program_that_sleeps_and_whose_job_is_exhausted_by_idle_time_was_not_ready() {
    let p = period(builder(true), |b| {
        b.executed(MS);
        b.suspended(3 * MS);
        b.unused(3 * MS);
        b.ended(JobEnd::Exhausted, NEVER);
    });
    assert_eq!((p.ready_throughout, p.received, p.unused, p.miss), (false, MS, 3 * MS, false));
}

#[test]
fn a_program_that_was_cut_was_not_ready_however_little_of_its_sleep_was_seen() {
    let p = period(builder(true), |b| {
        b.executed(MS);
        b.unused(3 * MS);
        b.ended(JobEnd::Exhausted, NEVER);
    });
    assert_eq!((p.ready_throughout, p.received, p.unused, p.miss), (false, MS, 3 * MS, false));
}

#[test]
fn a_program_that_uses_up_its_budget_was_ready() {
    let p = period(builder(true), |b| {
        b.executed(4 * MS);
        b.suspended(50_000);
        b.ended(JobEnd::Exhausted, NEVER);
    });
    assert_eq!((p.ready_throughout, p.received, p.unused), (true, 4 * MS, 0));
}

#[test]
fn releases_lost_after_a_change_are_at_their_places_on_both_grids() {
    let mut b = builder(true);
    assert_eq!(b.released(release(3)), None);
    b.change(&TaskChange { period: Some(15 * MS), ..TaskChange::of_budget(2 * MS) });
    let times = |p: Period| (p.release / MS, (p.deadline - p.release) / MS, p.assigned / MS);
    assert_eq!([4, 5, 6].map(|n| times(b.lost(n))), [(40, 15, 2), (55, 15, 2), (70, 15, 2)]);
    // The release in flight is of the parameters before.
    assert_eq!((b.params().budget, b.next_params().budget), (4 * MS, 2 * MS));
    let of_seventh =
        NewRelease { number: 7, release: 85 * MS, deadline: 100 * MS, assigned: 2 * MS };
    assert_eq!(b.released(of_seventh).map(times), Some((30, 10, 4)));
    assert_eq!(times(b.lost(9)), (115, 15, 2));
}

#[test]
fn a_sleep_after_the_jobs_end_is_not_of_the_job() {
    let p = period(builder(true), |b| {
        b.executed(4 * MS);
        b.ended(JobEnd::Exhausted, NEVER);
        b.suspended(5 * MS);
    });
    assert!(p.ready_throughout);
}

/// What looked like a sleep can only have been a stall of the machine.
#[test]
fn synthetic_execution_that_was_cut_lacks_what_was_cut_off() {
    let p = period(builder(false), |b| {
        b.executed(MS);
        b.suspended(3 * MS);
        b.unused(3 * MS);
        b.ended(JobEnd::Exhausted, NEVER);
    });
    assert_eq!((p.ready_throughout, p.received, p.unused), (true, MS, 0));
}

#[test]
fn the_first_start_and_the_completion_are_kept() {
    let p = period(builder(true), |b| {
        b.started(2 * MS);
        b.started(3 * MS);
        b.executed(MS);
        b.ended(JobEnd::Completed, 5 * MS);
    });
    assert_eq!((p.started, p.completed, p.end), (2 * MS, 5 * MS, JobEnd::Completed));
}

#[test]
fn times_of_a_lost_release_follow_from_the_latest_one() {
    let mut b = builder(true);
    b.released(release(3));
    let lost = b.lost(5);
    assert_eq!((lost.number, lost.release, lost.deadline, lost.miss), (5, 50 * MS, 60 * MS, true));
}

#[test]
fn a_release_whose_end_is_unknown_is_neither_a_miss_nor_ready_throughout() {
    let p = period(builder(true), |b| b.executed(MS));
    assert_eq!((p.miss, p.ready_throughout, p.unused), (false, false, 3 * MS));
}

#[test]
fn a_replenished_release_misses_its_deadline_only_when_its_budget_came_later() {
    for (at, slept, miss) in [(9 * MS, 0, false), (11 * MS, 0, true), (11 * MS, 3 * MS, false)] {
        let p = period(builder(true), |b| {
            b.executed(4 * MS);
            b.suspended(slept);
            b.replenished(at);
        });
        assert_eq!((p.end, p.miss), (JobEnd::Replenished, miss), "at {at}, slept {slept}");
        assert!(!p.overrun);
    }
    let given_up = period(builder(true), |b| {
        b.unused(4 * MS);
        b.replenished(11 * MS);
    });
    assert_eq!((given_up.miss, given_up.ready_throughout), (false, false));
}

#[test]
fn a_job_that_completes_after_its_deadline_missed_it_where_jobs_do_not_expire() {
    for overdue in [false, true] {
        let builder = || PeriodBuilder::new(PeriodParams { overdue, ..params(false) }, true);
        let completed = |at| period(builder(), |b| b.ended(JobEnd::Completed, at)).miss;
        assert_eq!([10 * MS, 10 * MS + 1].map(completed), [false, overdue]);
    }
}
