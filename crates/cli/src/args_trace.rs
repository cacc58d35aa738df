//! The arguments of `punctual trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Args)]
#[command(after_help = "From a run to its cause:\n  \
punctual run SET.toml --trace T            record it, on any host (sim: in virtual time)\n  \
punctual trace stats T                     who missed, how often, how late\n  \
punctual trace why T                       why: one line for each missed deadline\n  \
punctual trace why T TASK N                one of them in full, with its time line\n  \
punctual trace cut T --around TASK N -o P  that part alone, to look at or to send\n  \
punctual trace export P                    the picture, for ui.perfetto.dev\n  \
punctual report P -o P.html                the picture and figures as a page\n  \
punctual trace diff T U                    another host, kernel, policy, or the run before\n  \
punctual sim --replay T                    do the same inputs lead to the same decisions\n\n\
docs/traces.md")]
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
    /// How two traces differ: each task's figures side by side, and where the schedules part
    Diff(DiffArgs),
    /// A part of a trace as a trace: of some time, or around a release
    Cut(CutArgs),
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
    after_help = "Exit codes: 0 all of it was exported; 2 bad usage, or a trace that is damaged or \
cut short: what stands before is exported; 4 it cannot be written; 130 interrupted: what was read \
is exported."
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
    after_help = "Exit codes: 0 all of it was read; 2 bad usage, or a trace that is damaged or cut \
short: what stands before is counted; 130 interrupted."
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
    after_help = "Exit codes: 0 no deadline was missed; 1 some were; 2 bad usage, or a file that \
is no whole trace (of one that is cut off, what can be read is explained); 130 interrupted: what \
was read is explained."
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
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args)]
#[command(
    override_usage = "punctual trace diff [OPTIONS] A B",
    after_help = "Compared is the time that both traces have, aligned by a release that is in \
both. Times are a number and a unit: 250us, 1ms.\n\n\
Exit codes: 0 the same: all tasks, counts, and times within the tolerance; 1 different; 2 bad \
usage, or a trace that is damaged or cut short: what stands before is compared; 130 interrupted."
)]
pub struct DiffArgs {
    /// A trace
    #[arg(value_name = "A")]
    pub a: PathBuf,
    /// Another one of the same tasks: of another host, kernel or policy, or from before a change
    #[arg(value_name = "B")]
    pub b: PathBuf,
    /// Times that are at most so far apart are the same, and so are schedules that are apart for
    /// at most so long [default: 0 for two simulations, else 200us]
    #[arg(long, value_name = "TIME")]
    pub tolerance: Option<String>,
    /// The figures of all tasks, also of those that are the same
    #[arg(long, conflicts_with = "json")]
    pub wide: bool,
    /// The comparison as JSON on standard output (docs/traces.md)
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args)]
#[command(
    override_usage = "punctual trace cut [OPTIONS] FILE [--from TIME] [--to TIME] -o OUT\n       \
punctual trace cut [OPTIONS] FILE --around TASK N -o OUT",
    after_help = "Times are since the start of the run: a number and a unit, 250us, 1.5s. `trace \
export`, `stats`, `diff`, `report` and, unless --task is given, `trace why` read a part as any \
trace. `sim --replay` reads one that begins with the run.\n\n\
Exit codes: 0 it was cut; 2 bad usage, or a trace that is damaged or cut short: what can be read \
is cut; 4 it cannot be written; 130 interrupted: what was read is cut."
)]
pub struct CutArgs {
    /// A trace
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Begin here [default: with the run]
    #[arg(long, value_name = "TIME", required_unless_present_any = ["to", "around", "tasks"])]
    pub from: Option<String>,
    /// End here [default: with the run]
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// The window of this release (its number, from 0), and as much before and after it as the
    /// longest period of the set
    #[arg(long, num_args = 2, value_names = ["TASK", "N"], conflicts_with_all = ["from", "to"])]
    pub around: Option<Vec<String>>,
    /// Only this task; may be given several times [default: all tasks]
    #[arg(long = "task", value_name = "TASK")]
    pub tasks: Vec<String>,
    /// Write it here
    #[arg(long, short, value_name = "OUT")]
    pub output: PathBuf,
    /// Summary as JSON on standard output (docs/traces.md)
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}
