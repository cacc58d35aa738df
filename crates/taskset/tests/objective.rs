//! Objectives: their values, exactly, and what is no expression.

use proptest::prelude::*;
use punctual_taskset::{Objective, ObjectiveError, ReleaseAttributes, LONGEST_OBJECTIVE};

const RELEASE: ReleaseAttributes = ReleaseAttributes {
    release: 1_000,
    period: 70,
    deadline: 60,
    budget: 9,
    priority: -4,
    offset: 20,
};

fn value(text: &str) -> Result<i64, ObjectiveError> {
    Objective::parse(text).unwrap_or_else(|e| panic!("{text}: {e}")).value(&RELEASE)
}

#[test]
fn operators_have_the_usual_precedence_and_order() {
    for (text, is) in [
        ("release", 1_000),
        ("finish", 1_060),
        ("finish - budget", 1_051),
        ("period + deadline * budget", 70 + 60 * 9),
        ("(period + deadline) * budget", 130 * 9),
        ("period - deadline - budget", 70 - 60 - 9),
        ("period - (deadline - budget)", 70 - (60 - 9)),
        ("period / budget * budget", 63),
        ("period % budget", 7),
        ("priority / 3", -1),
        ("priority % 3", -1),
        ("-priority", 4),
        ("--priority", -4),
        ("-offset + 1", -19),
        ("2 * -offset", -40),
        ("min(period, max(budget, offset))", 20),
        ("abs(priority) * 10", 40),
        ("abs(budget - period)", 61),
        ("2us", 2_000),
        ("1.5 us + 1 ns", 1_501),
        ("\n finish\t% 7\r\n", 1_060 % 7),
        ("9223372036854775807", i64::MAX),
        ("-9223372036854775807", -i64::MAX),
        // On the way, 128 bits are enough.
        ("9223372036854775807 * period / 9223372036854775807", 70),
    ] {
        assert_eq!(value(text), Ok(is), "{text}");
    }
}

#[test]
fn what_has_no_value_comes_last() {
    for (text, error) in [
        ("period / (budget - 9)", ObjectiveError::DivisionByZero),
        ("period % (priority + 4)", ObjectiveError::DivisionByZero),
        ("release * 9223372036854775807", ObjectiveError::Overflow),
        ("-9223372036854775807 - budget", ObjectiveError::Overflow),
        ("period - 9223372036854775807 - period - 1", ObjectiveError::Overflow),
        ("release * 9223372036854775807 * 9223372036854775807 * release", ObjectiveError::Overflow),
    ] {
        assert_eq!(value(text), Err(error), "{text}");
        assert_eq!(Objective::parse(text).unwrap().priority(&RELEASE), i64::MIN, "{text}");
    }
    assert_eq!(Objective::parse("finish - budget").unwrap().priority(&RELEASE), -1_051);
}

#[test]
fn it_shows_whether_its_value_differs_from_release_to_release() {
    let parse = |text: &str| Objective::parse(text).unwrap();
    assert!(parse("(finish)").is_finish() && parse("finish").uses_release());
    assert!(!parse("finish + 0").is_finish() && parse("budget - release").uses_release());
    assert!(!parse("period - offset").uses_release() && !parse("1").uses_release());
    assert_eq!(parse(" ( finish ) ").text(), " ( finish ) ");
}

#[test]
fn the_deepest_and_the_longest_are_evaluated() {
    // Each level has a sum, a product and a first argument that wait.
    let mut deep = "period".to_owned();
    for _ in 0..16 {
        deep = format!("1 + 2 * max(1 + 2 * budget, {deep})");
    }
    let level = |inner: i64| 1 + 2 * inner.max(1 + 2 * 9);
    assert_eq!(value(&deep), Ok((0..16).fold(70, |inner, _| level(inner))));
    let right = "budget + period * max(offset, ".repeat(16) + "1" + &")".repeat(16);
    assert!(value(&right).is_err(), "70^16 does not fit");

    let mut long = "budget".to_owned();
    while long.len() + "+budget".len() <= LONGEST_OBJECTIVE {
        long += "+budget";
    }
    assert_eq!(value(&long), Ok(9 * long.split('+').count() as i64));
    assert!(Objective::parse(&format!("{long}+budget")).is_err());
}

/// An expression as text, and its value by another way; `None` where it has none.
fn expression() -> impl Strategy<Value = (String, Option<i128>)> {
    let leaf = prop_oneof![
        (0..1_000i64).prop_map(|n| (n.to_string(), Some(n.into()))),
        Just(("release".to_owned(), Some(1_000))),
        Just(("finish".to_owned(), Some(1_060))),
        Just(("priority".to_owned(), Some(-4))),
    ];
    leaf.prop_recursive(5, 40, 2, |inner| {
        (inner.clone(), inner, 0..8).prop_map(|((a, x), (b, y), which)| {
            let of = |f: fn(i128, i128) -> Option<i128>| x.zip(y).and_then(|(x, y)| f(x, y));
            match which {
                0 => (format!("({a} + {b})"), of(i128::checked_add)),
                1 => (format!("({a} - {b})"), of(i128::checked_sub)),
                2 => (format!("({a} * {b})"), of(i128::checked_mul)),
                3 => (format!("({a} / {b})"), of(i128::checked_div)),
                4 => (format!("({a} % {b})"), of(i128::checked_rem)),
                5 => (format!("min({a}, {b})"), of(|x, y| Some(x.min(y)))),
                6 => (format!("-{a}"), x.and_then(i128::checked_neg)),
                _ => (format!("abs({a})"), x.and_then(i128::checked_abs)),
            }
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn values_are_those_of_exact_arithmetic((text, value) in expression()) {
        let value = value.and_then(|v| i64::try_from(v).ok()).filter(|&v| v != i64::MIN);
        match Objective::parse(&text) {
            Ok(objective) => prop_assert_eq!(objective.value(&RELEASE).ok(), value, "{}", text),
            // Found without the attributes.
            Err(_) => prop_assert!(value.is_none(), "{}", text),
        }
    }

    #[test]
    fn any_text_is_an_expression_or_refused(text in "[a-z0-9 ().,+*/%-]{0,40}|.{0,20}") {
        if let Ok(objective) = Objective::parse(&text) {
            let _ = objective.value(&RELEASE);
        }
    }
}
