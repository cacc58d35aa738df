//! What holds of any text and any number.

use proptest::prelude::*;
use punctual_taskset::{fmt_ns, parse_duration, TaskSet, DURATION_LIMIT, INFINITE};

/// A file that reads, as a start for mutations.
const GOOD: &str = include_str!("good/every-key.toml");

/// Pieces of task-set files, to reach deeper than random letters do.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "[[task]]",
        "[task]",
        "[[group]]",
        "name",
        "period",
        "budget",
        "work",
        "command",
        "pid",
        "cpu",
        "cpus",
        "policy",
        "duration",
        "domain",
        "priority",
        " = ",
        "\"",
        "\n",
        "{",
        "}",
        "[",
        "]",
        ",",
        "1ms",
        "\"250us\"",
        "0",
        "-1",
        "9999999999999999999999",
        "1.5",
        "true",
        "spin",
        "forever",
        "uniform",
        "seed",
        "\u{e9}",
        "\u{feff}",
        "\r",
        "\0",
        "#",
        "'''",
        ".",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Every error is one line with a cause and a cure.
fn parse(text: &str) {
    if let Err(error) = TaskSet::parse(text, "any.toml") {
        assert!(!error.cause.is_empty() && !error.cure.is_empty());
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        let lines = text.matches('\n').count() as u32 + 1;
        assert!(error.line().is_some_and(|line| line <= lines), "{error}");
        let _ = error.snippet();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused(text in any::<String>()) {
        parse(&text);
    }

    #[test]
    fn any_pieces_of_a_file_are_read_or_refused(text in pieces()) {
        parse(&text);
    }

    #[test]
    fn a_good_file_with_a_hole_is_read_or_refused(
        from in 0..GOOD.len(), length in 0..40usize, put in ".{0,6}"
    ) {
        let to = (from + length).min(GOOD.len());
        if GOOD.is_char_boundary(from) && GOOD.is_char_boundary(to) {
            parse(&format!("{}{put}{}", &GOOD[..from], &GOOD[to..]));
        }
    }

    #[test]
    fn any_text_is_a_duration_or_refused(text in "[0-9.,_ +-]{0,30}[a-zA-Z\u{b5}0-9 ]{0,5}") {
        if let Err(error) = parse_duration(&text) {
            prop_assert!(!error.cause.is_empty() && !error.cure.is_empty());
            prop_assert_eq!(error.to_string().lines().count(), 1);
        }
    }

    #[test]
    fn a_printed_duration_reads_as_itself(bits in 0..62u32, low in any::<u64>()) {
        let ns = low & ((1 << bits) | ((1 << bits) - 1));
        prop_assert_eq!(parse_duration(&fmt_ns(ns)), Ok(ns));
        prop_assert_eq!(parse_duration(&fmt_ns(ns).replace(' ', "")), Ok(ns));
    }

    #[test]
    fn a_duration_is_exact_in_every_unit(number in 0..76_000_000u64, unit in 0..5usize) {
        let (name, ns) = [
            ("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000),
        ][unit];
        prop_assert_eq!(parse_duration(&format!("{number}{name}")), Ok(number * ns));
        let hundredths = parse_duration(&format!("{}.{:02}{name}", number / 100, number % 100));
        if (number * ns) % 100 == 0 {
            prop_assert_eq!(hundredths, Ok(number * ns / 100));
        } else {
            prop_assert!(hundredths.is_err());
        }
    }
}

#[test]
fn durations_print_in_the_largest_unit_they_fill() {
    for (ns, text) in [
        (0, "0 ns"),
        (1, "1 ns"),
        (250_000, "250 us"),
        (1_500_000, "1.5 ms"),
        (20_000_000, "20 ms"),
        (1_000_001, "1.000001 ms"),
        (90_000_000_000, "90 s"),
        (INFINITE, "infinite"),
    ] {
        assert_eq!(fmt_ns(ns), text);
    }
}

#[test]
fn the_limit_of_durations_is_exact() {
    assert_eq!(parse_duration(&format!("{}ns", DURATION_LIMIT - 1)), Ok(DURATION_LIMIT - 1));
    assert!(parse_duration(&format!("{DURATION_LIMIT}ns")).is_err());
    assert_eq!(parse_duration("0.00000000005min"), Ok(3));
}
