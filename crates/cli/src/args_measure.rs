//! The arguments of `punctual measure`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueEnum};
use punctual_measure::latency::JobClass;
use punctual_measure::loads::{Generator, Workload};
use punctual_measure::overhead::{gaps::MOST_SPINNERS, OverheadPart};
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
    /// How late a job wakes, idle and under load (RED-Linux, Table 6)
    Latency(MeasureLatency),
    /// What Punctual costs, beside the figures of the RTAI, RED-Linux and RT-Linux papers
    Overhead(MeasureOverhead),
    /// A program that `overhead` measures
    #[command(hide = true)]
    Spinner(SpinnerArgs),
}

#[derive(Args)]
#[command(
    after_help = "Sixteen real-time tasks, two of each kind, and their executive run on one CPU, \
as those of rt-exec do; docs/measure.md says what each kind and column means. For each task: \
cycles, late ones, spare time, current, best and worst latency, and its determinism: worst less \
best. The work is scaled down if all tasks would use more than 70 % of the CPU.\n\n\
Exit codes: 0 measured, and all that is required was kept; 1 it was not; 2 bad usage; 3 not \
admitted: the heart beat is too fast; 4 the machine does not permit it; 130 interrupted, with what \
was measured until then."
)]
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

#[derive(Args)]
#[command(
    after_help = "The job has a period of 500 us and a budget of 250 us, and sleeps 100 us in each \
period. docs/measure.md says what each load does.\n\n\
Exit codes: 0 measured, and all requirements kept; 1 a requirement is not kept; 2 bad usage; 4 the \
machine does not permit it; 130 interrupted: what was measured is printed."
)]
pub struct MeasureLatency {
    /// Periods of each row [default: 100000, as the paper]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    #[arg(conflicts_with = "quick")]
    pub periods: Option<u64>,
    /// 2000 periods of each row: some fifteen seconds in all
    #[arg(long)]
    pub quick: bool,
    /// Measure these rows only
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(Workload::ALL.map(Workload::name)))]
    pub load: Vec<String>,
    /// CPU of job and loads [default: the last that we may use]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// What the job is
    #[arg(long, value_enum, default_value_t = JobArg::User)]
    pub host: JobArg,
    /// What makes the loads [default: stress-ng where it is installed and has the load]
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub generator: Option<GeneratorArg>,
    /// Fail (exit code 1) unless each real-time row keeps these bounds: min, average, p50, p99,
    /// p99.9, max, such as p99=100us,max=1ms
    #[arg(long, value_name = "BOUNDS")]
    pub require: Option<String>,
    /// Let cyclictest measure too, in windows that alternate with ours
    #[arg(long)]
    pub reference: bool,
    /// Results as JSON on standard output (docs/measure.md)
    #[arg(long)]
    pub json: bool,
    /// All columns, and the paper's beside them
    #[arg(long, conflicts_with = "json")]
    pub wide: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args)]
#[command(after_help = "events: what an event takes from spinning tasks (RTAI, Tables 2 and 3)\n\
decisions: one decision of the dispatcher with 1 to 10,000 jobs (RED-Linux, Table 5)\n\
budgets: received per assigned execution time of 500 periods (RTAI, Fig. 6)\n\
square-wave: edges each 100 us, of one and two tasks, idle and under load (RT-Linux)\n\n\
Each stands beside the paper's figures, in time and in cycles; docs/measure.md says how it is \
measured.\n\n\
Exit codes: 0 measured, and all requirements kept; 1 a requirement is not kept; 2 bad usage; 4 the \
machine does not permit it; 130 interrupted: what was measured is printed.")]
pub struct MeasureOverhead {
    /// Measure these parts only
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    #[arg(value_parser = PossibleValuesParser::new(OverheadPart::ALL.map(OverheadPart::name)))]
    pub part: Vec<String>,
    /// Some twenty seconds in all, instead of some four minutes: fewer periods, shorter rows
    #[arg(long)]
    pub quick: bool,
    /// CPU of tasks and loads [default: the last that we may use]
    #[arg(long, value_name = "N")]
    pub cpu: Option<u32>,
    /// What makes the square wave's loads [default: stress-ng where it is installed]
    #[arg(long, value_enum, value_name = "PROGRAM")]
    pub generator: Option<GeneratorArg>,
    /// Fail (exit code 1) unless each row of Punctual's keeps these bounds: event-average,
    /// event-max, decision-average, decision-max, variation, such as event-average=30us
    #[arg(long, value_name = "BOUNDS")]
    pub require: Option<String>,
    /// Results as JSON on standard output (docs/measure.md)
    #[arg(long)]
    pub json: bool,
    /// No progress
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Args)]
pub struct SpinnerArgs {
    /// What the spinners share
    pub page: PathBuf,
    /// Which of them this is
    #[arg(value_parser = clap::value_parser!(u64).range(..=MOST_SPINNERS))]
    pub number: u64,
    /// When it ends: CLOCK_MONOTONIC, ns
    pub until: u64,
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum JobArg {
    /// A task of Punctual's user host
    User,
    /// A SCHED_FIFO thread, without Punctual
    Fifo,
    /// An ordinary thread, without Punctual
    Other,
}

impl From<JobArg> for JobClass {
    fn from(job: JobArg) -> JobClass {
        match job {
            JobArg::User => JobClass::User,
            JobArg::Fifo => JobClass::Fifo,
            JobArg::Other => JobClass::Other,
        }
    }
}

#[derive(Clone, Copy, ValueEnum, PartialEq, Eq, Debug)]
pub enum GeneratorArg {
    /// Punctual's own loads
    BuiltIn,
    /// stress-ng; the console and the caps-lock light are Punctual's all the same
    StressNg,
}

impl From<GeneratorArg> for Generator {
    fn from(generator: GeneratorArg) -> Generator {
        match generator {
            GeneratorArg::BuiltIn => Generator::BuiltIn,
            GeneratorArg::StressNg => Generator::StressNg,
        }
    }
}
