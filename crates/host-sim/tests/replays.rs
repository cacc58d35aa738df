//! Traces lead to the same decisions again, and whatever is changed in them is found.

mod common;

use common::{set, trace, Seen, MS};
use punctual_dispatcher::{Attribute, Dispatcher, For, Job};
use punctual_host_sim::{replay, Options, ReplayError, Replayed, Simulation, Watcher};
use punctual_taskset::{Costs, DomainId, TaskSet};
use punctual_trace::{Header, Limits, Record, Trace, TraceBuffer, TraceError, TraceSink};

/// Preemption, overruns, sleeps and the wake-up rule; carried out by reservations.
fn busy() -> TaskSet {
    let tasks = [
        "period = \"5ms\"; budget = \"1ms\"; work = { uniform = [\"0.5ms\", \"1.3ms\"], seed = 7 }",
        "period = \"7ms\"; budget = \"3ms\"; work = { steps = [{ spin = \"1ms\" }, { sleep = \
         \"1ms\" }, { spin = \"2ms\" }] }",
        "period = \"11ms\"; budget = \"2ms\"; work = { spin = \"forever\" }; overrun = \
         \"background\"",
    ];
    set("edf", &tasks)
}

fn replayed(trace: &[u8]) -> Result<Replayed, ReplayError> {
    replay(trace, &mut |_| true)
}

#[test]
fn a_simulated_run_replays_to_the_same_decisions() {
    let bytes = trace(&busy(), 385 * MS);
    let records = Trace::read(&mut &bytes[..]).expect("it is a trace").records;
    let replayed = replayed(&bytes).expect("it can be replayed");
    assert_eq!(replayed.difference, None);
    assert_eq!(replayed.decisions, records.iter().filter(|r| r.is_decision()).count() as u64);
    assert!(replayed.decisions > 500 && replayed.inputs > 500, "{replayed:?}");
    assert_eq!((replayed.header.host.as_str(), replayed.until), ("sim", 385 * MS));
}

/// A release executes in several windows, others in each of three releases.
fn windows() -> TaskSet {
    let tasks = [
        "period = \"4ms\"; budget = \"1ms\"; work = { spin = \"forever\" }",
        "period = \"6ms\"; budget = \"2ms\"; work = { uniform = [\"1ms\", \"2.5ms\"], seed = 3 }",
        "period = \"12ms\"; budget = \"4ms\"; work = { spin = \"forever\" }; overrun = \"signal\"",
    ];
    set("td", &tasks)
}

#[test]
fn a_time_table_in_the_dispatcher_replays_to_the_same_decisions() {
    let bytes = trace(&windows(), 120 * MS);
    let records = Trace::read(&mut &bytes[..]).expect("it is a trace").records;
    let of = |kind: u32| records.iter().filter(|r| r.kind == kind).count();
    assert!(
        of(17) > 4 && of(128 + 19) + of(128 + 20) > 15,
        "windows were drafted, and releases continued"
    );
    assert_eq!((of(15), of(20)), (0, 0), "no timer was asked for and no job added");
    let replayed = replayed(&bytes).expect("it can be replayed");
    assert_eq!(replayed.difference, None);
}

#[test]
fn two_runs_of_one_set_leave_the_same_bytes() {
    assert_eq!(trace(&busy(), 100 * MS), trace(&busy(), 100 * MS));
}

#[test]
fn every_byte_of_a_trace_that_is_flipped_is_reported() {
    let bytes = trace(&busy(), 10 * MS);
    assert!(bytes.len() > 2_000);
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x10;
        assert!(matches!(replayed(&changed), Err(ReplayError::Trace(_))), "byte {at}");
    }
}

/// What the kernel host records for itself stands among the others, and counts in their numbers.
#[test]
fn records_of_a_host_are_passed_over_and_counted() {
    let whole = Trace::read(&mut &trace(&busy(), 30 * MS)[..]).expect("it is a trace");
    let mut records = Vec::new();
    for (n, &record) in whole.records.iter().enumerate() {
        records.push(record);
        // Not within an addition, whose records follow one another.
        if record.is_decision() {
            records.push(Record { kind: 96 + (n as u32 & 1), a: 7, ..record });
        }
    }
    let again = |records: &[Record]| {
        let mut bytes = Vec::new();
        let records = records.to_vec();
        Trace { records, header: whole.header.clone() }.write(&mut bytes).expect("memory takes it");
        replayed(&bytes).expect("it can be replayed")
    };
    let (before, after) = (again(&whole.records), again(&records));
    assert_eq!(after.difference, None);
    assert_eq!((after.inputs, after.decisions), (before.inputs, before.decisions));
    let last = records.iter().rposition(|r| r.is_decision()).expect("there are decisions");
    records[last].a ^= 1;
    assert_eq!(again(&records).difference.map(|d| d.number), Some(last as u64));
}

