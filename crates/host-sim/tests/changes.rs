//! Tasks get other parameters at an instant of a simulated run.

mod common;

use common::{set, Seen, MS};
use punctual_host_sim::{replay, Options, Simulation};
use punctual_taskset::{DomainId, TaskChange, TaskSet};
use punctual_trace::{Header, Limits, TraceBuffer, TraceSink};

/// 55 % of the CPU, of which each task wants all.
fn greedy(policy: &str) -> TaskSet {
    let tasks = [
        "period = \"10ms\"; budget = \"2ms\"; priority = 3; work = { spin = \"forever\" }",
        "period = \"20ms\"; budget = \"4ms\"; priority = 2; work = { spin = \"forever\" }",
        "period = \"40ms\"; budget = \"6ms\"; priority = 1; work = { spin = \"forever\" }",
    ];
    set(policy, &tasks)
}

const END: u64 = 200 * MS;

/// Runs a set until `END`; the second task changes at `at`, ns.
fn changed(set: &TaskSet, change: &TaskChange, at: u64, options: Options) -> Seen {
    let mut seen = Seen::default();
    let mut simulation = Simulation::new(set, options).expect("it can be simulated");
    simulation.advance(at, &mut seen).expect("it runs");
    simulation.change(1, change, &mut seen).expect("it is a reservation");
    simulation.advance(END, &mut seen).expect("it runs");
    simulation.finish(END, &mut seen).expect("it ends");
    seen
}

#[test]
fn the_next_release_comes_when_it_was_due_and_later_ones_at_the_new_period() {
    let changes = [
        TaskChange { period: Some(12 * MS), budget: Some(3 * MS), ..TaskChange::default() },
        TaskChange { period: Some(35 * MS), budget: Some(9 * MS), ..TaskChange::default() },
        TaskChange { deadline: Some(9 * MS), ..TaskChange::of_budget(5 * MS) },
    ];
    for policy in ["edf", "rm", "dm", "fp"] {
        let before = greedy(policy);
        for change in &changes {
            let mut after = before.tasks[1].clone();
            change.apply(&mut after);
            for at in (0..160).map(|k| 40 * MS + k * MS / 4) {
                let seen = changed(&before, change, at, Options::default());
                // What happens at that very instant comes first.
                let next = (at + 1).next_multiple_of(20 * MS);
                let mut due = 0;
                for (k, p) in (0..).zip(seen.whole(1, END)) {
                    let spec = if due < next { &before.tasks[1] } else { &after };
                    let found = (p.number, p.release, p.deadline - p.release, p.assigned);
                    let place = format!("{policy}, {change:?} at {at}");
                    assert_eq!(found, (k, due, spec.deadline, spec.budget), "{place}");
                    assert_eq!((p.received, p.miss), (spec.budget, false), "{place}: {k}");
                    due += spec.period;
                }
                assert!(due + after.period > END, "none is missing");
                assert_eq!(seen.misses(), [], "{policy}, {change:?} at {at}");
            }
        }
    }
}

#[test]
fn the_last_of_several_changes_before_a_release_holds_with_all_that_it_leaves_as_it_was() {
    let mut seen = Seen::default();
    let set = greedy("edf");
    let mut simulation = Simulation::new(&set, Options::default()).expect("it can be simulated");
    simulation.advance(45 * MS, &mut seen).expect("it runs");
    let longer = TaskChange { period: Some(30 * MS), ..TaskChange::default() };
    for change in [longer, TaskChange::of_budget(MS), TaskChange::of_budget(3 * MS)] {
        simulation.change(1, &change, &mut seen).expect("it is a reservation");
    }
    simulation.advance(END, &mut seen).expect("it runs");
    simulation.finish(END, &mut seen).expect("it ends");
    let found = seen.whole(1, END).into_iter().map(|p| (p.release / MS, p.assigned / MS));
    let expected = [(0, 4), (20, 4), (40, 4), (60, 3), (90, 3), (120, 3), (150, 3)];
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[test]
fn a_priority_holds_from_the_next_release_on() {
    let tasks = [
        "period = \"10ms\"; budget = \"2ms\"; priority = 2; work = { spin = \"2ms\" }",
        "period = \"10ms\"; budget = \"3ms\"; priority = 1; work = { spin = \"3ms\" }",
    ];
    let change = TaskChange { priority: Some(3), ..TaskChange::default() };
    let mut seen = Seen::default();
    let mut simulation =
        Simulation::new(&set("fp", &tasks), Options::default()).expect("it can be simulated");
    simulation.advance(11 * MS, &mut seen).expect("it runs");
    simulation.change(1, &change, &mut seen).expect("it is a reservation");
    simulation.advance(30 * MS, &mut seen).expect("it runs");
    simulation.finish(30 * MS, &mut seen).expect("it ends");
    let order = [(0, 0, 2), (1, 2, 5), (0, 10, 12), (1, 12, 15), (1, 20, 23), (0, 23, 25)];
    assert_eq!(seen.in_ms()[..6], order);
}

#[test]
fn a_change_replays_to_the_same_decisions() {
    let buffer = TraceBuffer::default();
    let header = Header::new("sim", 0, "edf", vec![String::new(); 3], Limits::default());
    let sink = TraceSink::new(buffer.clone(), header);
    let options = Options { traces: vec![(DomainId(0), sink.clone())], ..Options::default() };
    let change = TaskChange { period: Some(12 * MS), ..TaskChange::of_budget(3 * MS) };
    changed(&greedy("edf"), &change, 53 * MS, options);
    sink.finish().expect("memory takes it");
    let replayed = replay(&buffer.bytes()[..], &mut |_| true).expect("it can be replayed");
    assert_eq!((replayed.difference, replayed.until), (None, END));
}

#[test]
fn a_task_whose_policy_makes_each_job_by_itself_takes_no_change() {
    let (set, mut seen) = (greedy("imprecise"), Seen::default());
    let mut simulation = Simulation::new(&set, Options::default()).expect("it can be simulated");
    simulation.advance(45 * MS, &mut seen).expect("it runs");
    let refused = simulation.change(1, &TaskChange::of_budget(MS), &mut seen);
    assert!(refused.is_err_and(|e| e.cause.contains("task 1")));
    assert!(simulation.change(3, &TaskChange::of_budget(MS), &mut seen).is_err(), "no such task");
    simulation.advance(END, &mut seen).expect("it runs");
    simulation.finish(END, &mut seen).expect("it ends");
    assert_eq!(seen.intervals, common::run(&set, END).intervals);
}
