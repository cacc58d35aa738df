//! Policies are swapped at an instant of a simulated run.

mod common;

use common::{set, Seen, MS};
use punctual_host_sim::{replay, Options, Simulation};
use punctual_taskset::{DomainId, PolicySpec, TaskSet};
use punctual_trace::{Header, Limits, Trace, TraceBuffer, TraceSink};

/// 70 % of the CPU, of which each task wants all; every policy of the tests supports them.
fn greedy(policy: &str) -> TaskSet {
    let tasks = [
        "period = \"10ms\"; budget = \"2ms\"; priority = 3; work = { spin = \"forever\" }",
        "period = \"20ms\"; budget = \"4ms\"; priority = 2; work = { spin = \"forever\" }",
        "period = \"40ms\"; budget = \"12ms\"; priority = 1; work = { spin = \"forever\" }",
    ];
    set(policy, &tasks)
}

const POLICIES: [&str; 7] = ["rm", "dm", "edf", "fp", "td", "imprecise", "dual"];

fn with_policy(set: &TaskSet, policy: &str) -> TaskSet {
    TaskSet { policy: PolicySpec::named(policy), ..set.clone() }
}

/// Runs a set until `end`, with another policy from `at` on, ns.
fn swapped(set: &TaskSet, to: &str, at: u64, end: u64, options: Options) -> Seen {
    let mut seen = Seen::default();
    let mut simulation = Simulation::new(set, options).expect("it can be simulated");
    simulation.advance(at, &mut seen).expect("it runs");
    simulation.swap_policies(&with_policy(set, to), &mut seen).expect("it supports the set");
    simulation.advance(end, &mut seen).expect("it runs");
    simulation.finish(end, &mut seen).expect("it ends");
    seen
}

const QUARTER: u64 = MS / 4;

/// Releases of the whole run that did not receive exactly their budgets, by (task, number). None is
/// lost or off its grid, and none received more.
fn without_budget(seen: &Seen, set: &TaskSet, end: u64) -> Vec<(u32, u64)> {
    let mut short = Vec::new();
    for (n, task) in (0..).zip(&set.tasks) {
        let whole = seen.whole(n, end);
        assert_eq!(whole.len() as u64, end / task.period, "task {n}");
        for (k, p) in (0..).zip(whole) {
            assert_eq!((p.number, p.release, p.assigned), (k, k * task.period, task.budget));
            assert!(p.received <= task.budget, "task {n}, release {k}: {}", p.received);
            assert_eq!(p.miss, p.received < task.budget, "task {n}, release {k}");
            if p.miss {
                short.push((n, k));
            }
        }
    }
    short
}

#[test]
fn at_any_instant_no_period_is_lost_and_each_release_receives_its_budget_once() {
    for from in POLICIES {
        let set = greedy(from);
        for to in POLICIES.into_iter().filter(|&to| to != "td" || from == "td") {
            for at in (0..160).map(|k| 40 * MS + k * QUARTER) {
                let seen = swapped(&set, to, at, 120 * MS, Options::default());
                assert_eq!(without_budget(&seen, &set, 120 * MS), [], "{from} to {to} at {at}");
            }
        }
    }
}

/// In the hyperperiod of the swap the releases in flight and the windows of the table compete.
#[test]
fn a_time_table_receives_its_budgets_from_the_next_hyperperiod_on() {
    for from in POLICIES {
        let set = greedy(from);
        for at in (0..160).map(|k| 40 * MS + k * QUARTER) {
            let seen = swapped(&set, "td", at, 160 * MS, Options::default());
            // Timers that expire at the instant of the swap are handled before it.
            let next = (at + 1).next_multiple_of(40 * MS);
            let late = |&(n, k): &(u32, u64)| k * set.tasks[n as usize].period >= next;
            let short = without_budget(&seen, &set, 160 * MS);
            assert!(!short.iter().any(late), "{from} to td at {at}: {short:?}");
        }
    }
}

#[test]
fn to_edf_a_set_that_fits_its_own_policy_keeps_all_deadlines() {
    // 90 %: under rate monotonic the response time of the third task is 18 ms.
    let tasks = [
        "period = \"4ms\"; budget = \"1ms\"; work = { spin = \"forever\" }",
        "period = \"5ms\"; budget = \"2ms\"; work = { spin = \"forever\" }",
        "period = \"20ms\"; budget = \"5ms\"; work = { spin = \"forever\" }",
    ];
    let set = set("rm", &tasks);
    for at in (0..200).map(|k| 20 * MS + k * MS / 10) {
        let seen = swapped(&set, "edf", at, 100 * MS, Options::default());
        assert_eq!(without_budget(&seen, &set, 100 * MS), [], "at {at}");
    }
}

#[test]
fn a_swap_is_in_the_trace_which_replays_to_the_same_decisions() {
    for (from, to) in [("edf", "rm"), ("rm", "dual"), ("imprecise", "edf"), ("edf", "td")] {
        let buffer = TraceBuffer::default();
        let header = Header::new("sim", 0, from, vec![String::new(); 3], Limits::default());
        let sink = TraceSink::new(buffer.clone(), header);
        let traces = vec![(DomainId(0), sink.clone())];
        let options = Options { traces, ..Options::default() };
        swapped(&greedy(from), to, 53 * MS, 120 * MS, options);
        sink.finish().expect("memory takes it");
        let bytes = buffer.bytes();
        let records = Trace::read(&mut &bytes[..]).expect("it is whole").records;
        let named = records.iter().filter_map(|r| Some((r.time, r.small, r.policy_name()?)));
        assert_eq!(named.collect::<Vec<_>>(), [(53 * MS, 0, to.to_owned())]);
        let replayed = replay(&bytes[..], &mut |_| true).expect("it can be replayed");
        assert_eq!(replayed.difference, None, "{from} to {to}");
        assert_eq!(replayed.until, 120 * MS);
    }
}

#[test]
fn a_policy_that_does_not_support_the_set_is_refused_and_nothing_changes() {
    let arrives =
        "period = \"10ms\"; budget = \"2ms\"; arrival = { aperiodic = \"15ms\", seed = 1 }; \
                   work = { spin = \"1ms\" }";
    let set =
        set("edf", &[arrives, "period = \"20ms\"; budget = \"4ms\"; work = { spin = \"4ms\" }"]);
    let mut seen = Seen::default();
    let mut simulation = Simulation::new(&set, Options::default()).expect("it can be simulated");
    simulation.advance(5 * MS, &mut seen).expect("it runs");
    let to = with_policy(&set, "td");
    let refused = simulation.swap_policies(&to, &mut seen).expect_err("it is not periodic");
    assert!(refused.cause.contains("not periodic"), "{refused}");
    simulation.advance(60 * MS, &mut seen).expect("it runs");
    simulation.finish(60 * MS, &mut seen).expect("it ends");
    let unchanged = common::run(&set, 60 * MS);
    assert_eq!(seen.intervals, unchanged.intervals);
}
