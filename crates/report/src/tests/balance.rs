//! Whether a task received its budgets, and the verdict on one that did not.

use super::*;

/// Period `number` of the task of [`period`], in which it was ready throughout and received so
/// much, ns.
fn ready(number: u64, received: u64) -> Period {
    Period { received, end: JobEnd::Exhausted, completed: NEVER, ..period(number) }
}

/// One in which it suspended itself, and of its budget gave up so much, ns.
fn suspended(number: u64, received: u64, unused: u64) -> Period {
    Period { ready_throughout: false, unused, ..ready(number, received) }
}

/// The results of these periods, each given its number. The first one is left out.
fn results(periods: impl IntoIterator<Item = Period>) -> Results {
    let mut c = collector();
    for (number, p) in (0..).zip(periods) {
        c.record(&Period {
            number,
            release: period(number).release,
            deadline: period(number).deadline,
            ..p
        });
    }
    c.finish(u64::MAX);
    c.snapshot()
}

fn shortfall(periods: impl IntoIterator<Item = Period>) -> u64 {
    results(periods).tasks[0].shortfall_ns
}

#[test]
fn a_task_at_87_percent_without_a_missed_deadline_is_not_met() {
    let r = results((0..501).map(|n| ready(n, 87_300)));
    let Totals { periods, missed, unreported, short, met } = r.totals;
    assert_eq!((periods, missed, unreported, short, met, r.exit_code()), (500, 0, 0, 1, false, 1));
    // 500 budgets of 100 us: 6.35 ms are missing, and 1 % of 50 ms is tolerated.
    assert_eq!(
        (r.tasks[0].long_run_ppm, r.tasks[0].shortfall_ns),
        (Some(873_000), 6_350_000 - 500_000)
    );
    let verdict = "servo received 87.30 % of its budget in the 500 of 500 periods in which it \
                   wanted all of it.";
    assert_eq!(headline(&r), verdict);
    assert_eq!(shown(&r, 200).lines().next(), Some(verdict));
}

#[test]
fn an_error_of_at_most_one_budget_is_carried_and_no_shortfall() {
    // All of it in one period, or a little in each.
    let lost = |n| if n == 3 { ready(n, 0) } else { ready(n, 100_000) };
    assert_eq!(results((0..6).map(lost)).exit_code(), 0);
    assert_eq!(shortfall((0..11).map(|n| ready(n, 90_000))), 0, "ten tenths");
    assert_eq!(shortfall((0..11).map(|n| ready(n, 89_999))), 10);
    assert_eq!(shortfall((0..12).map(|n| ready(n, 90_000))), 10_000, "eleven tenths");
}

#[test]
fn a_long_run_tolerates_1_percent() {
    assert_eq!(results((0..10_001).map(|n| ready(n, 99_000))).exit_code(), 0);
    assert_eq!(shortfall((0..10_001).map(|n| ready(n, 98_999))), 10_000);
}

#[test]
fn periods_in_which_the_task_suspended_itself_cause_no_shortfall() {
    assert_eq!(shortfall((0..100).map(|n| suspended(n, 30_000, 70_000))), 0);
    assert_eq!(
        shortfall((0..100).map(|n| suspended(n, 30_000, 0))),
        0,
        "even if the host does not know why"
    );
    // They do not hide what the task lacks in other periods either.
    let alternating = |n| if n % 2 == 0 { suspended(n, 30_000, 70_000) } else { ready(n, 80_000) };
    assert_eq!(shortfall((0..101).map(alternating)), 50 * 20_000 - 100_000);
}

/// 70 us of a budget were cut off, and the job was stopped 20 us late: the next release settles
/// these.
#[test]
fn an_overrun_in_other_periods_is_settled_in_those_in_which_the_task_is_ready() {
    let alternating = |n| if n % 2 == 0 { suspended(n, 50_000, 70_000) } else { ready(n, 80_000) };
    assert_eq!(shortfall((0..101).map(alternating)), 0);
    // The first period is left out, but later ones settle its overrun, up to one budget.
    let first = |received| (0..3).map(move |n| ready(n, if n == 0 { received } else { 20_000 }));
    assert_eq!((shortfall(first(100_000)), shortfall(first(160_000))), (60_000, 0));
    assert_eq!(shortfall((0..4).map(|n| ready(n, if n == 0 { 900_000 } else { 0 }))), 100_000);
    // What is missing in the first period does not count.
    assert_eq!(shortfall(first(0)), 60_000);
}

