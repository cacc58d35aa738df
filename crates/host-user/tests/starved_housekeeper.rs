//! A housekeeper that gets no CPU for ten seconds: control messages still arrive, and every release
//! is accounted for.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use std::time::Duration;

use punctual_host_user::{now, Host, RunEvent, ThreadTask};
use punctual_taskset::{Body, Spin, TaskSpec};
use punctual_test_support::comes_true;
use punctual_trace::kind::{self, event};
use punctual_trace::{Header, Limits, Record, TaskEnd, Trace, TraceBuffer, TraceSink};

mod common;

const PERIOD: u64 = 1_000_000;
/// From handing over to the first release, ns.
const LEAD: u64 = 10_000_000;
/// Three tasks have 3,000 releases a second, so that the ring for reports (8,192) is full after
/// three seconds; the third task ends after that.
const STARVED: Duration = Duration::from_secs(10);
const ENDS_AT_RELEASE: u64 = 5_000;
/// Completed jobs that fill the ring for certain. On a machine so slow that releases are lost they
/// take longer: releases lost at one time make a single report.
const JOBS: u64 = 16_000;
/// The ten seconds write some 400,000 records; the trace must have all of them.
const RECORDS: u32 = 1 << 20;

fn add(host: &mut Host, index: u32, body: impl FnOnce(&mut ThreadTask) + Send + 'static) {
    let spec = TaskSpec::new(format!("t{index}"), PERIOD, PERIOD / 10, Body::Spin(Spin::Forever));
    host.add_thread(index, &spec, 64 << 10, body).expect("there is room");
}

/// Releases of a task by the dispatcher's own records: those made, and those that it lost.
fn released(trace: &Trace, task: u32) -> u64 {
    assert_eq!(trace.lost(), 0, "the trace has gaps");
    let of_task = |r: &&Record| r.small == task;
    let records = trace.records.iter().filter(of_task);
    records
        .map(|r| match r.kind.checked_sub(kind::EVENT) {
            Some(event::RELEASED) => 1,
            Some(event::RELEASES_LOST) => r.b,
            _ => 0,
        })
        .sum()
}

#[test]
fn a_starved_housekeeper_loses_reports_by_number_and_control_messages_never() {
    let buffer = TraceBuffer::default();
    let trace = TraceSink::new(
        buffer.clone(),
        Header::new("user", 0, "edf", Vec::new(), Limits::default()),
    );
    let Some(mut host) = common::start(RECORDS, Some(&trace)) else { return };
    let (jobs, over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    for index in [0, 1] {
        let jobs = jobs.clone();
        add(&mut host, index, move |task| {
            while task.wait_period().is_some() {
                jobs.fetch_add(1, Relaxed);
            }
        });
    }
    let (counted, ended) = (jobs.clone(), over.clone());
    add(&mut host, 2, move |task| {
        while task.wait_period().is_some_and(|r| r.number < ENDS_AT_RELEASE) {
            counted.fetch_add(1, Relaxed);
        }
        ended.store(true, Relaxed);
    });
    host.begin(now() + LEAD).expect("there is room");
    std::thread::sleep(STARVED);
    assert!(
        comes_true(|| jobs.load(Relaxed) > JOBS && over.load(Relaxed)),
        "{jobs:?} jobs, the third ended: {over:?}"
    );

    let (mut reported, mut unreported, mut ended) = ([0u64; 3], [0u64; 3], Vec::new());
    let mut sink = |event| match event {
        RunEvent::Period { period, .. } => reported[period.task as usize] += 1,
        RunEvent::Unreported { task, count } => unreported[task as usize] += count,
        RunEvent::Ended { task, how } => ended.push((task, how)),
        RunEvent::Warning(text) => println!("{text}"),
        RunEvent::PolicyStopped(stop) => panic!("{stop:?}"),
        RunEvent::Executed { .. } => {}
    };
    host.housekeep(&mut sink);
    host.finish(&mut sink);
    assert_eq!(ended, [(2, TaskEnd::Returned)]);
    assert!(unreported.iter().sum::<u64>() > 0, "the ring was never full: {reported:?}");
    trace.finish().expect("memory takes it");
    let trace = Trace::read(&mut &buffer.bytes()[..]).expect("it is whole");
    for task in 0..3 {
        // A period is reported at the next release, so that the last one never is.
        let (of_task, all) = (task as usize, released(&trace, task));
        assert_eq!(
            reported[of_task] + unreported[of_task] + 1,
            all,
            "task {task}: {reported:?} {unreported:?}"
        );
    }
}
