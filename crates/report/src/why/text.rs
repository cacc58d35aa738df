//! The text of `punctual trace why`: one line for each miss, or one miss in full.

use super::{MissRow, SpanRow, WhyResult};
use crate::grid::{paint, Ink};
use crate::units::{count, grouped, time};

/// Misses that are listed; the others are counted.
const MOST_LISTED: usize = 40;
/// Spans that a time line has, half of them at each end.
const MOST_SPANS: usize = 60;

/// The verdict on all misses of a result, and one line for each.
///
/// Returns the verdict and the whole text, which begins with it.
#[must_use]
pub fn all(result: &WhyResult, color: bool) -> (String, String) {
    let verdict = verdict(result);
    let ink = if result.misses.is_empty() { Ink::Good } else { Ink::Bad };
    let mut text = format!("{}\n", paint(&verdict, ink, color));
    for miss in result.misses.iter().take(MOST_LISTED) {
        let MissRow { task, number, sentence, .. } = miss;
        text.push_str(&format!("{task} {number} ({}): {sentence}\n", late(miss)));
    }
    if let Some(more) = result.misses.len().checked_sub(MOST_LISTED).filter(|&more| more > 0) {
        text.push_str(&format!(
            "and {} (--json has all)\n",
            count(more as u64, "more miss").replace("misss", "misses")
        ));
    }
    if let Some(worst) = result.misses.first() {
        text.push_str(&format!(
            "\nin full: punctual trace why FILE {} {}\n",
            worst.task, worst.number
        ));
    }
    (verdict, text + &lost(result))
}

/// The same for one miss: its time line and shares.
#[must_use]
pub fn one(result: &WhyResult, color: bool) -> Option<(String, String)> {
    let miss = result.misses.first()?;
    let verdict = format!("{} missed deadline {}: {}", miss.task, miss.number, miss.sentence);
    let mut text = format!("{}\n", paint(&verdict, Ink::Bad, color));
    let window = miss.deadline_ns - miss.release_ns;
    text.push_str(&format!("help: {}\n\n", miss.help));
    text.push_str(&format!(
        "released at {}, deadline {} later; {}; it lacked {} at its deadline\n\n",
        exact(miss.release_ns),
        time(window),
        late(miss),
        time(miss.lacking_ns)
    ));
    text.push_str(&time_line(&result.time_line));
    text.push_str("\nshares of the window, ns\n");
    let width = grouped(window).len();
    for share in &miss.shares {
        text.push_str(&format!("{:>width$}  {}\n", grouped(share.ns), share.what));
    }
    text.push_str(&format!("{:>width$}  release to deadline\n", grouped(window)));
    Some((verdict, text + &lost(result)))
}

fn verdict(result: &WhyResult) -> String {
    let misses = &result.misses;
    if misses.is_empty() {
        return format!("No deadline missed in {}.", count(result.periods, "period"));
    }
    let mut sums: Vec<(&str, u64)> = Vec::new();
    for miss in misses {
        match sums.iter_mut().find(|sum| sum.0 == miss.task) {
            Some(sum) => sum.1 += 1,
            None => sums.push((&miss.task, 1)),
        }
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.1));
    let tasks: Vec<String> =
        sums.iter().take(3).map(|(task, n)| format!("{task} {}", grouped(*n))).collect();
    let more = if sums.len() > 3 {
        format!(", {}", count(sums.len() as u64 - 3, "other task"))
    } else {
        String::new()
    };
    let deadlines = count(result.periods, "deadline");
    let worst = &misses[0];
    let sum = grouped(misses.len() as u64);
    format!(
        "{sum} of {deadlines} missed ({}{more}); the worst, {} {}: {}",
        tasks.join(", "),
        worst.task,
        worst.number,
        worst.sentence
    )
}

fn late(miss: &MissRow) -> String {
    miss.late_ns.map_or_else(|| "never done".to_owned(), |ns| format!("{} late", time(ns)))
}

/// A time to the nanosecond.
fn exact(ns: u64) -> String {
    format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}

fn time_line(spans: &[SpanRow]) -> String {
    let width = spans.last().map_or(0, |span| grouped(span.to_ns).len()).max(4);
    let mut text = format!("{:>width$}  {:>width$}  from the release, ns\n", "from", "to");
    let left_out = spans.len().saturating_sub(MOST_SPANS);
    for (n, span) in spans.iter().enumerate() {
        if left_out > 0 && n == MOST_SPANS / 2 {
            text.push_str(&format!(
                "{:>width$}  ({} left out; --json has all)\n",
                "...",
                count(left_out as u64, "part")
            ));
        }
        if left_out == 0 || n < MOST_SPANS / 2 || n >= MOST_SPANS / 2 + left_out {
            text.push_str(&format!(
                "{:>width$}  {:>width$}  {}\n",
                grouped(span.from_ns),
                grouped(span.to_ns),
                span.what
            ));
        }
    }
    text
}

fn lost(result: &WhyResult) -> String {
    match result.lost_records {
        0 => String::new(),
        n => format!(
            "\n{} missing in the trace: what happened there is not known\n",
            count(n, "record")
        ),
    }
}
