//! Textbook schedules, to the nanosecond.

mod common;

use common::{run, run_with, set, MS};
use punctual_host_sim::{horizon, hyperperiod, Options, Simulation, Watcher};
use punctual_taskset::{Body, Costs, DomainId, DomainSpec, Spin};
use punctual_trace::JobEnd;

/// 2 in 5 and 4 in 7, 97 % of a CPU: the usual example of a set that EDF meets and RM does not
/// (Buttazzo, Hard Real-Time Computing Systems, 4.4).
const FULL: [&str; 2] = [
    "period = \"5ms\"; budget = \"2ms\"; work = { spin = \"2ms\" }",
    "period = \"7ms\"; budget = \"4ms\"; work = { spin = \"4ms\" }",
];

#[test]
fn edf_meets_all_deadlines_of_the_full_pair_in_the_textbook_order() {
    let set = set("edf", &FULL);
    assert_eq!(hyperperiod(&set).unwrap(), 35 * MS);
    let seen = run(&set, 35 * MS);
    assert_eq!(seen.misses(), []);
    assert_eq!(seen.in_ms()[..5], [(0, 0, 2), (1, 2, 6), (0, 6, 8), (1, 8, 12), (0, 12, 14)]);
    // Each release got exactly what it wanted: 7 * 2 + 5 * 4 = 34 of 35 ms.
    assert_eq!(seen.intervals.iter().map(|(_, from, to)| to - from).sum::<u64>(), 34 * MS);
}

#[test]
fn rm_misses_the_first_deadline_of_the_longer_period_and_stops_it_there() {
    let seen = run(&set("rm", &FULL), 35 * MS);
    assert_eq!(seen.in_ms()[..3], [(0, 0, 2), (1, 2, 5), (0, 5, 7)]);
    assert_eq!(seen.misses()[0], (1, 7 * MS));
    let first = seen.whole(1, 7 * MS)[0];
    assert_eq!((first.end, first.received, first.started), (JobEnd::Expired, 3 * MS, 2 * MS));
    assert!(seen.misses().iter().all(|&(task, _)| task == 1), "the shorter period never misses");
}

#[test]
fn rm_response_times_from_the_critical_instant_are_those_of_response_time_analysis() {
    let tasks = [
        "period = \"4ms\"; budget = \"1ms\"; work = { spin = \"1ms\" }",
        "period = \"6ms\"; budget = \"2ms\"; work = { spin = \"2ms\" }",
        "period = \"12ms\"; budget = \"3ms\"; work = { spin = \"3ms\" }",
    ];
    let seen = run(&set("rm", &tasks), 12 * MS);
    let first = |task| seen.whole(task, 12 * MS)[0].completed;
    // R3 = 3 + ceil(R3 / 4) * 1 + ceil(R3 / 6) * 2 = 10.
    assert_eq!([first(0), first(1), first(2)], [MS, 3 * MS, 10 * MS]);
    assert_eq!(seen.misses(), []);
}

#[test]
fn deadline_monotonic_prefers_the_shorter_deadline_and_fp_the_larger_priority() {
    let tasks = [
        "period = \"8ms\"; budget = \"2ms\"; work = { spin = \"2ms\" }; priority = 9",
        "period = \"10ms\"; deadline = \"3ms\"; budget = \"2ms\"; work = { spin = \"2ms\" }; \
         priority = 10",
    ];
    assert_eq!(run(&set("dm", &tasks), 8 * MS).in_ms(), [(1, 0, 2), (0, 2, 4)]);
    assert_eq!(
        run(&set("rm", &tasks), 8 * MS).in_ms(),
        [(0, 0, 2), (1, 2, 3)],
        "the deadline cuts it off"
    );
    assert_eq!(run(&set("fp", &tasks), 8 * MS).in_ms(), [(1, 0, 2), (0, 2, 4)]);
}

#[test]
fn a_job_that_is_done_exactly_at_its_deadline_has_met_it() {
    let seen = run(
        &set("edf", &["period = \"5ms\"; budget = \"5ms\"; work = { spin = \"5ms\" }"]),
        20 * MS,
    );
    let all = seen.whole(0, 20 * MS);
    assert_eq!(all.len(), 4);
    assert!(all.iter().all(|p| !p.miss && p.end == JobEnd::Completed && p.completed == p.deadline));
}

#[test]
fn a_job_without_anything_to_do_is_done_at_once() {
    let mut set = set("edf", &["period = \"5ms\"; budget = \"1ms\"; work = { spin = \"1ms\" }"]);
    set.tasks[0].body = Body::Spin(Spin::For(0));
    let seen = run(&set, 10 * MS);
    let all = seen.whole(0, 10 * MS);
    assert_eq!(all.len(), 2);
    assert!(all
        .iter()
        .all(|p| (p.end, p.completed, p.received) == (JobEnd::Completed, p.release, 0)));
}

