//! Small runs whose figures are computed by hand.

use super::*;
use punctual_taskset::TaskChange;

#[test]
fn the_first_period_and_a_cut_off_last_one_are_left_out() {
    let mut c = collector();
    let mut first = period(0);
    first.miss = true;
    c.record(&first);
    assert_eq!(c.snapshot().totals.periods, 0);
    c.record(&period(1));
    c.record(&period(2));
    assert_eq!(c.snapshot().totals.periods, 1, "the latest is held back");
    c.finish(3_999_999);
    assert_eq!(c.snapshot().totals.periods, 1, "1 ns short of its end");
    c.record(&period(3));
    c.finish(5_000_000);
    let results = c.snapshot();
    assert_eq!((results.totals.periods, results.totals.missed, results.exit_code()), (2, 0, 0));
    assert_eq!(results.duration_ns, 4_000_000);
}

#[test]
fn the_last_period_is_left_out_until_the_longest_that_the_task_had_is_over() {
    for (end, counted) in [(4_999_999, 1), (5_000_000, 2)] {
        let mut c = collector();
        (0..3).for_each(|n| c.record(&period(n)));
        c.change(0, &TaskChange { period: Some(2_000_000), ..TaskChange::default() });
        c.change(0, &TaskChange { period: Some(500_000), ..TaskChange::default() });
        c.finish(end);
        assert_eq!(c.snapshot().totals.periods, counted, "{end}");
    }
}

#[test]
fn an_unreported_period_is_no_met_deadline() {
    let mut c = collector();
    (0..3).for_each(|n| c.record(&period(n)));
    c.record_unreported(0, 7);
    c.record(&period(10));
    c.finish(12_000_000);
    let results = c.snapshot();
    let Totals { periods, missed, unreported, short, met } = results.totals;
    assert_eq!(
        (periods, missed, unreported, short, met, results.exit_code()),
        (3, 0, 7, 0, false, 1)
    );
    assert_eq!((results.tasks[0].periods, results.tasks[0].unreported), (3, 7));
}

#[test]
fn ten_periods_by_hand() {
    let mut c = collector();
    c.record(&period(0));
    // Exactly 1 % and 5 % off are not "more than"; 0.2 and 0.02 us beyond are.
    let received =
        [100_000, 101_000, 98_999, 105_000, 94_980, 100_000, 200_000, 100_000, 50_000, 100_001];
    for (i, received) in received.into_iter().enumerate() {
        let mut p = period(1 + i as u64);
        p.received = received;
        match i {
            6 => p.woken_late = true,
            7 => (p.woken_late, p.miss) = (true, true),
            8 => (p.ready_throughout, p.started, p.completed) = (false, NEVER, NEVER),
            9 => (p.overrun, p.miss) = (true, true),
            _ => {}
        }
        c.record(&p);
    }
    c.finish(u64::MAX);
    let r = c.snapshot();
    let t = &r.tasks[0];
    assert_eq!((t.periods, t.misses, t.misses_ppm), (10, 2, 200_000));
    assert_eq!((t.overruns, t.overruns_ppm, t.not_ready), (1, 100_000, 1));
    assert_eq!(
        (t.late_wakeups.periods, t.late_wakeups.off_5_percent, t.late_wakeups.off_5_percent_ppm),
        (2, 1, 500_000)
    );
    let b = t.budget_received.unwrap();
    assert_eq!(b.periods, 7);
    assert_eq!((b.off_1_percent, b.off_1_percent_ppm), (3, 428_571));
    assert_eq!((b.off_5_percent, b.off_5_percent_ppm), (1, 142_857));
    assert_eq!((b.p1_ppm, b.median_ppm, b.worst_ppm), (949_800, 1_000_000, 949_800));
    assert_eq!(b.p99_ppm, 1_050_000);
    // Ready: all but the ninth, late ones included.
    assert_eq!(
        t.long_run_ppm,
        Some(
            (100_000u64 * 4 + 101_000 + 98_999 + 105_000 + 94_980 + 200_000 + 1 - 100_000
                + 100_000)
                * 1_000_000
                / 900_000
                + 1
        )
    );
    assert_eq!((t.received_ns, t.assigned_ns), (1_049_980, 1_000_000));
    assert_eq!(t.release_latency.unwrap().count, 9);
    assert_eq!(t.release_latency.unwrap().worst_ns, 3_000);
    assert_eq!(t.response_time.unwrap().median_ns.div_ceil(2_000), 100);
    assert_eq!(r.exit_code(), 1);
}

