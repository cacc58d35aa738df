//! Results and traces as one HTML page that needs no network, and its pictures as SVG
//! (docs/report.md).
//!
//! ```text
//! files ──read──> PageRun ──> Page::html (assets/: uPlot draws on canvases)
//!                        └──> Page::pictures (plotters draws SVG)
//! ```

mod columns;
mod histogram;
mod html;
mod input;
mod recorded;
mod svg;

use std::fmt::Write;

pub use input::{read, PageRun};
pub use svg::Picture;

/// A page of one run or more.
#[derive(Debug, Default)]
pub struct Page {
    /// In the order of the files.
    pub runs: Vec<PageRun>,
    /// What could not be read: a sentence for each file.
    pub unread: Vec<String>,
}

impl Page {
    /// Whether all runs met their deadlines and kept their budgets, and all files were whole.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.runs.iter().all(is_good) && self.is_whole()
    }

    /// Whether all files were read, and none lacks anything.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.unread.is_empty() && self.runs.iter().all(|run| run.damage.is_none())
    }

    /// All of it in one sentence.
    #[must_use]
    pub fn verdict(&self) -> String {
        if let [run] = &self.runs[..] {
            return run.verdict.clone();
        }
        let good = self.runs.iter().filter(|run| is_good(run)).count();
        let mut text =
            format!("{good} of {} runs met all deadlines and kept all budgets", self.runs.len());
        if let Some(bad) = self.runs.iter().find(|run| !is_good(run)) {
            let _ = write!(text, "; {}: {}", bad.title, bad.verdict.trim_end_matches('.'));
        }
        text.push('.');
        text
    }
}

fn is_good(run: &PageRun) -> bool {
    run.results.totals.met && run.results.not_possible.is_none()
}
