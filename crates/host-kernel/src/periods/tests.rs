//! Periods, from records and release events as a run leaves them.

use punctual_dispatcher::{End, TaskId};
use punctual_taskset::{Body, TaskSet};
use punctual_trace::NEVER;

use super::*;

const MS: u64 = 1_000_000;

fn set(work: &str) -> TaskSet {
    let task =
        format!("[[task]]\nname = \"a\"\nperiod = \"10ms\"\nbudget = \"2ms\"\nwork = {work}\n");
    TaskSet::parse(&format!("cpu = 0\npolicy = \"edf\"\n{task}"), "set.toml")
        .expect("it is in order")
}

fn record(kind: u32, time: u64, a: u64) -> Record {
    Record { time, a, b: 0, small: 0, kind }
}

/// The n-th release, at n * 10 ms; noticed 2 us late.
fn released(n: u64) -> KeyedEvent {
    let (at, release) = (n * 10 * MS + 2_000, n * 10 * MS);
    let (deadline, task) = (release + 10 * MS, TaskId(0));
    let event = ReleaseEvent::Released {
        at,
        task,
        index: 0,
        number: n,
        release,
        deadline,
        budget: 2 * MS,
        assigned: 2 * MS,
    };
    KeyedEvent { event, key: Key::Reserved(n), index: 0 }
}

fn over(n: u64, end: End, at: u64) -> KeyedEvent {
    let event = ReleaseEvent::Ended {
        at,
        task: TaskId(0),
        index: 0,
        number: n,
        end,
        used: MS,
        remaining: MS,
        unused: MS,
        extended: 0,
    };
    KeyedEvent { event, key: Key::Made(0), index: 0 }
}

#[test]
fn a_task_that_has_left_lends_nothing() {
    let set = set("{ spin = \"1ms\" }");
    let mut domain = domain_of(&set);
    domain.joins(1, &set.tasks[0]);
    domain.joined(1, Some(1));
    domain.records(&[Record { small: 1, ..record(kind::TASK_ADD, 0, 0) }]);
    domain.records(&[record(kind::TASK_LEND, MS, 1)]);
    assert_eq!(domain.tasks[&1].lenders, 1);
    domain.left(0, &mut |_| {});
    assert_eq!(domain.tasks[&1].lenders, 0);
}

#[test]
fn a_number_is_of_the_task_that_was_added_with_it_last() {
    let set = set("{ spin = \"1ms\" }");
    let added = |number| [Record { small: number, ..record(kind::TASK_ADD, 0, 0) }];
    let mut domain = domain_of(&set);
    domain.joins(5, &set.tasks[0]);
    domain.joined(5, Some(0));
    assert_eq!(domain.index(0), Some(0), "as long as its addition is not read");
    assert_eq!(domain.records(&added(0)), Some(5));
    domain.left(0, &mut |_| {});
    assert_eq!(domain.index(0), Some(5));
    // One that was refused, one whose addition is among lost records, and one whose is not.
    domain.joins(6, &set.tasks[0]);
    domain.joined(6, None);
    domain.joins(7, &set.tasks[0]);
    domain.gap();
    domain.joined(7, Some(1));
    domain.joins(8, &set.tasks[0]);
    domain.joined(8, Some(2));
    domain.gap();
    assert_eq!((domain.index(1), domain.index(2)), (Some(7), Some(8)));
    domain.joins(9, &set.tasks[0]);
    assert_eq!(domain.records(&added(3)), Some(9));
}

/// One release with its records: selected at once, running 5 us after due, stopped after 1 ms.
fn usual(n: u64) -> Vec<Record> {
    let due = n * 10 * MS;
    vec![
        record(RELEASED, due + 2_000, n),
        record(kind::SELECTED, due + 2_000, 77),
        record(kind::RUNNING, due + 5_000, 4711),
        record(kind::CHARGE_TASK, due + MS + 5_000, MS),
        record(COMPLETED, due + MS + 5_000, 77),
        record(kind::STOPPED, due + MS + 6_000, MS),
    ]
}

/// Its task was added, with number 0.
fn domain_of(set: &TaskSet) -> DomainPeriods {
    let mut domain = DomainPeriods::default();
    domain.joins(0, &set.tasks[0]);
    assert_eq!(domain.records(&[record(kind::TASK_ADD, 0, 0)]), Some(0));
    domain
}

