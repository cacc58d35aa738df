//! EDF with reclaiming: what tasks take of the budgets that others do not use, exactly.

mod common;

use common::{run, set, trace, Seen, MS};
use punctual_host_sim::{replay, Options, Simulation};
use punctual_taskset::TaskSet;

fn reclaiming(tasks: &[&str]) -> TaskSet {
    let mut set = set("edf", tasks);
    set.policy.reclaim = true;
    set
}

const GREEDY: &str = "period = \"10ms\"; budget = \"2ms\"; work = { spin = \"forever\" }";

/// 3 ms, of which bandwidths that are rounded up take 1 ns.
const THREE: u64 = 3 * MS - 1;

/// What a task received in each period, ns.
fn received(seen: &Seen, task: u32, end: u64) -> Vec<u64> {
    seen.whole(task, end).iter().map(|p| p.received).collect()
}

/// The bandwidths of 20 % and 40 % are active until 5 ms: 3 ms of execution deplete 2 ms. Then the
/// other task is past its 0-lag time (20 ms - 6.67 ms / 0.4), and execution depletes 2/9 of itself:
/// of eight jobs, each leaves two thirds of what was left.
#[test]
fn a_task_takes_what_another_leaves_from_its_zero_lag_time_on() {
    let modest = "period = \"20ms\"; budget = \"8ms\"; work = { spin = \"2ms\" }";
    let seen = run(&reclaiming(&[GREEDY, modest]), 40 * MS);
    let second: f64 = (0..8).map(|k| 3e6 * (2.0_f64 / 3.0).powi(k)).sum();
    let all = received(&seen, 0, 40 * MS);
    assert_eq!((all[0], all[2]), (THREE, THREE));
    assert!((all[1] as f64 - second).abs() < 16.0, "{all:?} {second}");
    assert_eq!(all[1], all[3]);
    assert_eq!(seen.misses(), []);
}

/// In proportion to their bandwidths, and up to 90 % of the CPU.
#[test]
fn tasks_that_all_want_more_share_what_is_left() {
    let other = "period = \"20ms\"; budget = \"8ms\"; work = { spin = \"forever\" }";
    let seen = run(&reclaiming(&[GREEDY, other]), 100 * MS);
    assert_eq!(received(&seen, 0, 100 * MS), [THREE; 10]);
    assert_eq!(received(&seen, 1, 100 * MS), [12 * MS - 1; 5]);
    for p in seen.periods.iter().filter(|p| p.release < 100 * MS) {
        assert!(p.received == p.assigned && p.unused == 0 && !p.miss, "{p:?}");
    }
}

/// The set of the figure in Lipari and Baruah 2000, section 2: two servers of a half. A CBS ends
/// the first after 3 ms; here the second, which has nothing to execute, leaves it all but a tenth.
#[test]
fn a_server_alone_has_the_whole_of_nine_tenths_but_what_its_last_job_leaves() {
    let absent =
        "period = \"6ms\"; budget = \"3ms\"; arrival = [\"60ms\"]; work = { spin = \"1ms\" }";
    let alone = "period = \"6ms\"; budget = \"3ms\"; work = { spin = \"forever\" }";
    let seen = run(&reclaiming(&[alone, absent]), 60 * MS);
    for received in received(&seen, 0, 60 * MS) {
        let share = received as f64 / 5.4e6;
        assert!((0.96..=1.0).contains(&share), "{received}");
    }
}

/// A task that sleeps until after its 0-lag time is cut to its bandwidth when it wakes up, as
/// without reclaiming, and has disturbed no other.
#[test]
fn a_task_that_sleeps_is_cut_to_its_bandwidth_and_the_time_of_its_sleep_is_reclaimed() {
    let sleeper = "period = \"20ms\"; budget = \"8ms\"; work = { steps = [{ spin = \"1ms\" }, \
                   { sleep = \"14ms\" }, { spin = \"100ms\" }] }";
    let seen = run(&reclaiming(&[GREEDY, sleeper]), 20 * MS);
    let greedy = received(&seen, 0, 20 * MS);
    assert!(greedy[0] == THREE && greedy[1] > 5 * MS, "{greedy:?}");
    let intervals = seen.in_ms();
    let woken = intervals.iter().filter(|(task, from, _)| *task == 1 && *from >= 15);
    // 40 % of what is left until its deadline, and of that what is sure: half as much again.
    let after: u64 = woken.map(|(_, from, to)| to - from).sum();
    assert!((1..=3).contains(&after), "{intervals:?}");
    assert!(seen.misses().iter().all(|(task, _)| *task == 1), "{:?}", seen.misses());
}

