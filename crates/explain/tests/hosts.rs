//! Misses as real hosts record them, in traces that are made record by record: lateness, stalls and
//! stolen time cannot be planted in exact virtual time.

mod common;

use common::{check, explain, header, simulate};
use punctual_explain::{Activity, CauseKind};
use punctual_taskset::{Costs, TaskSet};
use punctual_trace::kind::{self, event};
use punctual_trace::{JobEnd, Period, Record, Trace};

const MS: u64 = 1_000_000;
/// A task that does not sleep, with a priority above one that does.
const SET: &str = r#"cpu = 0
policy = "fp"
task = [
    { name = "busy", period = "20ms", deadline = "10ms", budget = "4ms", priority = 2,
      work = { spin = "4ms" } },
    { name = "program", period = "20ms", deadline = "10ms", budget = "4ms", priority = 1,
      command = ["true"] },
]"#;

/// A trace of a host whose tasks have their places' numbers; both are ready and were released at 0.
fn recorded(host: &str, records: Vec<Record>, missed: Period) -> Trace {
    let set = TaskSet::parse(SET, "set.toml").expect("it is right");
    let mut all = vec![Record::task_place(0, 0), Record::task_place(1, 1)];
    all.extend(records);
    all.extend(missed.to_records());
    Trace { header: header(host, &set), records: all }
}

fn event(time: u64, what: u32, task: u32, a: u64, b: u64) -> Record {
    Record { time, a, b, small: task, kind: kind::EVENT + what }
}

fn released(time: u64, task: u32) -> Record {
    event(time, event::RELEASED, task, 0, 4 * MS)
}

fn charged(time: u64, task: u32, ns: u64) -> Record {
    Record { time, a: ns, b: 0, small: task, kind: kind::CHARGE_TASK }
}

/// A miss of the first period.
fn missed(task: u32) -> Period {
    Period {
        miss: true,
        overrun: true,
        end: JobEnd::Expired,
        ..Period::unjudged(task, 0, 0, 10 * MS, 4 * MS)
    }
}

#[test]
fn a_timer_that_was_late_released_late() {
    let records = vec![released(8 * MS, 0), charged(10 * MS, 0, 2 * MS)];
    let trace = recorded("user", records, Period { woken_late: true, ..missed(0) });
    check("late timer", &trace, "busy", 0, CauseKind::ReleasedLate, &[]);
}

#[test]
fn a_dispatcher_that_was_stopped_stalled() {
    // SIGSTOP: the process with the dispatcher and its tasks executes nothing for 8 ms.
    let records = vec![released(0, 0), charged(MS, 0, MS), charged(9 * MS, 0, MS / 10)];
    let trace = recorded("user", records, Period { woken_late: true, ..missed(0) });
    check("stopped", &trace, "busy", 0, CauseKind::DispatcherStalled, &[]);
}

#[test]
fn a_release_that_was_never_made_is_the_dispatchers() {
    let records = vec![event(50 * MS, event::RELEASES_LOST, 0, 0, 2), released(50 * MS, 1)];
    let trace = recorded("user", records, Period::lost(0, 0, 0, 10 * MS, 4 * MS));
    check("lost", &trace, "busy", 0, CauseKind::DispatcherStalled, &[]);
    assert_eq!(explain(&trace, "busy", 0).shares[0].what, Activity::NeverReleased);
}

#[test]
fn time_between_charges_that_nothing_used_is_unaccounted() {
    // Steal: the task was first throughout, and is charged for 3 of 10 ms.
    let records = vec![released(0, 0), charged(2 * MS, 0, 2 * MS), charged(10 * MS, 0, MS)];
    let trace = recorded("user", records, missed(0));
    check("steal", &trace, "busy", 0, CauseKind::Unaccounted, &[]);
}

#[test]
fn time_that_the_kernel_host_did_not_measure_as_executed_is_unaccounted() {
    let records = vec![
        released(0, 0),
        Record::running(0, 0, 7, false),
        Record::stopped(10 * MS, 0, 7, 3 * MS),
    ];
    let trace = recorded("kernel", records, missed(0));
    check("interrupts", &trace, "busy", 0, CauseKind::Unaccounted, &[]);
    assert_eq!(explain(&trace, "busy", 0).shares[0].ns, 7 * MS);
}

#[test]
fn a_lock_that_a_lower_task_holds_is_a_suspension() {
    // The user host leaves the CPU to the next in order only when the better one does not use it.
    let set = SET.replace("priority = 1", "priority = 3");
    let set = TaskSet::parse(&set, "set.toml").expect("it is right");
    let records = vec![
        released(0, 0),
        released(0, 1),
        charged(MS, 1, MS),
        charged(9 * MS, 0, 8 * MS),
        charged(10 * MS, 1, MS),
    ];
    let trace = recorded("user", records, missed(1));
    let trace = Trace { header: header("user", &set), ..trace };
    check("lock", &trace, "program", 0, CauseKind::Suspended, &[]);
}

#[test]
fn what_no_record_shows_is_not_guessed() {
    let set = "cpu = 0\npolicy = \"fp\"\ntask = [\
        { name = \"high\", period = \"20ms\", budget = \"4ms\", priority = 2, \
        work = { spin = \"4ms\" } },\
        { name = \"low\", period = \"20ms\", deadline = \"6ms\", budget = \"3ms\", priority = 1, \
        work = { spin = \"3ms\" } }]";
    let mut trace = simulate(set, 20, Costs::default());
    let kept = |r: &Record| {
        r.is_of_a_host() && r.kind > kind::TASK_PLACE || r.at().is_none_or(|at| at == 0)
    };
    let (before, after) = (trace.records.len(), trace.records.iter().filter(|r| kept(r)).count());
    let first = trace.records.iter().position(|r| !kept(r)).expect("something follows");
    let mut records: Vec<Record> = trace.records[..first].to_vec();
    records.retain(|r| r.kind != kind::RUNNING);
    records.push(Record::lost((before - after) as u64));
    records.extend(trace.records[first..].iter().filter(|r| kept(r) && r.kind != kind::RUNNING));
    trace.records = records;
    assert!(trace.lost() > 3);
    check("lost records", &trace, "low", 0, CauseKind::RecordsLost, &[]);
}

#[test]
fn a_policy_that_was_swapped_explains_the_misses_since_then() {
    let text = r#"cpu = 0
policy = "fp"
task = [
    { name = "high", period = "20ms", budget = "4ms", priority = 2, work = { spin = "4ms" } },
    { name = "low", period = "20ms", deadline = "6ms", budget = "3ms", priority = 1,
      work = { spin = "forever" } },
]"#;
    let mut trace = simulate(text, 40, Costs::NONE);
    check("as the set has it", &trace, "low", 0, CauseKind::HigherPriority, &["high"]);
    trace.records.insert(0, Record::policy(20 * MS, 0, "imprecise"));
    check("before the swap", &trace, "low", 0, CauseKind::HigherPriority, &["high"]);
    check("since the swap", &trace, "low", 1, CauseKind::PolicyOrder, &["high"]);
}
