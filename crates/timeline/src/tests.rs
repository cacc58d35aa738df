//! Traces that were made by hand, record by record, as `docs/traces.md` has them.

use punctual_trace::kind::{self, event};
use punctual_trace::{Header, JobEnd, Limits, Period, Record, Trace, TraceError};

use crate::{Timeline, What};

fn bytes(host: &str, records: &[Record]) -> Vec<u8> {
    let header = Header::new(host, 1, "edf", vec!["a".into(), "b".into()], Limits::default());
    let mut bytes = Vec::new();
    Trace { header, records: records.to_vec() }.write(&mut bytes).expect("memory takes it");
    bytes
}

/// Time and contents of all moments.
fn moments(host: &str, records: &[Record]) -> Vec<(u64, What)> {
    let bytes = bytes(host, records);
    let timeline = Timeline::new(&bytes[..]).expect("a header");
    timeline
        .map(|moment| moment.map(|moment| (moment.at, moment.what)).expect("it is whole"))
        .collect()
}

fn record(time: u64, kind: u32, small: u32, a: u64, b: u64) -> Record {
    Record { time, a, b, small, kind }
}

fn event(time: u64, event: u32, small: u32, a: u64, b: u64) -> Record {
    record(time, kind::EVENT + event, small, a, b)
}

#[test]
fn a_job_is_released_executes_is_preempted_and_ends() {
    let period =
        Period { completed: 25, end: JobEnd::Completed, ..Period::unjudged(1, 0, 0, 40, 20) };
    let mut records = vec![
        Record::task_place(0, 1),
        event(0, event::RELEASED, 0, 0, 20),
        record(0, kind::SELECTED, 0, 77, 0),
        Record::running(0, 0, 0, false),
        record(10, kind::CHARGE, 0, 77, 10),
        Record::stopped(10, 0, 0, 10),
        Record::running(20, 0, 0, false),
        record(25, kind::CHARGE, 0, 77, 5),
        event(25, event::COMPLETED, 0, 77, 15),
        Record::stopped(25, 0, 0, 5),
        record(25, kind::SELECTED, 0, 0, 0),
    ];
    records.extend(period.to_records());
    let task = 1;
    let expected = [
        (0, What::Released { task, number: 0, budget: 20 }),
        (0, What::Remaining { task, budget: 20 }),
        (0, What::Selected { job: Some(77) }),
        (10, What::Remaining { task, budget: 10 }),
        (10, What::Executed { task, from: 0, background: false }),
        (25, What::Remaining { task, budget: 5 }),
        (25, What::JobEnded { task: Some(1), job: 77, end: JobEnd::Completed, used: 15 }),
        (25, What::Remaining { task, budget: 0 }),
        (25, What::Executed { task, from: 20, background: false }),
        (25, What::Selected { job: None }),
        (0, What::Period(period)),
    ];
    assert_eq!(moments("sim", &records), expected);
}

#[test]
fn jobs_of_policies_outside_the_dispatcher_and_groups_have_moments() {
    let records = [
        Record::task_place(3, 0),
        record(5, kind::JOB_ADD, 3, 5, 100),
        record(8, kind::JOB_ADD_2, 0, 0, 0),
        // A server's job has no task.
        record(6, kind::JOB_ADD, u32::MAX, 6, 100),
        record(9, kind::JOB_ADD_2, 0, 0, 0),
        event(7, event::GROUP_ACTIVE, 2, 0, 0),
        event(9, event::SEGMENT_EXHAUSTED, 4, 12, 3),
        event(9, event::EXHAUSTED, u32::MAX, 13, 3),
        event(10, event::OVERRUN, 3, 0, 0),
    ];
    let expected = [
        (5, What::JobAdded { task: 0, start: 5, finish: 100, budget: 8 }),
        (5, What::Remaining { task: 0, budget: 8 }),
        (7, What::Group { group: 2, active: true }),
        (9, What::SegmentEnded { node: 4, job: 12, end: JobEnd::Exhausted, used: 3 }),
        (9, What::JobEnded { task: None, job: 13, end: JobEnd::Exhausted, used: 3 }),
        (10, What::Overrun { task: 0, background: false }),
    ];
    assert_eq!(moments("sim", &records), expected);
}

#[test]
fn a_task_whose_place_comes_late_has_all_its_moments_in_order() {
    let records = [
        Record::task_place(0, 0),
        event(1, event::RELEASED, 1, 0, 5),
        event(2, event::TASK_GONE, 0, 7, 1),
        Record::task_place(1, 4),
        event(3, event::OVERRUN, 1, 0, 0),
        // The number is used again.
        Record::task_place(1, 5),
        event(4, event::OVERRUN, 1, 0, 0),
    ];
    let tasks: Vec<_> =
        moments("kernel", &records).iter().map(|(at, what)| (*at, what.task())).collect();
    assert_eq!(tasks, [(1, Some(4)), (1, Some(4)), (2, Some(0)), (3, Some(4)), (4, Some(5))]);
}

