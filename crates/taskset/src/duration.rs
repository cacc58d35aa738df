//! Durations as people write them ("250us", "1.5 ms"), to and from whole nanoseconds.
//!
//! Integers only: a decimal fraction is exact or it is refused, so that what a file says and what a
//! dispatcher enforces are the same number.

use crate::explain::meant;
use punctual_diagnostic::is_printable;

/// Durations are below this many ns (2^62, some 146 years), so that sums of a few cannot overflow.
pub const DURATION_LIMIT: u64 = 1 << 62;

/// The units, longest last, with their length in ns.
const UNITS: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];

/// What people also write, by the unit they mean.
const MEANT: [(&str, &str); 5] = [
    ("ns", "n nsec"),
    ("us", "u usec \u{b5}s \u{3bc}s micros"),
    ("ms", "msec millis"),
    ("s", "sec secs second seconds"),
    ("min", "mins minute minutes"),
];

/// A fraction of a minute has at most this many digits before it is finer than 1 ns:
/// 60e9 = 2^11 * 3 * 5^10, and a fraction without trailing zeros lacks a factor 2 or 5.
const MAX_FRACTION_DIGITS: usize = 11;

/// Why a text is not a duration. Prints as one line, `cause; help`, which suits clap.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}; {help}")]
pub struct DurationError {
    /// What is wrong; begins with the text in quotes.
    pub cause: String,
    /// What would be right.
    pub help: String,
}