/// The decisions themselves reveal a change, even in a trace whose checks were recomputed.
#[test]
fn a_decision_that_was_rewritten_left_out_or_invented_is_the_first_difference() {
    let mut whole = Trace::read(&mut &trace(&busy(), 30 * MS)[..]).expect("it is a trace");
    whole.records.retain(|r| !r.is_of_a_host());
    let again = |records: Vec<Record>| {
        let mut bytes = Vec::new();
        Trace { records, header: whole.header.clone() }.write(&mut bytes).expect("memory takes it");
        replayed(&bytes)
    };
    let decisions = (0..whole.records.len()).filter(|&n| whole.records[n].is_decision());
    let mut found = 0;
    for n in decisions {
        let first =
            |records| again(records).expect("only decisions changed").difference.map(|d| d.number);
        let mut rewritten = whole.records.clone();
        rewritten[n].a ^= 1;
        assert_eq!(first(rewritten), Some(n as u64));
        let mut invented = whole.records.clone();
        invented.insert(n, whole.records[n]);
        let at = first(invented).expect("it is different");
        assert!(at == n as u64 || at == n as u64 + 1, "{at}, {n} was doubled");
        // A selection that another one of the same instant follows has no effect, nor has the very
        // last.
        let later = &whole.records[n + 1..];
        let unseen = whole.records[n].what() == Some("selected")
            && later
                .iter()
                .take_while(|r| r.at() == whole.records[n].at())
                .any(|r| r.what() == Some("selected"));
        let mut left_out = whole.records.clone();
        left_out.remove(n);
        let at = first(left_out);
        assert!(
            at.is_some_and(|at| at >= n as u64) || unseen || later.is_empty(),
            "{n} was left out: {at:?}"
        );
        found += u32::from(at.is_some());
    }
    assert!(found > 50);
}

#[test]
fn an_input_that_was_changed_leads_to_other_decisions() {
    let whole = Trace::read(&mut &trace(&busy(), 100 * MS)[..]).expect("it is a trace");
    let charge =
        whole.records.iter().position(|r| r.what() == Some("charge job")).expect("a task ran");
    let mut records = whole.records.clone();
    records[charge].b -= 1;
    let mut bytes = Vec::new();
    Trace { records, ..whole }.write(&mut bytes).expect("memory takes it");
    let difference =
        replayed(&bytes).expect("it makes sense").difference.expect("a job used 1 ns less");
    assert!(difference.number > charge as u64);
    assert_ne!(difference.recorded, difference.replayed);
}

#[test]
fn a_trace_with_a_gap_is_replayed_up_to_it() {
    let whole = Trace::read(&mut &trace(&busy(), 30 * MS)[..]).expect("it is a trace");
    for gap in [0, 1, 40, 99] {
        let mut records = whole.records.clone();
        records.splice(gap..gap + 17, [Record::lost(17)]);
        let mut bytes = Vec::new();
        Trace { records, header: whole.header.clone() }.write(&mut bytes).expect("memory takes it");
        let replayed = replayed(&bytes).expect("what is before makes sense");
        assert_eq!(
            (replayed.difference, replayed.cut, replayed.lost),
            (None, Some(gap as u64), 17)
        );
    }
}

/// What was simulated, and what its trace has of it.
#[test]
fn a_trace_has_the_execution_of_every_task() {
    let (set, end) = (busy(), 385 * MS);
    let (mut seen, buffer) = (Seen::default(), TraceBuffer::default());
    let sink =
        TraceSink::new(buffer.clone(), Header::new("sim", 0, "edf", vec![], Limits::default()));
    let costs = Costs { release: 20_000, switch: 10_000, ..Costs::default() };
    let options =
        Options { traces: vec![(DomainId(0), sink.clone())], costs, ..Options::default() };
    Simulation::new(&set, options)
        .expect("it can be simulated")
        .run(end, &mut seen)
        .expect("it runs");
    sink.finish().expect("memory takes it");
    let trace = Trace::read(&mut &buffer.bytes()[..]).expect("it is whole");
    let intervals = trace.intervals();
    let mut read = Seen::default();
    intervals.iter().for_each(|interval| read.executed(interval));
    assert!(
        (read.intervals, read.background) == (seen.intervals, seen.background),
        "not what was simulated"
    );
    assert!(intervals.iter().any(|i| i.background) && intervals.iter().any(|i| !i.background));
    assert!(trace.records.iter().filter_map(Record::at).is_sorted(), "in order of time");
}