fn periods_of(
    set: &TaskSet,
    parts: &[(Vec<Record>, Vec<KeyedEvent>)],
) -> (Vec<Period>, Option<Lateness>) {
    let mut domain = domain_of(set);
    let mut periods = Vec::new();
    for (records, events) in parts {
        domain.records(records);
        events.iter().for_each(|t| domain.event(t, &mut |p| periods.push(p)));
    }
    domain.finish(&mut |p| periods.push(p));
    (periods, domain.lateness())
}

#[test]
fn a_period_has_what_was_executed_until_the_next_and_when_it_began() {
    let set = set("{ spin = \"1ms\" }");
    let mut second = vec![record(kind::CHARGE_TASK, 10 * MS, 300)];
    second.extend(usual(1));
    let first = (usual(0), vec![released(0), over(0, End::Completed, MS + 5_000)]);
    let second = (second, vec![released(1), over(1, End::Completed, 11 * MS + 5_000)]);
    let (periods, lateness) = periods_of(&set, &[first, second]);
    assert_eq!(periods.len(), 2);
    assert_eq!(
        (periods[0].received, periods[0].started, periods[0].completed),
        (MS + 300, 5_000, MS + 5_000)
    );
    assert_eq!((periods[1].received, periods[1].number, periods[1].miss), (MS, 1, false));
    assert_eq!(lateness, Some(Lateness { releases: 2, p50: 5_000, p99: 5_000, max: 5_000 }));
}

#[test]
fn a_thread_that_has_waited_for_a_release_overruns_where_its_job_expires() {
    let set = set("{ spin = \"forever\" }");
    let part = |n: u64, end, at| {
        (vec![record(RELEASED, n * 10 * MS + 2_000, n)], vec![released(n), over(n, end, at)])
    };
    let parts = [
        part(0, End::Expired, 10 * MS),
        part(1, End::Completed, 11 * MS),
        part(2, End::Expired, 30 * MS),
    ];
    let (periods, _) = periods_of(&set, &parts);
    let overruns: Vec<bool> = periods.iter().map(|period| period.overrun).collect();
    assert_eq!(overruns, [false, false, true]);
}

#[test]
fn who_was_not_selected_at_once_is_no_measure_of_lateness() {
    let set = set("{ spin = \"1ms\" }");
    let mut records = usual(0);
    records[1].time += 100_000;
    let (periods, lateness) =
        periods_of(&set, &[(records, vec![released(0), over(0, End::Completed, 2 * MS)])]);
    assert_eq!((periods.len(), lateness), (1, None));
}

#[test]
fn a_program_that_slept_has_missed_nothing_and_one_that_wanted_it_all_has() {
    let set = TaskSet::single(10 * MS, 2 * MS, Body::Command(vec!["a".to_owned()]))
        .build()
        .expect("in order");
    let late = |more: Vec<Record>| {
        let mut records = vec![record(RELEASED, 0, 0)];
        records.extend(more);
        records.push(record(EXPIRED, 10 * MS, 77));
        periods_of(&set, &[(records, vec![released(0), over(0, End::Expired, 10 * MS)])]).0[0].miss
    };
    assert!(late(Vec::new()));
    assert!(late(vec![record(BLOCKED, MS, 0), record(READY, MS + 50_000, 0)]));
    assert!(!late(vec![record(BLOCKED, MS, 0), record(READY, 3 * MS, 0)]));
    assert!(!late(vec![record(BLOCKED, MS, 0)]));
}

#[test]
fn a_program_that_slept_and_whose_budget_was_cut_was_not_ready() {
    let set = TaskSet::single(10 * MS, 2 * MS, Body::Command(vec!["a".to_owned()]))
        .build()
        .expect("in order");
    let period = |asleep: u64, cut_off: u64| {
        let executed = 2 * MS - cut_off;
        let mut records = vec![record(RELEASED, 0, 0)];
        if asleep > 0 {
            records.extend([record(BLOCKED, MS, 0), record(READY, MS + asleep, 0)]);
        }
        records
            .extend([record(kind::CHARGE_TASK, 6 * MS, executed), record(EXHAUSTED, 6 * MS, 77)]);
        let reported_end = ReleaseEvent::Ended {
            at: 6 * MS,
            task: TaskId(0),
            index: 0,
            number: 0,
            end: End::Exhausted,
            used: executed,
            remaining: 0,
            unused: cut_off,
            extended: 0,
        };
        let p = periods_of(
            &set,
            &[(
                records,
                vec![released(0), KeyedEvent { event: reported_end, key: Key::Made(0), index: 0 }],
            )],
        )
        .0[0];
        (p.ready_throughout, p.unused, p.miss)
    };
    assert_eq!(period(0, 0), (true, 0, false));
    assert_eq!(period(50_000, 0), (true, 0, false), "so short a sleep took nothing from it");
    assert_eq!(period(3 * MS, 0), (false, 0, false));
    assert_eq!(period(3 * MS, MS), (false, MS, false));
    assert_eq!(period(50_000, MS), (false, MS, false));
}

