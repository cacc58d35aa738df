//! What is compared, measured in turns, and the table of it.

use crate::windows::Spread;
use crate::{tools, Bench, Failure, Verdict};
use serde_json::{json, Map, Value};

/// One of those that are compared, and how a window of it is measured.
pub struct Subject<'a, T> {
    name: &'static str,
    window: Box<dyn FnMut() -> Result<T, Failure> + 'a>,
}

impl<'a, T> Subject<'a, T> {
    pub fn new(
        name: &'static str,
        window: impl FnMut() -> Result<T, Failure> + 'a,
    ) -> Subject<'a, T> {
        Subject { name, window: Box::new(window) }
    }
}

/// The windows of each subject.
pub type Windows<T> = Vec<(&'static str, Vec<T>)>;

pub fn in_turns<T>(
    bench: &Bench,
    what: &str,
    mut subjects: Vec<Subject<T>>,
) -> Result<Windows<T>, Failure> {
    let mut all: Windows<T> = subjects.iter().map(|s| (s.name, Vec::new())).collect();
    for n in 0..bench.windows {
        tools::progress(&format!("{what}: window {} of {}", n + 1, bench.windows));
        for (subject, (_, windows)) in subjects.iter_mut().zip(&mut all) {
            windows.push((subject.window)()?);
        }
    }
    tools::progress("");
    Ok(all)
}

/// One figure of windows that have several.
pub fn figure<const N: usize>(all: &Windows<[f64; N]>, k: usize) -> Windows<f64> {
    all.iter().map(|(name, windows)| (*name, windows.iter().map(|w| w[k]).collect())).collect()
}

const COLUMNS: [i32; 4] = [-36, -20, 24, 20];

/// Prints the heading of a table of comparisons.
pub fn print_heading(what: &str) {
    println!("{what}");
    tools::row(COLUMNS, ["", "", "ns", "ratio"]);
}

/// Prints the subjects of a comparison, in ns. The first is the baseline of the others; returned
/// are the ratios of the second, and all figures.
pub fn print(what: &str, all: &Windows<f64>) -> (Spread, Value) {
    let mut figures = Map::new();
    let mut ratios = Vec::new();
    for (n, (name, windows)) in all.iter().enumerate() {
        let spread = Spread::of(windows.iter().copied());
        let ratio = Spread::ratios(windows, &all[0].1);
        let shown = if n == 0 { String::new() } else { ratio.show(1.0, 2) };
        let first = if n == 0 { what } else { "" };
        tools::row(COLUMNS, [first, name, &spread.show(1.0, 1), &shown]);
        figures.insert((*name).into(), json!({ "ns": spread.json(), "ratio": ratio.json() }));
        ratios.push(ratio);
    }
    (ratios.swap_remove(1), figures.into())
}

/// The ratios of one of the subjects, window by window.
pub fn ratio_of(all: &Windows<f64>, subject: &str) -> Spread {
    let windows = all.iter().find(|(name, _)| *name == subject).map_or(&[][..], |(_, w)| w);
    Spread::ratios(windows, &all[0].1)
}

/// Whether the median of a ratio is at most `limit`.
pub fn verdict(what: &str, limit: f64, ratio: &Spread) -> Verdict {
    Verdict::new(what, limit.to_string(), ratio.show(1.0, 2), ratio.median() <= limit)
}