#[test]
fn a_trace_that_is_cut_anywhere_is_replayed_up_to_its_last_whole_record() {
    const FRAME: usize = Record::BYTES + 4;
    let bytes = trace(&busy(), 10 * MS);
    let whole = replayed(&bytes).expect("it is a trace");
    assert_eq!((whole.cut, &whole.difference), (None, &None));
    let count = Trace::read(&mut &bytes[..]).expect("it is a trace").records.len();
    let header = bytes.len() - (count + 1) * FRAME;
    for length in (header..bytes.len()).step_by(7) {
        let replayed = replayed(&bytes[..length]).unwrap_or_else(|e| panic!("{length} bytes: {e}"));
        assert_eq!(replayed.difference, None, "{length} bytes");
        assert_eq!(replayed.cut, Some(((length - header) / FRAME) as u64), "{length} bytes");
        assert!(replayed.decisions <= whole.decisions);
    }
    let header_cut = replayed(&bytes[..header - 1]);
    assert!(matches!(header_cut, Err(ReplayError::Trace(TraceError::Short { number: 0 }))));
}

#[test]
fn what_asks_for_an_impossible_dispatcher_is_refused() {
    let bytes = trace(&busy(), 10 * MS);
    let mut whole = Trace::read(&mut &bytes[..]).expect("it is a trace");
    whole.header.limits.jobs = 0;
    let mut bytes = Vec::new();
    whole.write(&mut bytes).expect("memory takes it");
    assert!(matches!(replayed(&bytes), Err(ReplayError::Limits(_))));
}

/// Everything that a host may tell a dispatcher, once.
#[test]
fn every_kind_of_input_is_replayed() {
    let limits =
        Limits { groups: 3, budget_groups: 2, timers: 4, windows: 2, ..Limits::for_tasks(4) };
    let mut d = Dispatcher::new(limits).expect("possible limits");
    let say = "as it says";
    d.set_granularity(5).expect(say);
    d.set_order(1, &[Attribute::Finish, Attribute::Start]).expect(say);
    let task = d.add_task(0).expect(say);
    let other = d.add_task(0).expect(say);
    d.add_job(&Job { group: 0, finish: 900, ..Job::new(For::Group(1), 300) }, 0).expect(say);
    d.add_job(&Job { finish: 2_000, ..Job::new(For::Budget(1), 400) }, 0).expect(say);
    let job = Job {
        group: 1,
        budget_group: 1,
        priority: -3,
        cookie: 9,
        ..Job::new(For::Task(task), 100)
    };
    let first = d.add_job(&job, 0).expect(say);
    let second = d.add_job(&Job { start: 50, ..job }, 0).expect(say);
    let timer = d.ask_timer(70, 11, 0).expect(say);
    d.ask_timer(60, 12, 0).expect(say);
    let reservation = punctual_dispatcher::Reservation {
        serves: For::Task(other),
        start: 10,
        period: 1_000,
        budget: 200,
        deadline: 900,
        priority: 4,
        group: 0,
        budget_group: 0,
        cookie: None,
        overrun: punctual_dispatcher::OverrunPolicy::Skip,
        wakeup_rule: true,
    };
    d.draft_window(0, 1, true, 0).expect(say);
    d.drop_windows(0);
    let r = d.add_reservation(&reservation, 0).expect(say);
    d.change_reservation(r, &punctual_dispatcher::Reservation { budget: 150, ..reservation }, 0)
        .expect(say);
    d.advance(0);
    d.select(0, 0);
    d.charge_job(first, 40, 40).expect(say);
    d.task_blocked(other, 40).expect(say);
    d.cancel_timer(timer, 40).expect(say);
    d.advance(40);
    d.select(0, 40);
    d.charge_task(task, 20, 60).expect(say);
    d.complete_job(first, 60).expect(say);
    d.task_ready(other, 60).expect(say);
    d.advance(60);
    d.select(0, 60);
    d.task_done(other, 100).expect(say);
    d.cancel_job(second, 100).expect(say);
    d.take_lost(r);
    d.remove_reservation(r, 100).expect(say);
    d.task_gone(task, 100).expect(say);
    d.select(0, 100);
    d.advance(2_100);
    d.select(0, 2_100);

    let records: Vec<Record> =
        (0..d.record_count()).map(|n| d.record(n).expect("the ring is large")).collect();
    let kinds = |kind: u32| records.iter().any(|r| r.kind == kind);
    let missing: Vec<u32> = (1..=18).chain(20..=27).filter(|&k| !kinds(k)).collect();
    assert_eq!(missing, [0; 0], "every input of record.h is here");
    let mut bytes = Vec::new();
    let header = Header::new("user", 0, "edf", vec![], limits);
    Trace { header, records }.write(&mut bytes).expect("memory takes it");
    let replayed = replayed(&bytes).expect("it can be replayed");
    assert_eq!(replayed.difference, None);
}
