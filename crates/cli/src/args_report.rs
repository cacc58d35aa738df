//! The arguments of `punctual report`.

use std::path::PathBuf;

use clap::Args;

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 all files were read whole; 1 a page was written, but files are \
                  missing in it or damaged; 2 bad usage, or no file can be read; 4 the page cannot \
                  be written; 130 interrupted."
)]
pub struct ReportArgs {
    /// Traces (--trace) and results (--json of run, sim, measure determinism and measure latency);
    /// several are compared
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Write the page to this file: HTML that loads nothing from anywhere
    #[arg(long, short, value_name = "OUT.html", required_unless_present = "svg")]
    pub output: Option<PathBuf>,
    /// Write the pictures of traces into this folder, as SVG
    #[arg(long, value_name = "DIR")]
    pub svg: Option<PathBuf>,
    /// The report as JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}