/// Reads a duration: a decimal number and a unit (`ns`, `us`, `ms`, `s`, `min`), to ns.
///
/// A space between them is allowed, so that what [`fmt_ns`] prints can be read again. The value is
/// 0 to below [`DURATION_LIMIT`].
///
/// # Errors
/// No number, no or an unknown unit, a sign, an exponent, a fraction finer than 1 ns, or too long.
///
/// ```
/// # use punctual_taskset::parse_duration;
/// assert_eq!(parse_duration("1.5ms"), Ok(1_500_000));
/// assert!(parse_duration("20").is_err());
/// ```
pub fn parse_duration(text: &str) -> Result<u64, DurationError> {
    let fail = |cause: &str, help: String| {
        Err(DurationError { cause: format!("{} {cause}", quote(text)), help })
    };
    let example = || "write a number and a unit, such as \"1ms\" or \"250us\"".to_owned();

    let body = text.trim();
    if body.is_empty() {
        return fail("is no duration", example());
    }
    if let Some(rest) = body.strip_prefix('-') {
        return match parse_duration(rest) {
            Ok(_) => fail("is negative", "make it positive".to_owned()),
            Err(_) => fail("is no duration", example()),
        };
    }
    let number_end = body.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(body.len());
    let (number, unit) = body.split_at(number_end);
    let unit = unit.trim_start();
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    if number.is_empty() {
        return fail("is no duration", example());
    }
    if let Some(fraction) = fraction {
        if fraction.contains('.') {
            return fail("has more than one decimal point", example());
        }
        if whole.is_empty() || fraction.is_empty() {
            return fail(
                "has no digit on one side of its decimal point",
                "write digits on both sides, such as \"0.5ms\"".to_owned(),
            );
        }
    }
    let Some(&(_, unit_ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        let (cause, help) = unit_fault(number, unit);
        return fail(&cause, help);
    };
    let Some(fraction_ns) = fraction_ns(fraction.unwrap_or(""), unit_ns) else {
        return fail(
            "is finer than 1 ns",
            "use fewer decimals: times are whole nanoseconds".to_owned(),
        );
    };
    let ns = whole
        .trim_start_matches('0')
        .bytes()
        .try_fold(0u64, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .and_then(|n| n.checked_mul(unit_ns))
        .and_then(|n| n.checked_add(fraction_ns));
    match ns {
        Some(ns) if ns < DURATION_LIMIT => Ok(ns),
        _ => fail("is too long", "make it less than 2^62 ns, some 146 years".to_owned()),
    }
}

/// The decimal fraction `0.digits` of a unit, when it is a whole number of ns.
fn fraction_ns(digits: &str, unit_ns: u64) -> Option<u64> {
    let digits = digits.trim_end_matches('0');
    if digits.len() > MAX_FRACTION_DIGITS {
        return None;
    }
    // At most 11 digits: below 10^11 * 6*10^10, far from overflow.
    let (numerator, denominator) = digits
        .bytes()
        .fold((0u128, 1u128), |(n, d), digit| (n * 10 + u128::from(digit - b'0'), d * 10));
    let scaled = numerator * u128::from(unit_ns);
    if scaled % denominator != 0 {
        return None;
    }
    u64::try_from(scaled / denominator).ok()
}

/// Cause and help for a number without a known unit.
fn unit_fault(number: &str, unit: &str) -> (String, String) {
    let say = |unit: &str| format!("write \"{}{unit}\"", shorten(number, 24));
    let units = "ns, us, ms, s and min";
    if unit.is_empty() {
        let help = format!("{}, if milliseconds are meant; the units are {units}", say("ms"));
        return ("has no unit".to_owned(), help);
    }
    let cause = format!("has the unknown unit {}", quote(unit));
    let lower = unit.to_lowercase();
    if let Some((name, _)) = UNITS.iter().find(|(name, _)| *name == lower) {
        return (cause, say(name));
    }
    if let Some(name) = meant(&lower, &MEANT, &UNITS.map(|(name, _)| name)) {
        return (cause, say(name));
    }
    if lower == "m" {
        let help = format!("{} for milliseconds or \"{number}min\" for minutes", say("ms"));
        return (cause, help);
    }
    if unit.starts_with([',', '_']) {
        return (
            format!("has {} among its digits", quote(&unit[..1])),
            "write the digits together, with a point for decimals: \"1.5ms\"".to_owned(),
        );
    }
    if lower.starts_with('e') && lower[1..].starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return (
            "has an exponent".to_owned(),
            "write the number out, such as \"1000us\"".to_owned(),
        );
    }
    if unit.contains(|c: char| c.is_ascii_digit()) {
        return (
            "has more than a number and a unit".to_owned(),
            "write one number and one unit, such as \"90s\"".to_owned(),
        );
    }
    (cause, format!("use one of the units {units}"))
}

/// Prints nanoseconds exactly, in the largest unit up to seconds that they fill: `250 us`,
/// `1.5 ms`, `20 ms`. [`INFINITE`](crate::INFINITE) prints as `infinite`.
#[must_use]
pub fn fmt_ns(ns: u64) -> String {
    if ns == crate::INFINITE {
        return "infinite".to_owned();
    }
    let (unit, unit_ns, digits) = match ns {
        0..=999 => ("ns", 1, 0),
        1_000..=999_999 => ("us", 1_000, 3),
        1_000_000..=999_999_999 => ("ms", 1_000_000, 6),
        _ => ("s", 1_000_000_000, 9),
    };
    let (whole, rest) = (ns / unit_ns, ns % unit_ns);
    if rest == 0 {
        return format!("{whole} {unit}");
    }
    let rest = format!("{rest:0digits$}");
    format!("{whole}.{} {unit}", rest.trim_end_matches('0'))
}

/// A text from a file in double quotes, escaped, and cut when it is long.
pub(crate) fn quote(text: &str) -> String {
    format!("\"{}\"", shorten(text, 64))
}

/// At most `most` characters, and whatever would break the line or the quotes escaped.
fn shorten(text: &str, most: usize) -> String {
    let mut short = String::new();
    for (n, c) in text.chars().enumerate() {
        if n == most {
            short.push_str("...");
            break;
        }
        if is_printable(c) && c != '"' && c != '\\' {
            short.push(c);
        } else {
            short.extend(c.escape_debug());
        }
    }
    short
}
