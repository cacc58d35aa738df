//! What is written is read back; what is anything else is refused.

use crate::*;

fn limits() -> Limits {
    Limits {
        jobs: 11,
        tasks: 10,
        reservations: 10,
        groups: 2,
        budget_groups: 1,
        timers: 3,
        depth: 16,
        events: 128,
        records: 64,
        windows: 0,
    }
}

fn sample() -> Trace {
    let records = (0..40u64)
        .map(|i| Record { time: i << 40, a: !i, b: i * i, small: 7, kind: 1 + i as u32 % 17 })
        .collect();
    Trace { header: Header::new("user", 1, "edf", vec!["servo".to_owned()], limits()), records }
}

fn bytes_of(trace: &Trace) -> Vec<u8> {
    let mut bytes = Vec::new();
    trace.write(&mut bytes).expect("memory takes it");
    bytes
}

fn refusal(bytes: &[u8]) -> TraceError {
    Trace::read(&mut &bytes[..]).expect_err("refused")
}

#[test]
fn what_is_written_is_read_back() {
    assert_eq!(Trace::read(&mut &bytes_of(&sample())[..]).expect("it is whole"), sample());
    let empty = Trace { records: Vec::new(), ..sample() };
    assert_eq!(Trace::read(&mut &bytes_of(&empty)[..]).expect("it is whole"), empty);
}

#[test]
fn any_single_byte_that_is_changed_is_found_at_its_record() {
    let bytes = bytes_of(&sample());
    let records_at = bytes.iter().position(|&b| b == b'\n').expect("a header line") + 1 + 4;
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let error = refusal(&changed);
            let expected = (at.checked_sub(records_at)).map(|at| at as u64 / 36);
            match (expected, &error) {
                (None, TraceError::Header | TraceError::Format(_)) => {}
                (Some(n), TraceError::Changed { number, .. }) => {
                    assert_eq!(*number, n, "byte {at}")
                }
                _ => panic!("byte {at} ^ {flip:#x}: {error}"),
            }
        }
    }
}

#[test]
fn records_that_are_left_out_repeated_or_swapped_are_found_at_the_first_of_them() {
    let bytes = bytes_of(&sample());
    let records_at = bytes.iter().position(|&b| b == b'\n').expect("a header line") + 1 + 4;
    let frame = |n: usize| records_at + 36 * n..records_at + 36 * (n + 1);
    let left_out = [&bytes[..frame(5).start], &bytes[frame(6).start..]].concat();
    let repeated = [&bytes[..frame(6).start], &bytes[frame(5).start..]].concat();
    let swapped =
        [&bytes[..frame(5).start], &bytes[frame(6)], &bytes[frame(5)], &bytes[frame(7).start..]]
            .concat();
    for (changed, first) in [(left_out, 5), (repeated, 6), (swapped, 5)] {
        let error = refusal(&changed);
        assert!(matches!(error, TraceError::Changed { number, .. } if number == first), "{error}");
    }
}

#[test]
fn a_file_that_was_cut_or_grew_is_refused() {
    let bytes = bytes_of(&sample());
    // Without its end, and in the middle of a record.
    assert!(matches!(refusal(&bytes[..bytes.len() - 36]), TraceError::Short { number: 40 }));
    assert!(matches!(refusal(&bytes[..bytes.len() - 36 - 10]), TraceError::Short { number: 39 }));
    assert!(refusal(&[&bytes[..], &[0]].concat()).to_string().contains("follows its end"));
}

#[test]
fn what_is_no_trace_is_refused() {
    for junk in [&b"\xff\xfe\n"[..], b"{}\n", b"", b"[[task]]\nname = \"a\"\n"] {
        assert!(matches!(refusal(junk), TraceError::Format(_)), "{junk:?}");
    }
}

#[test]
fn another_version_is_named() {
    for version in [1, 2] {
        let old =
            format!("{{\"format\":\"punctual-trace\",\"version\":{version},\"host\":\"user\"}}\n");
        let why = refusal(old.as_bytes()).to_string();
        assert!(
            why.contains(&format!("of version {version}")) && why.contains("record the run again"),
            "{why}"
        );
    }
    let mut later = sample();
    later.header.version = 4;
    assert!(refusal(&bytes_of(&later)).to_string().contains("version 4"));
}

#[test]
fn every_kind_of_record_has_its_word() {
    let known = |kind| Record { kind, ..Record::default() }.what().is_some();
    assert!((1..=28).chain([64]).chain(96..=102).chain(129..=148).all(known));
    assert!(![0, 29, 65, 104, 128, 149].into_iter().any(known));
}

#[test]
fn periods_are_read_back() {
    let whole = Period {
        received: 7,
        unused: 3,
        started: 12,
        completed: NEVER,
        end: JobEnd::TaskGone,
        ready_throughout: true,
        miss: true,
        ..Period::unjudged(3, 1 << 40, 10, 20, 5)
    };
    let periods =
        [Period::lost(0, 1, 10, 20, 5), whole, Period { woken_late: true, overrun: true, ..whole }];
    let mut trace = sample();
    for (n, period) in periods.iter().enumerate() {
        trace.records.splice(10 * n..10 * n, period.to_records());
    }
    assert_eq!(trace.periods().collect::<Vec<_>>(), periods);
    let read = Trace::read(&mut &bytes_of(&trace)[..]).expect("it is whole");
    assert_eq!(read.periods().collect::<Vec<_>>(), periods);
    assert!(trace.records.iter().filter(|r| r.what() == Some("period")).all(Record::is_of_a_host));
}

fn intervals(host: &str, records: &[Record]) -> Vec<(u32, u64, u64, bool)> {
    let header = Header::new(host, 1, "edf", Vec::new(), limits());
    let intervals = Trace { header, records: records.to_vec() }.intervals();
    assert!(intervals.iter().all(|i| i.cpu == 1));
    intervals.into_iter().map(|i| (i.task, i.from, i.to, i.background)).collect()
}

#[test]
fn intervals_are_from_running_to_stopped_of_each_thread() {
    let records = [
        Record::running(10, 0, 71, false),
        Record::task_place(0, 4),
        Record::task_place(1, 5),
        Record::stopped(15, 0, 71, 5),
        Record::running(15, 1, 0, true),
        Record::running(16, 0, 72, false),
        Record::stopped(18, 0, 72, 2),
        Record::stopped(20, 1, 0, 5),
        Record::running(21, 0, 71, false),
        Record::lost(9),
        Record::stopped(30, 0, 71, 3),
        // The number is used again, by a task that was added.
        Record::task_place(0, 6),
        Record::running(31, 0, 73, false),
        Record::stopped(33, 0, 73, 2),
    ];
    let expected = [(4, 10, 15, false), (4, 16, 18, false), (5, 15, 20, true), (6, 31, 33, false)];
    assert_eq!(intervals("kernel", &records), expected);
}

#[test]
fn intervals_of_the_user_host_are_as_long_as_its_charges() {
    let charge = |time, small, a| Record { time, a, b: 0, small, kind: kind::CHARGE_TASK };
    let records = [
        Record::task_place(0, 0),
        Record::task_place(1, 1),
        charge(10, 1, 4),
        charge(20, 0, 5),
        charge(20, 1, 3),
    ];
    let expected = [(1, 6, 10, false), (0, 12, 17, false), (1, 17, 20, false)];
    assert_eq!(intervals("user", &records), expected);
    assert_eq!(intervals("kernel", &records), [], "other hosts record it");
}