#[test]
fn after_a_gap_a_period_has_what_its_jobs_say() {
    let set = set("{ spin = \"1ms\" }");
    let mut domain = domain_of(&set);
    let mut periods = Vec::new();
    domain.records(&usual(0));
    domain.event(&released(0), &mut |p| periods.push(p));
    domain.gap();
    domain.event(&over(0, End::Completed, MS), &mut |p| periods.push(p));
    domain.event(&released(1), &mut |p| periods.push(p));
    assert_eq!((periods[0].received, periods[0].started), (MS, NEVER));
}

/// A loader that was stopped for long: the oldest events are there, and the newest records.
#[test]
fn after_a_gap_no_period_has_what_others_executed() {
    let set = set("{ spin = \"1ms\" }");
    let mut domain = domain_of(&set);
    let mut periods = Vec::new();
    let mut sink = |p| periods.push(p);
    domain.records(&usual(0));
    domain.event(&released(0), &mut sink);
    domain.gap();
    (7..=9).for_each(|n| assert_eq!(domain.records(&usual(n)), None));
    for n in 0..2 {
        domain.event(&over(n, End::Completed, n * 10 * MS + MS), &mut sink);
        domain.event(&released(n + 1), &mut sink);
    }
    domain.events_lost();
    domain.event(&released(8), &mut sink);
    domain.event(&over(8, End::Completed, 81 * MS), &mut sink);
    domain.event(&released(9), &mut sink);
    domain.event(&over(9, End::Completed, 91 * MS), &mut sink);
    domain.finish(&mut sink);
    assert!(periods[..2].iter().all(|p| !p.ready_throughout), "{periods:?}");
    let seen: Vec<_> = periods.iter().map(|p| (p.number, p.received, p.started)).collect();
    assert_eq!(
        seen,
        [(0, MS, NEVER), (1, MS, NEVER), (8, MS, 80 * MS + 5_000), (9, MS, 90 * MS + 5_000)]
    );
}

#[test]
fn jobs_that_a_policy_makes_are_found_by_their_cookie() {
    let set = set("{ spin = \"1ms\" }");
    let added = |cookie: u64, at: u64| {
        [
            record(kind::JOB_ADD, at, 0),
            Record { b: cookie, kind: kind::JOB_ADD_2, small: 0, ..Record::default() },
        ]
    };
    let mut records = Vec::new();
    records.extend(added(5, 0));
    records.push(record(kind::CHARGE_TASK, MS, 10));
    records.extend(added(6, MS));
    records.push(record(kind::CHARGE_TASK, 2 * MS, 20));
    records.extend(added(7, 10 * MS));
    records.push(record(kind::CHARGE_TASK, 11 * MS, 40));
    let by = |event: KeyedEvent, cookie| KeyedEvent { key: Key::Made(cookie), ..event };
    let tales = vec![by(released(0), 5), over(0, End::Completed, 2 * MS), by(released(1), 7)];
    let (periods, _) = periods_of(&set, &[(records, tales)]);
    assert_eq!((periods.len(), periods[0].received), (1, 30));
}

#[test]
fn every_lost_release_is_a_period() {
    let set = set("{ spin = \"1ms\" }");
    let lost =
        ReleaseEvent::Lost { at: 2_010 * MS, task: TaskId(0), index: 0, first: 1, count: 200 };
    let tales = vec![
        released(0),
        over(0, End::Completed, MS),
        KeyedEvent { event: lost, key: Key::Made(0), index: 0 },
        released(201),
    ];
    let (periods, _) = periods_of(&set, &[(usual(0), tales)]);
    let missed: Vec<u64> =
        periods.iter().filter(|p| p.miss && p.received == 0).map(|p| p.number).collect();
    assert!((1..=200).all(|n| missed.contains(&n)), "{missed:?}");
}
