//! Worked examples of the literature, with their numbers.

mod common;

use common::{cpu, fits, responses, set, task, tasks};
use punctual_analysis::{admit, analyse, Fit, Test};
use punctual_taskset::{Arrival, Body, Step, TaskSet, TaskSpec};

#[test]
fn joseph_and_pandya_three_tasks_respond_after_80_15_and_5() {
    // Burns and Wellings, "Real-Time Systems and Programming Languages": a (80, 40), b (40, 10),
    // c (20, 5) respond after 80, 15 and 5.
    let set = set("rm", tasks(&[(40, 80), (10, 40), (5, 20)]));
    assert_eq!(responses(&set), [Some(80), Some(15), Some(5)]);
    let cpu = cpu(&set);
    assert!(cpu
        .tasks
        .iter()
        .all(|t| t.fit == Fit::Fits && t.exact && t.test == Test::ResponseTime));
    assert_eq!(cpu.tasks[1].slack, Some(25));
}

#[test]
fn burns_and_wellings_three_tasks_respond_after_3_6_and_20() {
    // Burns and Wellings, the response-time example: (7, 3), (12, 3), (20, 5).
    assert_eq!(
        responses(&set("rm", tasks(&[(3, 7), (3, 12), (5, 20)]))),
        [Some(3), Some(6), Some(20)]
    );
}

#[test]
fn buttazzo_two_tasks_fail_under_rm_and_fit_under_edf() {
    // Buttazzo, "Hard Real-Time Computing Systems", 4.4: 2 in 5 and 4 in 7, 97 % of the CPU.
    let of = [(2, 5), (4, 7)];
    assert_eq!(fits(&set("rm", tasks(&of))), [true, false]);
    assert_eq!(fits(&set("edf", tasks(&of))), [true, true]);
    assert!(admit(&set("edf", tasks(&of))).is_err(), "more than 90 % is never promised");
}

#[test]
fn deadline_monotonic_meets_what_rate_monotonic_misses() {
    // Leung and Whitehead 1982: with deadlines below periods the order of deadlines is optimal.
    let of = || vec![task(2, 10, 10), task(3, 12, 4)];
    assert_eq!(fits(&set("rm", of())), [true, false]);
    assert_eq!(responses(&set("dm", of())), [Some(5), Some(3)]);
}

#[test]
fn four_tasks_of_shorter_deadlines_fill_theirs_to_the_last_slot() {
    // Burns and Wellings, deadline-monotonic example: (3, 20, 5), (3, 15, 7), (4, 10, 10), (3, 20,
    // 20).
    let of = vec![task(3, 20, 5), task(3, 15, 7), task(4, 10, 10), task(3, 20, 20)];
    assert_eq!(responses(&set("dm", of)), [Some(3), Some(6), Some(10), Some(20)]);
}

#[test]
fn jitter_of_a_more_important_task_brings_its_releases_closer() {
    // Two releases of t1 at distance 10 - 4 = 6 fall within the response of t2.
    let jittery = TaskSpec { jitter: 4, ..task(2, 10, 10) };
    assert_eq!(responses(&set("rm", vec![jittery, task(5, 40, 40)])), [Some(6), Some(9)]);
    assert_eq!(responses(&set("rm", vec![task(2, 10, 10), task(5, 40, 40)])), [Some(2), Some(7)]);
}

#[test]
fn blocking_counts_once_and_makes_the_test_sufficient() {
    let blocked = TaskSpec { blocking: 3, ..task(2, 10, 10) };
    let set = set("rm", vec![blocked, task(5, 40, 40)]);
    assert_eq!(responses(&set), [Some(5), Some(7)]);
    assert!(!cpu(&set).tasks[0].exact && cpu(&set).tasks[1].exact);
}

#[test]
fn zhang_and_burns_demand_finds_the_interval_that_edf_cannot_serve() {
    // Baruah, Rosier and Howell 1990: full below 1, and yet 2 + 2 are due within 3.
    assert_eq!(fits(&set("edf", vec![task(2, 10, 3), task(2, 10, 3)])), [false, false]);
    assert_eq!(fits(&set("edf", vec![task(2, 10, 3), task(2, 10, 4)])), [true, true]);
    // A longer deadline than the longest interval that fails is met all the same.
    assert_eq!(
        fits(&set("edf", vec![task(2, 10, 3), task(2, 10, 3), task(1, 50, 50)])),
        [false, false, true]
    );
}

#[test]
fn spuri_worst_case_under_edf_is_not_the_synchronous_release() {
    // Spuri 1996: t1 is worst when released at 1, its deadline with that of t2's second job.
    let set = set("edf", vec![task(1, 4, 4), task(2, 6, 6), task(3, 8, 8)]);
    let found = responses(&set);
    assert!(cpu(&set).tasks.iter().all(|t| t.reached && t.exact));
    assert_eq!(found, brute_force_edf(&set).into_iter().map(Some).collect::<Vec<_>>());
}

