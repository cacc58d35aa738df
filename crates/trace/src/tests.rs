//! What is written is read back; what is anything else is refused.

use crate::*;

fn limits() -> TraceLimits {
    TraceLimits {
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
    let records =
        (0..40u64).map(|i| Record { time: i << 40, a: !i, b: i * i, small: 7, kind: 1 + i as u32 % 17 }).collect();
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
                (Some(n), TraceError::Changed { number, .. }) => assert_eq!(*number, n, "byte {at}"),
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
    let swapped = [&bytes[..frame(5).start], &bytes[frame(6)], &bytes[frame(5)], &bytes[frame(7).start..]].concat();
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
    let old = b"{\"format\":\"punctual-trace\",\"version\":1,\"host\":\"user\"}\n";
    assert!(refusal(old).to_string().contains("version 1"), "{}", refusal(old));
    let mut later = sample();
    later.header.version = 3;
    assert!(refusal(&bytes_of(&later)).to_string().contains("version 3"));
}

#[test]
fn a_header_from_before_there_were_windows_has_none() {
    let line = serde_json::to_string(&sample().header).expect("a header");
    let older = line.replace(",\"windows\":0", "");
    assert_ne!(line, older);
    assert_eq!(serde_json::from_str::<Header>(&older).expect("a header"), sample().header);
}

#[test]
fn every_kind_of_record_has_its_word() {
    let known = |kind| Record { kind, ..Record::default() }.what().is_some();
    assert!((1..=18).chain(20..=27).chain([64]).chain(129..=148).all(known));
    assert!(![0, 19, 28, 65, 128, 149].into_iter().any(known));
}