#[test]
fn records_of_unknown_tasks_are_ignored_with_a_note() {
    let mut c = collector();
    let mut unknown = period(0);
    unknown.task = 9;
    c.record(&unknown);
    assert!(c.snapshot().notes[0].contains("1 records"));
}

#[test]
fn a_task_that_got_nothing_is_at_zero() {
    let mut c = collector();
    for i in 0..50 {
        let mut p = period(i);
        (p.received, p.miss, p.started, p.completed) = (0, true, NEVER, NEVER);
        c.record(&p);
    }
    let t = &c.snapshot().tasks[0];
    let b = t.budget_received.unwrap();
    assert_eq!((b.p1_ppm, b.p99_ppm, b.worst_ppm, t.long_run_ppm), (0, 0, 0, Some(0)));
    assert_eq!((t.misses_ppm, t.release_latency, t.response_time), (1_000_000, None, None));
}

#[test]
fn utilization_is_the_sum() {
    assert_eq!(rich(HostKind::User, 0).utilization_ppm, 250_000 + 250_000 + 150_000);
}

/// Budgets of 40, 60 and 100 us, the whole one; the second one was used up, and so was the last.
#[test]
fn the_budgets_of_an_adaptive_server_are_reported_and_its_misses_stay_misses() {
    let run = Run { machine: machine().into(), ..Run::new(HostKind::User, "edf", &[1]) };
    let servo = TaskInfo::new("servo", 1_000_000, 100_000, 1_000_000);
    let of = |adaptive| {
        let mut c = Collector::new(run.clone(), vec![TaskInfo { adaptive, ..servo.clone() }]);
        for (number, assigned, end) in [
            (0, 100_000, JobEnd::Completed),
            (1, 40_000, JobEnd::Completed),
            (2, 60_000, JobEnd::Exhausted),
            (3, 100_000, JobEnd::Exhausted),
        ] {
            let miss = end == JobEnd::Exhausted;
            let received = assigned;
            c.record(&Period { assigned, received, end, miss, overrun: miss, ..period(number) });
        }
        c.finish(u64::MAX);
        c.snapshot()
    };
    let results = of(true);
    let expected = AdaptiveBudget {
        least_ns: 40_000,
        mean_ns: 66_666,
        most_ns: 100_000,
        last_ns: 100_000,
        exhausted: 1,
        misses: 1,
    };
    assert_eq!(results.tasks[0].adaptive_budget, Some(expected));
    assert_eq!((results.totals.missed, results.totals.short, results.exit_code()), (2, 0, 1));
    assert_eq!(of(false).tasks[0].adaptive_budget, None);
}

/// Of a budget of 100 us, 30 and 50 us more were received; the first and the last period are not
/// counted.
#[test]
fn what_a_task_reclaims_is_reported_and_keeps_its_budget() {
    let run = Run { machine: machine().into(), ..Run::new(HostKind::User, "edf", &[1]) };
    let servo = TaskInfo::new("servo", 1_000_000, 100_000, 1_000_000);
    let of = |reclaims| {
        let mut c = Collector::new(run.clone(), vec![TaskInfo { reclaims, ..servo.clone() }]);
        for (number, assigned) in [(0, 100_000), (1, 130_000), (2, 150_000), (3, 100_000)] {
            let end = JobEnd::Exhausted;
            c.record(&Period { assigned, received: assigned, end, ..period(number) });
        }
        c.finish(u64::MAX);
        c.snapshot()
    };
    let results = of(true);
    assert_eq!(results.tasks[0].reclaimed_ns, Some(80_000));
    assert_eq!((results.totals.missed, results.totals.short, results.exit_code()), (0, 0, 0));
    assert_eq!(of(false).tasks[0].reclaimed_ns, None);
}
