//! The rules, on traces of a few records.

use punctual_trace::kind::{self, event};
use punctual_trace::{Header, Limits, Record, Trace};

use crate::{exact, guest};

const MS: u64 = 1_000_000;
const START: u64 = 5_000 * MS;
const LIMITS: Limits = Limits {
    jobs: 8,
    tasks: 8,
    reservations: 8,
    groups: 1,
    budget_groups: 1,
    timers: 1,
    depth: 1,
    events: 8,
    records: 8,
    windows: 0,
};

fn event(kind: u32, task: u32, time: u64, a: u64, b: u64) -> Record {
    Record { time, a, b, small: task, kind: kind::EVENT + kind }
}

/// Two tasks that each execute 1 ms in every 4, for 100 releases, from `start`; the second executes
/// `gap` after the first.
fn run(start: u64, gap: u64) -> Trace {
    let tasks = vec!["one".to_owned(), "two".to_owned()];
    let mut records = Vec::new();
    for task in 0..2 {
        let (time, period) = (start - MS, 4 * MS);
        let kind = kind::RESERVATION_ADD;
        records.push(Record { time, a: start, b: period, small: task, kind });
        let kind = kind::RESERVATION_ADD_2;
        records.push(Record { time: MS, a: period, kind, ..Record::default() });
    }
    let select = |time, a| Record { time, a, b: 0, small: 0, kind: kind::SELECTED };
    for release in 0..100 {
        let at = start + release * 4 * MS;
        let job = |task: u64| 1 + 2 * release + task;
        records.push(event(event::RELEASED, 0, at, release, MS));
        records.push(event(event::RELEASED, 1, at, release, MS));
        records.push(select(at, job(0)));
        records.push(event(event::COMPLETED, 0, at + MS, job(0), MS));
        records.push(select(at + MS, 0));
        records.push(select(at + MS + gap, job(1)));
        records.push(event(event::EXHAUSTED, 1, at + 2 * MS + gap, job(1), MS));
        records.push(select(at + 2 * MS + gap, 0));
    }
    Trace { header: Header::new("user", 0, "edf", tasks, LIMITS), records }
}

/// `run` with a change to its `nth` record of this kind.
fn changed(kind: u32, nth: usize, change: impl Fn(&mut Record)) -> Trace {
    let mut trace = run(START, 0);
    change(trace.records.iter_mut().filter(|r| r.kind == kind).nth(nth).unwrap());
    trace
}

fn guest_differs(new: &Trace) -> String {
    guest::compare(&run(START, 0), new).expect_err("they differ").to_string()
}

#[test]
fn a_trace_is_exactly_itself() {
    let summary = exact::compare(&run(START, 0), &run(START, 0)).unwrap();
    assert_eq!(summary, "804 records, byte for byte");
}

#[test]
fn one_field_of_one_record_is_an_exact_difference() {
    let new = changed(kind::SELECTED, 7, |r| r.b = 1);
    let difference = exact::compare(&run(START, 0), &new).unwrap_err().to_string();
    assert!(difference.starts_with("records differ after 19 that"), "{difference}");
    assert!(difference.contains("a 0x0, b 0x1)"), "{difference}");
}

#[test]
fn a_missing_last_record_is_an_exact_difference() {
    let mut new = run(START, 0);
    new.records.pop();
    let difference = exact::compare(&run(START, 0), &new).unwrap_err();
    assert!(difference.to_string().contains("new: no record"), "{difference}");
}

#[test]
fn a_header_is_an_exact_difference() {
    let mut new = run(START, 0);
    new.header.limits.depth = 2;
    assert!(exact::compare(&run(START, 0), &new).unwrap_err().what.starts_with("headers differ"));
}

#[test]
fn another_start_and_small_delays_are_the_same_decisions() {
    let summary = guest::compare(&run(START, 0), &run(START + 3 * MS + 17, 5_000)).unwrap();
    assert!(summary.starts_with("400 events; at most 0.0 us between releases"), "{summary}");
    assert!(summary.contains("5.0 us between selections"), "{summary}");
}

#[test]
fn job_numbers_are_no_decisions() {
    let mut new = run(START, 0);
    for record in &mut new.records {
        let names_job = record.kind == kind::SELECTED && record.a != 0
            || record.kind > kind::EVENT && record.kind != kind::EVENT + event::RELEASED;
        record.a += u64::from(names_job) << 32;
    }
    guest::compare(&run(START, 0), &new).unwrap();
}

#[test]
fn another_selection_is_a_difference() {
    // The second task's job in place of the first's.
    let new = changed(kind::SELECTED, 8, |r| r.a += 1);
    let difference = guest_differs(&new);
    assert!(difference.starts_with("selections differ for 1000000 ns"), "{difference}");
    assert!(difference.contains("old: record 22: selected: job 0x5"), "{difference}");
    assert!(difference.contains("new: record 22: selected: job 0x6"), "{difference}");
}

#[test]
fn many_small_delays_are_a_difference() {
    // Twice 150 us in 4 ms.
    let difference = guest::compare(&run(START, 0), &run(START, 150_000)).unwrap_err().to_string();
    assert!(difference.contains("for 75 permille of the run"), "{difference}");
    assert!(difference.contains("new: record 8: selected"), "{difference}");
}

#[test]
fn another_end_is_a_difference() {
    let expired = kind::EVENT + event::EXPIRED;
    let new = changed(kind::EVENT + event::COMPLETED, 50, |r| r.kind = expired);
    assert!(guest_differs(&new).starts_with("events differ (event 101 of task 0)"));
}

#[test]
fn another_execution_time_is_a_difference() {
    let new = changed(kind::EVENT + event::EXHAUSTED, 3, |r| r.b += guest::WITHIN_NS + 1);
    assert!(guest_differs(&new).starts_with("execution times are 200001 ns apart"));
}

#[test]
fn a_late_release_is_a_difference() {
    let new = changed(kind::EVENT + event::RELEASED, 3, |r| r.time += guest::WITHIN_NS + 1);
    assert!(guest_differs(&new).starts_with("releases are 200001 ns apart"));
}

#[test]
fn another_budget_is_a_difference() {
    let new = changed(kind::RESERVATION_ADD_2, 1, |r| r.time += 1);
    assert!(guest_differs(&new).starts_with("command 3 of the set-up differs"));
}

#[test]
fn a_missing_release_is_a_difference_but_at_the_end() {
    let without = |nth: usize| {
        let mut new = run(START, 0);
        let is_release = |r: &&(usize, &Record)| r.1.kind == kind::EVENT + event::RELEASED;
        let at = new.records.iter().enumerate().filter(|r| is_release(&r)).nth(nth).unwrap().0;
        new.records.remove(at);
        new
    };
    assert!(guest_differs(&without(20)).starts_with("events differ"));
    guest::compare(&run(START, 0), &without(199)).unwrap();
}

#[test]
fn traces_without_events_do_not_pass() {
    let empty = Trace { records: Vec::new(), ..run(START, 0) };
    assert!(guest::compare(&empty, &empty).unwrap_err().what.contains("nothing to compare"));
}
