//! The check itself: it passes a trace that keeps the model, and finds each way of breaking it.

use crate::check::{look, RETURN};
use punctual_trace::{Header, Limits, Record, Trace};

const LATE: u64 = 10;

fn limits() -> Limits {
    let limits = serde_json::json!({
        "jobs": 4, "tasks": 4, "reservations": 4, "groups": 1, "budget_groups": 1, "timers": 1,
        "depth": 1, "events": 8, "records": 64, "windows": 0
    });
    serde_json::from_value(limits).expect("limits")
}

/// Task 0: 100 ns in every 1,000 from 1,000 on. It is stopped at its budget, and is done early in
/// its second period.
fn good() -> Vec<Record> {
    let record = |kind, time, small, a, b| Record { time, a, b, small, kind };
    vec![
        record(3, 0, 0, 0, 0),
        record(23, 0, 0, 1_000, 1_000),
        record(24, 100, 0, 1_000, 0),
        record(25, 0, 0, 0, 0),
        record(12, 1_000, 0, 0, 0),
        record(141, 1_000, 0, 0, 100),
        record(64, 1_000, 0, 0x100, 0),
        record(96, 1_005, 0, 0, 77),
        record(8, 1_105, 0, 100, 0),
        record(130, 1_105, 0, 0x100, 100),
        record(64, 1_105, 0, 0, 0),
        record(97, 1_107, 0, 102, 77),
        record(8, 2_000, 0, 2, 0),
        record(12, 2_000, 0, 0, 0),
        record(141, 2_000, 0, 1, 98),
        record(64, 2_000, 0, 0x200, 0),
        record(96, 2_005, 0, 0, 77),
        record(97, 2_055, 0, 50, 77),
        record(8, 2_055, 0, 50, 0),
        record(7, 2_055, 0, 0, 0),
        record(129, 2_055, 0, 0x200, 50),
        record(64, 2_055, 0, 0, 0),
    ]
}

fn wrong(records: Vec<Record>) -> Vec<String> {
    wrong_with(records, Vec::new())
}

fn wrong_with(records: Vec<Record>, given_back: Vec<(u64, u64)>) -> Vec<String> {
    let header = Header::new("kernel", 0, "edf", vec!["one".to_owned()], limits());
    look(&Trace { header, records }, LATE, given_back).1.into_iter().map(|(_, what)| what).collect()
}

#[test]
fn a_trace_that_keeps_the_model_passes() {
    assert_eq!(wrong(good()), Vec::<String>::new());
}

/// What is broken, the record that is changed, how, and what is said of it.
type Broken = (&'static str, usize, fn(&mut Record), &'static str);

#[test]
fn each_way_of_breaking_it_is_found() {
    let broken: [Broken; 10] = [
        ("released early", 5, |r| r.time = 990, "before 1000"),
        ("runs early", 7, |r| r.time = 1_000, "selected is"),
        ("stopped too late", 11, |r| r.time = 1_200, "after it was not selected"),
        ("too much used", 9, |r| r.b = 120, "can end so"),
        ("too much executed", 11, |r| r.a = 130, "executed in"),
        ("too little charged", 12, |r| r.a = 0, "no complaint"),
        ("ends twice", 20, |r| r.a = 0x100, "ended before"),
        ("does not end", 9, |r| r.kind = 140, "has not ended"),
        ("budget out of nothing", 14, |r| r.b = 120, "are more than its budget"),
        ("another is selected", 15, |r| r.a = 0, "selected is"),
    ];
    for (what, at, change, said) in broken {
        let mut records = good();
        change(&mut records[at]);
        if what == "runs early" {
            records.swap(6, 7);
        }
        let found = wrong(records);
        if said == "no complaint" {
            // 2 ns are within what it may be late by.
            assert_eq!(found, Vec::<String>::new(), "{what}");
        } else {
            assert!(found.iter().any(|f| f.contains(said)), "{what}: {found:?}");
        }
    }
    let mut uncharged = good();
    uncharged[8].a = 50;
    let other = Record { time: 2_100, a: 88, b: 0, small: 1, kind: 96 };
    uncharged.push(other);
    assert!(wrong(uncharged).iter().any(|f| f.contains("charged 102 ns, executed 152")));
}

/// The model has a job expire at its finish, less the granularity at most.
#[test]
fn a_job_that_expires_earlier_than_the_granularity_permits_is_found() {
    let expired = |granularity: Option<u64>, at| {
        let mut records = good();
        records.truncate(9);
        let record = |kind, time, a, b| Record { time, a, b, small: 0, kind };
        records.push(record(131, at, 0x100, 100));
        records.splice(1..1, granularity.map(|ns| record(1, 0, ns, 0)));
        wrong(records)
    };
    assert_eq!(expired(None, 2_000), Vec::<String>::new());
    assert_eq!(expired(Some(3), 1_997), Vec::<String>::new());
    for (granularity, at) in [(None, 1_999), (Some(3), 1_996)] {
        let found = expired(granularity, at);
        assert!(found.iter().any(|f| f.contains("can end so")), "{granularity:?}: {found:?}");
    }
}

#[test]
fn execution_outside_of_every_job_is_found() {
    let mut records = good();
    let run = |time, kind| Record { time, a: u64::from(kind == 97) * 60, b: 0, small: 0, kind };
    records.extend([run(3_100, 96), run(3_160, 97)]);
    assert!(wrong(records).iter().any(|f| f.contains("has no job now")));
}

#[test]
fn only_who_gives_a_lent_priority_back_may_run_unselected_and_stops_at_once() {
    let after_its_budget = |from, to| {
        let mut records = good();
        records.truncate(12);
        records.push(Record { time: from, a: 77, b: 0, small: 0, kind: 96 });
        records.push(Record { time: to, a: to - from, b: 77, small: 0, kind: 97 });
        records
    };
    let beyond = 10 * RETURN;
    assert_eq!(wrong_with(after_its_budget(1_500, 1_503), vec![(77, 1_499)]), Vec::<String>::new());
    for (given_back, to, said) in [
        (vec![], 1_503, "selected is"),
        (vec![(78, 1_499)], 1_503, "selected is"),
        (vec![(77, beyond)], 1_503, "selected is"),
        (vec![(77, 1_499)], 1_600, "after it was not selected"),
    ] {
        let found = wrong_with(after_its_budget(1_500, to), given_back.clone());
        assert!(found.iter().any(|f| f.contains(said)), "{given_back:?}: {found:?}");
    }
}
