//! Numbers as people read them. Floating point is for display only.

/// A time with its own unit: `4 ms`, `250 us`, `1.5 s`.
pub fn time(ns: u64) -> String {
    let (unit, name) = match ns {
        0..=999 => (1, "ns"),
        1_000..=999_999 => (1_000, "us"),
        1_000_000..=999_999_999 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let text = format!("{:.3}", ns as f64 / f64::from(unit));
    format!("{} {name}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// How long something ran: `2.0 s`, `1 min 05 s`.
pub fn duration(ns: u64) -> String {
    let seconds = ns / 1_000_000_000;
    match seconds {
        0..=59 => format!("{:.1} s", ns as f64 / 1e9),
        60..=3_599 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3_600, seconds / 60 % 60),
    }
}

/// Parts per million as percent; the fewer digits the further away.
pub fn percent(ppm: u64) -> String {
    let value = ppm as f64 / 1e4;
    match ppm {
        0..=1_999_999 => format!("{value:.2}"),
        2_000_000..=9_999_999 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// A share of periods as percent. Something is never shown as nothing.
pub fn rate(ppm: u64) -> String {
    match ppm {
        0 => "0".to_owned(),
        1..=99 => "<0.01".to_owned(),
        100..=99_999 => format!("{:.2}", ppm as f64 / 1e4),
        _ => format!("{:.1}", ppm as f64 / 1e4),
    }
}

/// The unit in which a column of times is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit {
    /// Its name, for the head of the column.
    pub name: &'static str,
    ns: u64,
}

impl Unit {
    /// Microseconds, unless the longest is some 100 ms: then milliseconds.
    pub fn for_longest(ns: u64) -> Unit {
        if ns < 100_000_000 {
            Unit { name: "us", ns: 1_000 }
        } else {
            Unit { name: "ms", ns: 1_000_000 }
        }
    }

    /// A time in this unit: one decimal for small numbers.
    pub fn show(self, ns: u64) -> String {
        let value = ns as f64 / self.ns as f64;
        if value < 999.95 {
            format!("{value:.1}")
        } else {
            format!("{value:.0}")
        }
    }
}

/// `word` with its number, in the plural where that is due: `1 task`, `1,234 periods`.
pub fn count(n: u64, word: &str) -> String {
    format!("{} {word}{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// A number as it is written in a sentence: `1,234,567`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let first = digits.len() % 3;
    let mut text = digits[..first].to_owned();
    for start in (first..digits.len()).step_by(3) {
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&digits[start..start + 3]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_fits() {
        assert_eq!(time(250_000), "250 us");
        assert_eq!(time(4_000_000), "4 ms");
        assert_eq!(time(1_500_000_000), "1.5 s");
        assert_eq!(time(1_234_567), "1.235 ms");
        assert_eq!(time(100_000_000_000), "100 s");
        assert_eq!(time(0), "0 ns");
    }

    #[test]
    fn durations_percents_rates() {
        assert_eq!(
            (duration(2_040_000_000), duration(65_000_000_000)),
            ("2.0 s".into(), "1 min 05 s".into())
        );
        assert_eq!(duration(7_260_000_000_000), "2 h 01 min");
        assert_eq!(
            (percent(999_600), percent(4_000_000), percent(40_000_000)),
            ("99.96".into(), "400.0".into(), "4000".into())
        );
        assert_eq!(
            (rate(0), rate(1), rate(1_000), rate(990_000)),
            ("0".into(), "<0.01".into(), "0.10".into(), "99.0".into())
        );
    }

    #[test]
    fn a_column_has_one_unit() {
        assert_eq!(Unit::for_longest(80_000).show(3_140), "3.1");
        assert_eq!(Unit::for_longest(80_000_000).show(80_000_000), "80000");
        assert_eq!(Unit::for_longest(1_000_000_000).name, "ms");
        assert_eq!((count(1, "task"), count(0, "task")), ("1 task".into(), "0 tasks".into()));
        let numbers = [7, 123, 1_234, 12_345, 123_456, 1_234_567].map(grouped);
        assert_eq!(numbers, ["7", "123", "1,234", "12,345", "123,456", "1,234,567"]);
    }
}
