//! The arguments of `punctual measure`.

use clap::{Args, Subcommand};
use punctual_measure::require::Requirement;

#[derive(Args)]
pub struct MeasureCommand {
    #[command(subcommand)]
    pub instrument: Instrument,
}

#[derive(Subcommand)]
pub enum Instrument {
    /// How much the latencies of real-time tasks differ, by the primitive that releases them
    Determinism(Determinism),
}

#[derive(Args)]
#[command(after_help = "Sixteen real-time tasks, two of each kind, and their executive run on one CPU, as those of \
rt-exec do; docs/measure.md says what each kind and column means. For each task: cycles, late ones, spare time, \
current, best and worst latency, and its determinism: worst less best. The work is scaled down if all tasks would use more than \
70 % of the CPU.\n\nExit codes: 0 measured, and all that is required was kept; 1 it was not; 2 bad usage; 3 not \
admitted: the heart beat is too fast; 4 the machine does not permit it; 130 interrupted, with what was measured \
until then.")]
pub struct Determinism {
    /// Heart beats a second; of several, a run for each
    #[arg(long, value_name = "HZ", value_delimiter = ',', default_value = "250,1000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rate: Vec<u32>,
    /// Units of work of each cycle: each reads, changes and writes a cache line of the task's data
    #[arg(long, value_name = "UNITS", default_value_t = 200)]
    pub work: u32,
    /// How long each run measures
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    pub duration: u64,
    /// The CPU on which all tasks run [default: the last that we may use]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// Fail if a figure of any task exceeds this: worst=100us, determinism=50us
    #[arg(long, value_name = "FIGURE=TIME", value_delimiter = ',', value_parser = requirement)]
    pub require: Vec<Requirement>,
    /// The figures as JSON on standard output (docs/measure.md)
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

fn duration(text: &str) -> Result<u64, String> {
    match punctual_taskset::parse_duration(text) {
        Ok(0) => Err("nothing can be measured in no time; choose 1s or more".to_owned()),
        Ok(ns) => Ok(ns),
        Err(e) => Err(e.to_string()),
    }
}

fn requirement(text: &str) -> Result<Requirement, String> {
    Requirement::parse(text, &["worst", "determinism"])
}
