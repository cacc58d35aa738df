//! What holds of any text and any number.

use proptest::prelude::*;
use punctual_taskset::{fmt_ns, parse_duration, TaskSet, DURATION_LIMIT, INFINITE};

/// A file that reads, as a start for mutations.
const GOOD: &str = include_str!("good/every-key.toml");

/// Another, with groups.
const GROUPS: &str = include_str!("good/groups-and-budgets.toml");

/// One of rt-app's.
const RT_APP: &str = include_str!("../../../examples/rt-app.json");

/// Pieces of task-set files, to reach deeper than random letters do.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "[[task]]",
        "[task]",
        "[[group]]",
        "[[budget_group]]",
        "parent",
        "windows",
        "start",
        "length",
        "cycle",
        "server",
        "arrival",
        "sporadic",
        "aperiodic",
        "steps",
        "sleep",
        "histogram",
        "recorded",
        "group",
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

/// Pieces of rt-app's files.
fn json_pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\"",
        "'",
        "\\",
        "/*",
        "*/",
        "//",
        "\n",
        "\"tasks\"",
        "\"global\"",
        "\"a\"",
        "\"run\" : 100,",
        "\"sleep\" : 900,",
        "\"timer\" : {",
        "\"ref\" : \"unique\",",
        "\"period\" : 1000",
        "\"phases\"",
        "\"loop\" : -1,",
        "\"cpus\" : [0]",
        "\"instance\" : 3,",
        "-1",
        "0",
        "1e9",
        "99999999999999999999",
        "true",
        "null",
        "word",
        "\u{e9}",
        "\0",
        "\r",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

/// Every error is one line with a cause and a help.
fn parse(text: &str) {
    parse_as(text, "any.toml");
}

fn parse_as(text: &str, name: &str) {
    if let Err(error) = TaskSet::parse(text, name) {
        assert!(!error.cause.is_empty() && !error.help.is_empty());
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        let lines = text.matches('\n').count() as u32 + 1;
        assert!(error.line().is_some_and(|line| line <= lines), "{error}");
        let _ = error.snippet();
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000, failure_persistence: None, ..ProptestConfig::default()
    })]

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
        from in 0..GOOD.len().max(GROUPS.len()), length in 0..40usize, put in ".{0,6}"
    ) {
        for good in [GOOD, GROUPS] {
            let from = from.min(good.len());
            let to = (from + length).min(good.len());
            if good.is_char_boundary(from) && good.is_char_boundary(to) {
                parse(&format!("{}{put}{}", &good[..from], &good[to..]));
            }
        }
    }

    #[test]
    fn any_text_and_any_pieces_of_rt_app_s_json_are_read_or_refused(
        text in any::<String>(), pieces in json_pieces()
    ) {
        parse_as(&text, "any.json");
        parse_as(&pieces, "any.json");
    }

    #[test]
    fn rt_app_s_json_with_a_hole_is_read_or_refused(
        from in 0..RT_APP.len(), length in 0..40usize, put in prop::sample::select(vec![
            "", "-1", "0", "1", "99999999", "4611686018427387", "{", "}", "\"", ",", "[]", "null",
        ])
    ) {
        let to = (from + length).min(RT_APP.len());
        parse_as(&format!("{}{put}{}", &RT_APP[..from], &RT_APP[to..]), "any.json");
    }

    /// The reference walks up from each group, at most as many steps as there are levels.
    #[test]
    fn groups_are_read_exactly_if_no_path_to_the_top_is_too_long(
        parents in prop::collection::vec(prop::option::weighted(0.9, 0..40usize), 1..40),
        far in any::<bool>()
    ) {
        // Parents anywhere make cycles; nearer to the top only, they make depths.
        let count = parents.len();
        let parents: Vec<Option<usize>> = parents
            .into_iter()
            .enumerate()
            .map(|(n, parent)| {
                parent.map(|p| if far { p % count } else { n.saturating_sub(1 + p % 2) })
            })
            .map(|parent| parent.filter(|_| count > 1))
            .enumerate()
            .map(|(n, parent)| parent.filter(|&p| far || p != n))
            .collect();
        let levels = |mut group: usize| {
            (1..=count + 1).find(|_| match parents[group] {
                Some(parent) => { group = parent; false }
                None => true,
            })
        };
        let fits = (0..count).all(|group| levels(group).is_some_and(|levels| levels <= 15));
        let mut text = "cpu = 0\npolicy = \"edf\"\n".to_owned();
        for (n, parent) in parents.iter().enumerate() {
            text += &format!("[[group]]\nname = \"{n}\"\npolicy = \"rm\"\nperiod = \"10ms\"\n\
                              budget = \"1ms\"\n");
            text += &parent.map_or(String::new(), |parent| format!("parent = \"{parent}\"\n"));
        }
        text += "[[task]]\nname = \"t\"\nperiod = \"10ms\"\nbudget = \"1ms\"\n\
                 work = { spin = \"1ms\" }\n";
        match TaskSet::parse(&text, "any.toml") {
            Ok(set) => {
                prop_assert!(fits);
                let read: Vec<_> = set.groups.iter().map(|group| group.parent).collect();
                prop_assert_eq!(read, parents);
            }
            Err(error) => prop_assert!(!fits, "{}", error),
        }
    }

    #[test]
    fn any_text_is_a_duration_or_refused(text in "[0-9.,_ +-]{0,30}[a-zA-Z\u{b5}0-9 ]{0,5}") {
        if let Err(error) = parse_duration(&text) {
            prop_assert!(!error.cause.is_empty() && !error.help.is_empty());
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
            ("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000),
            ("min", 60_000_000_000),
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
