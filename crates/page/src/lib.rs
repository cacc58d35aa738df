//! Results and traces as one HTML page that needs no network, and its pictures as SVG
//! (docs/report.md).
//!
//! ```text
//! files ──read──> PageRun, Measurement ──> Page::html (assets/: uPlot draws on canvases)
//!                                     └──> Page::pictures (plotters draws SVG)
//! ```

mod columns;
mod histogram;
mod html;
mod input;
mod measured;
mod recorded;
mod spreads;
mod svg;

use std::fmt::Write;

pub use input::{read, PageRun};
pub use measured::Measurement;
pub use svg::Picture;

/// A page of one run or more.
#[derive(Debug, Default)]
pub struct Page {
    /// In the order of the files.
    pub runs: Vec<PageRun>,
    /// Results of `punctual measure`, in the order of the files.
    pub measurements: Vec<Measurement>,
    /// What could not be read: a sentence for each file.
    pub unread: Vec<String>,
}

impl Page {
    /// Adds the contents of another file.
    pub fn append(&mut self, other: Page) {
        self.runs.extend(other.runs);
        self.measurements.extend(other.measurements);
        self.unread.extend(other.unread);
    }

    /// Nothing is on it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.measurements.is_empty()
    }

    /// Whether all runs met their deadlines and kept their budgets, all measurements were made and
    /// kept what was required, and all files were whole.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.runs.iter().all(is_good) && self.measurements.iter().all(|m| m.ok) && self.is_whole()
    }

    /// Whether all files were read, and none lacks anything.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.unread.is_empty() && self.damage().next().is_none()
    }

    /// What is missing or wrong in the files that were read: a sentence for each.
    pub fn damage(&self) -> impl Iterator<Item = &String> {
        let measured = self.measurements.iter().filter_map(|m| m.damage.as_ref());
        self.runs.iter().filter_map(|run| run.damage.as_ref()).chain(measured)
    }

    /// All of it in a sentence, or one for runs and one for each kind of measurement.
    #[must_use]
    pub fn verdict(&self) -> String {
        let mut sentences = Vec::new();
        match &self.runs[..] {
            [] => {}
            [run] => sentences.push(run.verdict.clone()),
            runs => sentences.push(verdict_of(runs)),
        }
        sentences.extend(measured::verdicts(&self.measurements));
        sentences.join(" ")
    }
}

fn verdict_of(runs: &[PageRun]) -> String {
    let good = runs.iter().filter(|run| is_good(run)).count();
    let mut text = format!("{good} of {} runs met all deadlines and kept all budgets", runs.len());
    if let Some(bad) = runs.iter().find(|run| !is_good(run)) {
        let _ = write!(text, "; {}: {}", bad.title, bad.verdict.trim_end_matches('.'));
    }
    text.push('.');
    text
}

fn is_good(run: &PageRun) -> bool {
    run.results.totals.met && run.results.not_possible.is_none()
}