#[test]
fn offsets_are_kept_and_the_horizon_is_two_hyperperiods_after_the_last() {
    let tasks = [
        "period = \"4ms\"; budget = \"1ms\"; work = { spin = \"1ms\" }; offset = \"3ms\"",
        "period = \"6ms\"; budget = \"1ms\"; work = { spin = \"1ms\" }",
    ];
    let set = set("rm", &tasks);
    let until = horizon(&set).unwrap();
    assert_eq!((until.end, until.hyperperiod), (27 * MS, 12 * MS));
    let releases: Vec<u64> =
        run(&set, until.end).whole(0, until.end).iter().map(|p| p.release / MS).collect();
    assert_eq!(releases, [3, 7, 11, 15, 19, 23]);
}

#[test]
fn a_hyperperiod_beyond_64_bits_is_named_and_no_panic() {
    let primes = [999_999_937u64, 999_999_893, 999_999_883, 999_999_797];
    let tasks: Vec<String> = primes
        .iter()
        .map(|p| format!("period = \"{p}ns\"; budget = \"1ms\"; work = {{ spin = \"1ms\" }}"))
        .collect();
    let set = set("edf", &tasks.iter().map(String::as_str).collect::<Vec<_>>());
    let error = hyperperiod(&set).unwrap_err().to_string();
    assert!(error.contains("146 years") && error.contains("t2"), "{error}");
}

#[test]
fn overheads_delay_tasks_and_are_not_charged() {
    let tasks = [
        "period = \"5ms\"; budget = \"2ms\"; work = { spin = \"2ms\" }",
        "period = \"10ms\"; budget = \"4ms\"; work = { spin = \"4ms\" }",
    ];
    let costs = Costs { release: 100_000, switch: 10_000, ..Costs::NONE };
    let (seen, outcome) =
        run_with(&set("rm", &tasks), 10 * MS, Options { costs, ..Options::default() });
    // Both are released at 0, and t0 gets the CPU: 210 us later it runs.
    assert_eq!(seen.intervals[0], (0, 210_000, 2_210_000));
    assert_eq!(seen.intervals[1], (1, 2_220_000, 5_000_000));
    assert_eq!(seen.intervals[2], (0, 5_110_000, 7_110_000));
    assert_eq!(seen.intervals[3], (1, 7_120_000, 8_340_000));
    assert_eq!(seen.whole(1, 10 * MS)[0].received, 4 * MS, "its budget is whole");
    // Five releases (two of them at the very end, whose time is not spent any more), five switches.
    assert_eq!(outcome.count.overhead, 3 * 100_000 + 4 * 10_000);
}

#[test]
fn with_overheads_budgets_still_end_exactly() {
    let tasks = [
        "period = \"5ms\"; budget = \"1ms\"; work = { spin = \"forever\" }",
        "period = \"3ms\"; budget = \"1ms\"; work = { spin = \"1ms\" }",
    ];
    let costs = Costs { release: 7_001, switch: 3_001, timer: 13, command: 11, ..Costs::NONE };
    let (seen, _) = run_with(&set("edf", &tasks), 15 * MS, Options { costs, ..Options::default() });
    assert!(seen.whole(0, 15 * MS).iter().all(|p| p.end == JobEnd::Exhausted && p.received == MS));
    assert!(seen.whole(1, 15 * MS).iter().all(|p| p.end == JobEnd::Completed && p.received == MS));
}

#[test]
fn a_watcher_may_end_a_run_of_one_cpu_or_several() {
    struct Impatient(u64);
    impl Watcher for Impatient {
        fn proceeds(&mut self, now: u64) -> bool {
            now < self.0
        }
    }
    let mut set = set("edf", &FULL);
    for cpus in [vec![0], vec![0, 1]] {
        set.tasks[1].domain = DomainId(cpus.len() as u32 - 1);
        set.domains = cpus.into_iter().map(DomainSpec::of_cpu).collect();
        let simulation = Simulation::new(&set, Options::default()).expect("it can be simulated");
        let outcome =
            simulation.run(1_000_000 * MS, &mut Impatient(200_000 * MS)).expect("it runs");
        assert!(outcome.interrupted && outcome.reached >= 100_000 * MS, "{outcome:?}");
        assert!(outcome.reached < 400_000 * MS && outcome.count.releases > 10_000, "{outcome:?}");
    }
}