/// The longest response of each task over all offsets of the others, slot by slot; ties against it.
fn brute_force_edf(set: &TaskSet) -> Vec<u64> {
    let judge = |me: usize| {
        let mut worst = 0;
        for a in 0..=24u64 {
            // All others at 0; this task on the grid that has a release at a.
            let first = a % set.tasks[me].period;
            let mut jobs: Vec<(u64, u64, u64, usize)> = Vec::new();
            for (n, t) in set.tasks.iter().enumerate() {
                let start = if n == me { first } else { 0 };
                let releases = (0..20).map(|k| start + k * t.period);
                jobs.extend(releases.map(|r| (r, r + t.deadline, t.budget, n)));
            }
            for now in 0..60 {
                let ready = jobs.iter_mut().filter(|j| j.0 <= now && j.2 > 0);
                let Some(job) = ready.min_by_key(|j| (j.1, j.3 == me)) else { continue };
                job.2 -= 1;
                if job.2 == 0 && job.3 == me {
                    worst = worst.max(now + 1 - job.0);
                }
            }
        }
        worst
    };
    (0..set.tasks.len()).map(judge).collect()
}

#[test]
fn table_2_of_the_rtai_paper_and_fig_6_fit_under_edf() {
    for text in [
        include_str!("../../../examples/rtai-table2.toml"),
        include_str!("../../../examples/rtai-fig6.toml"),
    ] {
        let set = TaskSet::parse(text, "set").unwrap();
        let analysis = analyse(&set);
        assert!(analysis.fits(), "{analysis:#?}");
    }
    // Table 2: 2 ms / 1 ms and 5 ms / 1 ms.
    let set = TaskSet::parse(include_str!("../../../examples/rtai-table2.toml"), "set").unwrap();
    assert_eq!(cpu(&set).load.utilization.0, 700_000);
    assert_eq!(responses(&set), [Some(1_000_000), Some(2_000_000)]);
}

#[test]
fn equal_priorities_go_in_file_order_where_they_are_always_released_together() {
    // Both every 10, together: the second never comes before the first.
    assert_eq!(responses(&set("fp", vec![task(3, 10, 3), task(4, 10, 10)])), [Some(3), Some(7)]);
    // A sporadic one may come before: it counts in full, and the figure is a bound.
    let sporadic =
        TaskSpec { arrival: Arrival::Sporadic { longest: 20, seed: 1 }, ..task(4, 10, 10) };
    let set_of_two = set("fp", vec![task(3, 10, 10), sporadic]);
    assert_eq!(responses(&set_of_two), [Some(7), Some(7)]);
    assert!(cpu(&set_of_two).tasks.iter().all(|t| !t.exact));
    // Of different periods the second one may come 1 ns before, and then goes first.
    assert_eq!(responses(&set("fp", vec![task(3, 10, 10), task(4, 14, 14)])), [Some(6), Some(7)]);
}

#[test]
fn a_task_that_sleeps_comes_late_and_then_closer_to_its_next_release() {
    let spin = || Step::Spin(punctual_taskset::Spin::For(1));
    let sleeper =
        TaskSpec { body: Body::Steps(vec![spin(), Step::Sleep(2), spin()]), ..task(2, 10, 8) };
    // Its own response has its sleep in it; for the other it may be put off until 8 - 2 = 6.
    assert_eq!(responses(&set("dm", vec![sleeper, task(5, 40, 40)])), [Some(4), Some(9)]);
}

#[test]
fn an_aperiodic_task_is_promised_nothing_and_may_not_stand_before_others() {
    let aperiodic = |priority| TaskSpec {
        arrival: Arrival::Aperiodic { mean: 100, seed: 1 },
        priority,
        ..task(1, 100, 100)
    };
    let hard = || TaskSpec { priority: 5, ..task(5, 20, 20) };
    let below = cpu(&set("fp", vec![hard(), aperiodic(1)]));
    assert_eq!((below.tasks[0].fit, below.tasks[1].fit), (Fit::Fits, Fit::BestEffort));
    let above = cpu(&set("fp", vec![hard(), aperiodic(9)]));
    assert_eq!(above.tasks[0].fit, Fit::Late);
    assert!(above.tasks[0].why.as_ref().unwrap().contains("t2"));
    assert_eq!(cpu(&set("edf", vec![hard(), aperiodic(1)])).tasks[0].fit, Fit::Late);
}

#[test]
fn a_mandatory_part_must_fit_and_an_optional_one_need_not() {
    // Together 6 + 6 in 10: only the mandatory 3 + 3 are promised.
    let part = || TaskSpec { mandatory: Some(3), ..task(6, 10, 10) };
    let cpu = cpu(&set("imprecise", vec![part(), part()]));
    assert!(cpu.schedulable() && cpu.tasks.iter().all(|t| t.test == Test::MandatoryPart));
    assert_eq!(cpu.tasks[1].response, Some(6));
}

#[test]
fn a_promotion_must_leave_the_response_time_of_the_upper_band() {
    // Davis and Wellings 1995: promotion = deadline - response = 12 - 6.
    let with = |promotion| TaskSpec { promotion, ..task(3, 12, 12) };
    let of = |promotion| set("dual", vec![task(3, 7, 7), with(promotion)]);
    assert_eq!(fits(&of(Some(6))), [true, true]);
    assert_eq!(fits(&of(Some(7))), [true, false]);
    assert_eq!(fits(&of(None)), [true, true]);
}