/// From EDF to EDF with reclaiming and back, at any instant: no release lacks its budget.
#[test]
fn a_swap_to_reclaiming_and_back_takes_no_budget_from_a_release() {
    let tasks = [
        GREEDY,
        "period = \"20ms\"; budget = \"4ms\"; work = { spin = \"forever\" }",
        "period = \"40ms\"; budget = \"12ms\"; work = { uniform = [\"1ms\", \"12ms\"], seed = 5 }",
    ];
    let (with, without) = (reclaiming(&tasks), set("edf", &tasks));
    let mut more = 0;
    for at in (0..160).map(|k| 40 * MS + k * MS / 4) {
        for (from, to) in [(&with, &without), (&without, &with)] {
            let mut seen = Seen::default();
            let mut simulation =
                Simulation::new(from, Options::default()).expect("it can be simulated");
            simulation.advance(at, &mut seen).expect("it runs");
            simulation.swap_policies(to, &mut seen).expect("it supports the set");
            simulation.advance(160 * MS, &mut seen).expect("it runs");
            simulation.finish(160 * MS, &mut seen).expect("it ends");
            assert_eq!(seen.misses(), [], "at {at}");
            for task in 0..2 {
                let budget = from.tasks[task as usize].budget;
                let all = received(&seen, task, 160 * MS);
                assert!(all.iter().all(|&ns| ns >= budget), "at {at}: {all:?}");
                more += all.iter().filter(|&&ns| ns > budget).count();
            }
        }
    }
    assert!(more > 1000, "{more}");
}

#[test]
fn a_run_that_reclaims_replays_to_the_same_decisions() {
    let tasks = [
        GREEDY,
        "period = \"7ms\"; budget = \"2ms\"; work = { uniform = [\"0.5ms\", \"3ms\"], seed = 7 }",
        "period = \"11ms\"; budget = \"3ms\"; work = { steps = [{ spin = \"1ms\" }, { sleep = \
         \"1ms\" }, { spin = \"3ms\" }] }",
    ];
    let bytes = trace(&reclaiming(&tasks), 385 * MS);
    let replayed = replay(&bytes[..], &mut |_| true).expect("it can be replayed");
    assert_eq!(replayed.difference, None);
    assert!(replayed.decisions > 200, "{replayed:?}");
}

/// What cannot be reclaimed from is refused before anything runs.
#[test]
fn sets_in_which_nothing_can_be_reclaimed_are_refused() {
    let full = [
        "period = \"10ms\"; deadline = \"4ms\"; budget = \"3ms\"; work = { spin = \"3ms\" }",
        "period = \"10ms\"; budget = \"4ms\"; work = { spin = \"4ms\" }",
    ];
    let refused = |set: &TaskSet| match Simulation::new(set, Options::default()) {
        Ok(_) => panic!("it was taken"),
        Err(e) => e.to_string(),
    };
    assert!(
        refused(&reclaiming(&full)).contains("115 % together"),
        "{}",
        refused(&reclaiming(&full))
    );
    let grouped = |server: &str, top: &str, policy: &str| {
        let text = format!(
            "cpu = 0\npolicy = {top}\n[[group]]\nname = \"g\"\npolicy = {policy}\nserver = \
             \"{server}\"\nperiod = \"10ms\"\nbudget = \"2ms\"\n[[task]]\nname = \"t\"\ngroup = \
             \"g\"\nperiod = \"20ms\"\nbudget = \"1ms\"\nwork = {{ spin = \"1ms\" }}\n"
        );
        TaskSet::parse(&text, "a test").unwrap_or_else(|e| panic!("{e}\n{text}"))
    };
    let reclaims = "{ name = \"edf\", reclaim = true }";
    let beside = refused(&grouped("deferrable", reclaims, "\"rm\""));
    assert!(
        beside.contains("group \"g\"") && beside.contains("more than its bandwidth"),
        "{beside}"
    );
    let mut group = grouped("constant_bandwidth", "\"edf\"", "\"edf\"");
    group.groups[0].policy.reclaim = true;
    let inside = refused(&group);
    assert!(inside.contains("only the policy at the top can reclaim"), "{inside}");
    Simulation::new(&grouped("constant_bandwidth", reclaims, "\"rm\""), Options::default())
        .expect("it is taken");
}
