//! The arguments of `punctual trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Args)]
#[command(after_help = "Traces are written by run --trace and sim --trace (docs/traces.md).")]
pub struct TraceArgs {
    #[command(subcommand)]
    pub command: TraceCommand,
}

#[derive(Subcommand)]
pub enum TraceCommand {
    /// Draw a trace for Perfetto (ui.perfetto.dev) or Chrome: jobs, execution, deadlines, budgets
    Export(Export),
    /// Each task's releases, misses, execution, preemptions and response times
    Stats(StatsArgs),
    /// Why deadlines were missed: which tasks executed instead, which budget was used up, and so on
    Why(Why),
}

/// A format of pictures.
#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum FormatArg {
    /// Perfetto's protobuf
    Perfetto,
    /// Chrome's JSON trace events
    Chrome,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 all of it was exported; 2 bad usage, or a trace that is damaged or cut short: \
what stands before is exported; 4 it cannot be written; 130 interrupted: what was read is exported."
)]
pub struct Export {
    /// Traces of one run: the file, or one .cpuN for each CPU
    #[arg(value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,
    /// What reads it
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = FormatArg::Perfetto)]
    pub format: FormatArg,
    /// Write it here [default: the first FILE with .pftrace or .json appended]
    #[arg(long, short, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Summary as JSON on standard output (docs/traces.md)
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 all of it was read; 2 bad usage, or a trace that is damaged or cut short: what \
stands before is counted; 130 interrupted."
)]
pub struct StatsArgs {
    /// A trace
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Figures as JSON on standard output (docs/traces.md)
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args)]
#[command(
    after_help = "Exit codes: 0 no deadline was missed; 1 some were; 2 bad usage, or a file that is no whole \
trace (of one that is cut off, what can be read is explained)."
)]
pub struct Why {
    /// The trace, written by `run --trace` or `sim --trace`
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Misses of this task only [default: all]
    #[arg(value_name = "TASK")]
    pub task: Option<String>,
    /// This release's miss in full, with a time line: its number, from 0
    #[arg(value_name = "N", requires = "task")]
    pub number: Option<u64>,
    /// The explanations as JSON on standard output (docs/why.md)
    #[arg(long)]
    pub json: bool,
}