#[test]
fn periods_that_were_woken_late_count_as_well() {
    assert_eq!(
        shortfall((0..101).map(|n| Period { woken_late: true, ..ready(n, 50_000) })),
        4_900_000
    );
}

#[test]
fn the_verdict_names_all_that_there_is() {
    let two = |received, miss: bool| {
        let run = Run { machine: machine().into(), ..Run::new(HostKind::User, "edf", &[1]) };
        let info = |name| TaskInfo::new(name, 1_000_000, 100_000, 1_000_000);
        let mut c = Collector::new(run, vec![info("servo"), info("arm")]);
        for n in 0..11 {
            c.record(&Period { miss: miss && n == 5, ..ready(n, received) });
            c.record(&Period { task: 1, ..ready(n, 50_000) });
        }
        c.finish(u64::MAX);
        c.snapshot()
    };
    let arm =
        "arm received 50.00 % of its budget in the 10 of 10 periods in which it wanted all of it.";
    assert_eq!(headline(&two(100_000, false)), arm);
    assert_eq!(headline(&two(100_000, true)), format!("servo missed 1 of 10 deadlines; {arm}"));
    let both = two(0, false);
    assert_eq!(both.totals.short, 2);
    let servo =
        "servo received 0.00 % of its budget in the 10 of 10 periods in which it wanted all of it";
    assert_eq!(headline(&both), format!("{servo}; {arm}"));
    assert!(shown(&both, 60).lines().all(|line| line.len() <= 60));
}

/// A task whose jobs end wants all of its budget only in the periods in which it is late.
#[test]
fn what_is_missing_in_missed_periods_is_not_reported_again() {
    let late = |n| {
        if n % 4 == 0 {
            Period { miss: true, ..ready(n, 10_000) }
        } else {
            suspended(n, 90_000, 0)
        }
    };
    let r = results((0..101).map(late));
    assert_eq!(
        (r.tasks[0].shortfall_ns, r.totals.missed, r.totals.short),
        (25 * 90_000 - 100_000, 25, 1)
    );
    assert_eq!(headline(&r), "servo missed 25 of 100 deadlines.");
    // More than one budget for each is missing here.
    let r = results((0..101).map(|n| Period { miss: n % 50 == 0, ..ready(n, 10_000) }));
    let both =
        "servo missed 2 of 100 deadlines; servo received 10.00 % of its budget in the 100 of 100 \
         periods in which it wanted all of it.";
    assert_eq!(headline(&r), both);
    let fifo = Results { host: HostKind::Fifo, ..results((0..11).map(|n| ready(n, 100_000))) };
    assert!(
        headline(&fifo).starts_with("All deadlines met: 1 task"),
        "nothing keeps budgets: {}",
        headline(&fifo)
    );
}

#[test]
fn side_by_side_shows_it_for_each_run() {
    let kept = results((0..11).map(|n| ready(n, 100_000)));
    let short =
        Results { label: Some("other".to_owned()), ..results((0..11).map(|n| ready(n, 50_000))) };
    let (runs, view) = ([kept, short], View { wide: true, ..View::default() });
    let text = side_by_side(&runs, &view);
    let lines: Vec<&str> = text.lines().collect();
    let title =
        lines.iter().position(|line| line.starts_with("budget received in the long run")).unwrap();
    let cells: Vec<&str> = lines[title + 1].split_whitespace().rev().take(2).collect();
    assert_eq!(cells, ["50.00", "100.00"], "{text}");
    let text = verdicts(&runs, &view);
    assert!(text.starts_with("punctual: All deadlines met and all budgets kept"), "{text}");
    assert!(text.contains("other: servo received 50.00 % of its budget"), "{text}");
}