#[test]
fn a_task_without_a_place_holds_nothing_back_for_ever() {
    let mut records = vec![record(0, kind::TASK_READY, 9, 0, 0), Record::task_place(0, 0)];
    records.extend((0..200_000).map(|time| record(time, kind::TASK_READY, 0, 0, 0)));
    let bytes = bytes("kernel", &records);
    let mut timeline = Timeline::new(&bytes[..]).expect("a header");
    timeline.next().expect("a moment").expect("it is whole");
    assert!(timeline.records() < 100_000, "held {} records", timeline.records());
    assert_eq!(timeline.count(), 200_000 - 1);
}

#[test]
fn execution_on_the_user_host_is_read_from_charges() {
    let charge = |time, small, a| record(time, kind::CHARGE_TASK, small, a, 0);
    let records = [
        Record::task_place(0, 0),
        Record::task_place(1, 1),
        charge(10, 1, 4),
        charge(20, 0, 5),
        charge(20, 1, 3),
    ];
    let expected = [
        (10, What::Executed { task: 1, from: 6, background: false }),
        (17, What::Executed { task: 0, from: 12, background: false }),
        (20, What::Executed { task: 1, from: 17, background: false }),
    ];
    assert_eq!(moments("user", &records), expected);
}

#[test]
fn execution_is_that_of_the_whole_trace_read_at_once() {
    let mut records = vec![Record::task_place(0, 4), Record::task_place(1, 5)];
    for n in 0..50 {
        records.push(Record::running(10 * n, n as u32 % 2, n % 3, n % 5 == 0));
        records.push(Record::stopped(10 * n + 5, (n / 2) as u32 % 2, n % 3, 5));
        if n % 20 == 19 {
            records.push(Record::lost(3));
        }
    }
    let bytes = bytes("kernel", &records);
    let whole = Trace::read(&mut &bytes[..]).expect("it is whole").intervals();
    let whole: Vec<_> = whole.iter().map(|i| (i.task, i.from, i.to, i.background)).collect();
    let read: Vec<_> = (moments("kernel", &records).into_iter())
        .filter_map(|(to, what)| match what {
            What::Executed { task, from, background } => Some((task, from, to, background)),
            _ => None,
        })
        .collect();
    assert!(!read.is_empty());
    assert_eq!(read, whole);
}

#[test]
fn what_stands_before_the_damage_is_read_and_then_the_damage_reported() {
    let records: Vec<_> = [Record::task_place(0, 0)]
        .into_iter()
        .chain((0..9).map(|t| record(t, kind::TASK_READY, 0, 0, 0)))
        .collect();
    let bytes = bytes("kernel", &records);
    for cut in [bytes.len() - 36 - 1, bytes.len() - 36] {
        let mut read: Vec<_> = Timeline::new(&bytes[..cut]).expect("a header").collect();
        let whole = records.len() - usize::from(cut < bytes.len() - 36);
        assert!(
            matches!(read.pop(), Some(Err(TraceError::Short { number })) if number == whole as u64)
        );
        assert_eq!(read.iter().filter(|moment| moment.is_ok()).count(), whole - 1);
    }
    let mut changed = bytes.clone();
    let at = bytes.len() - 2 * 36 - 20;
    changed[at] ^= 1;
    let mut read: Vec<_> = Timeline::new(&changed[..]).expect("a header").collect();
    assert!(matches!(read.pop(), Some(Err(TraceError::Changed { number: 8, .. }))), "{read:?}");
    assert_eq!(read.len(), 7);
}

#[test]
fn a_gap_is_a_moment_and_nothing_executes_across_it() {
    let records = [
        Record::task_place(0, 0),
        Record::running(5, 0, 0, false),
        Record::lost(12),
        Record::stopped(9, 0, 0, 4),
        record(11, kind::TASK_BLOCKED, 0, 0, 0),
    ];
    let expected = [(5, What::LostRecords { count: 12 }), (11, What::Blocked { task: 0 })];
    assert_eq!(moments("kernel", &records), expected);
}

#[test]
fn numbers_that_no_dispatcher_has_take_no_memory() {
    let period = Period::unjudged(u32::MAX - 1, 0, 0, 1, 1).to_records();
    let mut records =
        vec![Record::task_place(u32::MAX - 7, 0), Record::task_place(0, u32::MAX - 9)];
    records.extend(period);
    records.push(event(3, event::RELEASED, 0, 0, 5));
    records.push(event(3, event::RELEASED, u32::MAX - 7, 0, 5));
    assert_eq!(moments("kernel", &records), []);
}
