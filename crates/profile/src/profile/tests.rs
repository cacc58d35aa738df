//! Whole results from records with known answers.

use std::collections::BTreeMap;

use punctual_measure::noise::Noise;
use punctual_sys::perf::{Switch, SwitchRecord};

use super::*;

const MS: u64 = 1_000_000;
const BEGIN: u64 = 5_000 * MS;

/// A program that gets the CPU at these times after the beginning, ms, and gives it up so long
/// after, us; seen for so long, ms.
fn seen(bursts: impl IntoIterator<Item = (u64, u64)>, ms: u64) -> Observation {
    let records = bursts.into_iter().flat_map(|(wake, us)| {
        let time = BEGIN + wake * MS;
        let record = |time, switch| SwitchRecord { time, tid: 7, switch };
        [record(time, Switch::In), record(time + us * 1_000, Switch::Blocked)]
    });
    Observation {
        records: records.collect(),
        lost: 0,
        begin: BEGIN,
        end: BEGIN + ms * MS,
        ended: None,
        noise: Noise::default(),
        names: BTreeMap::from([(7, "worker".to_owned())]),
        problems: Vec::new(),
    }
}

fn wish() -> Wish {
    Wish {
        body: Body::Command(["player", "a \"clip\"\ncpu = 3"].map(str::to_owned).to_vec()),
        cpu: 1,
        deadline: None,
        share_ppm: 999_000,
        skip: None,
        policy: "edf".to_owned(),
        capacity: Capacity::THEORY,
    }
}

fn result(observation: &Observation, wish: &Wish) -> ProfileResult {
    evaluate(observation, wish, &mut |_| {}).unwrap()
}

#[test]
fn a_periodic_program_has_its_figures_and_an_entry_that_reads_back() {
    // A start-up of 300 ms, then 2 ms of each 20.
    let start = [(10, 300_000)];
    let jobs = (50..500).map(|n| (n * 20, 2_000));
    let result = result(&seen(start.into_iter().chain(jobs), 10_005), &wish());
    assert_eq!((result.pattern, result.period_ns), (Pattern::Periodic, Some(20 * MS)));
    assert_eq!((result.jobs, result.skipped_ns), (450, 1_000 * MS));
    let execution = result.execution.unwrap();
    assert_eq!((execution.min_ns, execution.max_ns), (2 * MS, 2 * MS));
    assert_eq!(result.busiest_window_ns, Some(2 * MS));
    assert_eq!(result.demand_ppm, (300 + 450 * 2) * 1_000_000 / 10_005);
    let thread =
        ThreadResult { tid: 7, name: "worker".to_owned(), wake_ups: 451, executed_ns: 1_200 * MS };
    assert_eq!(result.threads, [thread]);
    assert_eq!(result.warnings, [""; 0]);
    let proposal = result.proposal.unwrap();
    // A quarter of the period, and of the job; a quarter more for the phase in which it wakes.
    assert_eq!((proposal.period_ns, proposal.budget_ns), (5 * MS, 620_000));
    let set = TaskSet::parse(&proposal.set, "a proposal").unwrap();
    assert_eq!(set.tasks[0].body, wish().body);
    assert_eq!((set.tasks[0].period, set.tasks[0].budget), (5 * MS, 620_000));
    let pasted = format!("cpu = 0\npolicy = \"rm\"\n{}", proposal.entry);
    assert_eq!(TaskSet::parse(&pasted, "a set").unwrap().tasks[0].budget, 620_000);
    let head = "[[task]]\nname = \"player\"\nperiod = \"5ms\"\nbudget = \"620us\"\ncommand = ";
    assert!(proposal.entry.starts_with(head), "{}", proposal.entry);
}

#[test]
fn a_program_without_a_period_is_judged_by_a_deadline() {
    let mut time = 0;
    let wakes = (0..400u64).map(|n| {
        time += 1 + n * 17 % 40;
        (time, 500)
    });
    let observation = seen(wakes.collect::<Vec<_>>(), 9_000);
    let by_itself = result(&observation, &wish());
    assert_eq!((by_itself.pattern, by_itself.period_ns), (Pattern::Aperiodic, None));
    assert_eq!(by_itself.deadline_ns, Some(100 * MS));
    assert!(by_itself.proposal.is_some());
    let stricter = result(&observation, &Wish { deadline: Some(10 * MS), ..wish() });
    let share = |result: &ProfileResult| {
        result.candidates.iter().find(|one| one.proposed).map(|one| one.share_ppm)
    };
    assert!(share(&stricter) > share(&by_itself), "{stricter:#?} {by_itself:#?}");
}

#[test]
fn a_program_that_never_waits_and_one_that_hardly_wakes_are_not_judged() {
    let greedy = result(&seen([(0, 3_000_000)], 3_000), &wish());
    assert_eq!(greedy.pattern, Pattern::NeverWaits);
    assert_eq!(greedy.proposal.map(|p| (p.period_ns, p.budget_ns)), Some((20 * MS, 5 * MS)));
    for bursts in [vec![], vec![(1, 100)], (0..9).map(|n| (n * 300, 100)).collect()] {
        let result = result(&seen(bursts, 3_000), &Wish { skip: Some(0), ..wish() });
        assert_eq!((result.pattern, result.proposal), (Pattern::TooFew, None));
    }
}

#[test]
fn one_that_ends_before_it_has_used_up_a_budget_is_not_said_to_use_up_any() {
    // Beside others it is ready all the time.
    let mut observation = seen([(0, 800), (10, 1_000)], 11);
    observation.records[1].switch = Switch::Preempted;
    let short = result(&observation, &wish());
    assert_eq!((short.pattern, short.proposal), (Pattern::TooFew, None));
}

#[test]
fn lost_records_and_time_as_ready_are_reported() {
    let mut observation = seen((0..500).map(|n| (n * 20, 2_000)), 10_000);
    observation.lost = 3;
    for (n, record) in observation.records.iter_mut().enumerate().filter(|(n, _)| n % 2 == 1) {
        if n % 4 == 1 {
            record.switch = Switch::Preempted;
        }
    }
    let result = result(&observation, &wish());
    assert_eq!((result.lost_records, result.preemptions), (3, 250));
    assert_eq!(result.warnings.len(), 2, "{:?}", result.warnings);
}
