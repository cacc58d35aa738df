//! The results of a measurement, as `--json` prints them: integers. Each part that was not asked
//! for is `null`; each part has the paper's figures beside ours.

use punctual_session::results::{HostKind, Machine};
use serde::{Deserialize, Serialize};

use super::paper::PaperTasks;
use crate::cycles::MeasuredTime;
use crate::distribution::LatencySpread;
use crate::noise::Noise;
use crate::require::{Requirement, Violation};

/// What Punctual costs on a machine, beside what the papers' systems cost on theirs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OverheadResult {
    /// What it ran on.
    pub machine: Machine,
    /// The CPU of tasks and loads.
    pub cpu: u32,
    /// The measured frequency of the time-stamp counter, kHz: all cycles here are its ticks.
    /// Without a counter, what the kernel shows, or `null`.
    pub cycle_khz: Option<u64>,
    /// It was ended before its time: the last part is incomplete, and others are missing.
    pub interrupted: bool,
    /// RTAI's Tables 2 and 3: what an event takes from the tasks.
    pub events: Option<EventsResult>,
    /// RED-Linux's Table 5: how long the dispatcher decides.
    pub decisions: Option<DecisionsResult>,
    /// RTAI's Fig. 6: how precisely budgets are kept.
    pub budgets: Option<BudgetsResult>,
    /// RT-Linux's square wave: how regular short periods are.
    pub square_wave: Option<SquareWaveResult>,
    /// What was on the CPU before the first part.
    pub before: Noise,
    /// What disturbed the CPU meanwhile. It is busy with what is measured.
    pub noise: Noise,
    /// Reasons not to believe the figures.
    pub warnings: Vec<String>,
    /// What had to be kept.
    pub requirements: Vec<Requirement>,
    /// What was not kept.
    pub violations: Vec<Violation>,
}

/// Which of Punctual's hosts, or what instead of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MeasuredHost {
    /// The user host.
    User,
    /// The kernel host.
    Kernel,
    /// SCHED_FIFO threads that release themselves, without Punctual.
    Fifo,
}

impl MeasuredHost {
    /// The session's host.
    pub(super) fn kind(self) -> HostKind {
        match self {
            MeasuredHost::User => HostKind::User,
            MeasuredHost::Kernel => HostKind::Kernel,
            MeasuredHost::Fifo => HostKind::Fifo,
        }
    }

    /// What to call it in a table.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            MeasuredHost::User => "user host",
            MeasuredHost::Kernel => "kernel host",
            MeasuredHost::Fifo => "SCHED_FIFO",
        }
    }
}

/// What the tasks of a set are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MeasuredTasks {
    /// Threads of one program that uses the library, as LXRT tasks use RTAI's calls.
    Threads,
    /// Programs that know nothing of Punctual.
    Programs,
}

impl MeasuredTasks {
    /// What to call them in a table.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            MeasuredTasks::Threads => "threads",
            MeasuredTasks::Programs => "programs",
        }
    }
}

/// RTAI's Tables 2 and 3, of two spinning tasks of 2 ms/1 ms and 5 ms/1 ms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventsResult {
    /// How long each row measured, ns.
    pub duration_ns: u64,
    /// One for each host and kind of tasks.
    pub rows: Vec<EventRow>,
    /// The paper's tables.
    pub paper: Vec<PaperCost>,
}

/// What an event took from the tasks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventRow {
    /// What scheduled the tasks.
    pub host: MeasuredHost,
    /// What the tasks are.
    pub tasks: MeasuredTasks,
    /// From the last instruction of what executed before an event to the first instruction of the
    /// task after it: interrupt, dispatcher, switch. Events after which no task executes are left
    /// out, because another program may execute first.
    pub switch: Option<LatencySpread>,
    /// Its mean.
    pub average: Option<MeasuredTime>,
    /// The middle one.
    pub p50: Option<MeasuredTime>,
    /// The longest.
    pub max: Option<MeasuredTime>,
    /// Interruptions after which the same task continued: the tick, and events that change nothing.
    pub interruptions: Option<LatencySpread>,
    /// The dispatcher's own part; `null` on the kernel host, which does not time itself.
    pub dispatcher: Option<DispatcherCost>,
    /// Why this machine cannot have the row; then there are no figures.
    pub not_possible: Option<String>,
    /// What a reader should know beside the figures.
    pub notes: Vec<String>,
}

/// What the user host's dispatcher thread takes for an event: part of what the tasks lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DispatcherCost {
    /// Events handled.
    pub events: u64,
    /// Mean time in the handler.
    pub handler_average: MeasuredTime,
    /// Longest time in the handler.
    pub handler_max: MeasuredTime,
    /// CPU time of the dispatcher per event, its own wake-up included.
    pub cpu_average: MeasuredTime,
}

/// A row of RTAI's Tables 2 and 3.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperCost {
    /// Which tasks, and so which table.
    pub tasks: PaperTasks,
    /// The processor.
    pub cpu: String,
    /// Its clock, kHz.
    pub khz: u64,
    /// Mean overhead of a timer expiration.
    pub average: MeasuredTime,
    /// The greatest.
    pub max: MeasuredTime,
}

/// RED-Linux's Table 5.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionsResult {
    /// Row by row.
    pub rows: Vec<DecisionRow>,
    /// Why the dispatcher was not measured as BPF; `null` where it was.
    pub bpf_not_possible: Option<String>,
    /// What a reader should know beside the figures.
    pub notes: Vec<String>,
    /// The paper's processor.
    pub paper_cpu: String,
    /// Its clock, kHz.
    pub paper_khz: u64,
    /// The paper's table.
    pub paper: Vec<PaperDelay>,
}

/// How the dispatcher was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum DispatcherBuild {
    /// As the simulator and the user host have it.
    Native,
    /// As BPF in the running kernel, as the kernel host has it.
    Bpf,
}

/// One full decision: charge, end one job, expired events, add one, select, next timer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DecisionRow {
    /// Jobs in the dispatcher.
    pub jobs: u32,
    /// How it was built.
    pub build: DispatcherBuild,
    /// Figures that were taken.
    pub count: u64,
    /// Decisions of which each figure is the mean: 1, but for BPF, which is called for many.
    pub decisions_each: u32,
    /// The shortest.
    pub min: MeasuredTime,
    /// The mean.
    pub average: MeasuredTime,
    /// The middle one.
    pub p50: MeasuredTime,
    /// The longest.
    pub max: MeasuredTime,
}

/// A row of RED-Linux's Table 5.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperDelay {
    /// Jobs in the dispatcher.
    pub jobs: u32,
    /// The shortest delay.
    pub min: MeasuredTime,
    /// The mean.
    pub average: MeasuredTime,
    /// The longest.
    pub max: MeasuredTime,
}

/// RTAI's Fig. 6.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetsResult {
    /// Periods of each task that are counted.
    pub periods: u64,
    /// The paper's: so many periods of a computing task were off at most.
    pub paper_violations: u64,
    /// The paper's: about so many periods of the player were off, ppm.
    pub paper_player_ppm: u64,
    /// One for each host.
    pub rows: Vec<BudgetRow>,
    /// Why the player was left out; `null` where it was not.
    pub player_not_possible: Option<String>,
}

/// The set on one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetRow {
    /// What scheduled the tasks.
    pub host: MeasuredHost,
    /// The player was among them.
    pub with_player: bool,
    /// Its tasks, in the paper's order.
    pub tasks: Vec<TaskPrecision>,
    /// Why this machine cannot have the row; then there are no tasks.
    pub not_possible: Option<String>,
    /// What a reader should know beside the figures.
    pub notes: Vec<String>,
}

/// How precisely a task's budget was kept. Budget rates are received per assigned execution time of
/// a period, ppm.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TaskPrecision {
    /// The task's name.
    pub name: String,
    /// Time between releases, ns.
    pub period_ns: u64,
    /// Execution time assigned per period, ns.
    pub budget_ns: u64,
    /// Periods counted: those in which the task was ready throughout. Periods in which the
    /// dispatcher was late are among them, as in the paper.
    pub periods: u64,
    /// Periods in which the task did not want its whole budget; of a player, most.
    pub not_ready: u64,
    /// Budget rate of all periods together; `null` without any.
    pub average_ppm: Option<u64>,
    /// The least budget rate.
    pub least_ppm: Option<u64>,
    /// The greatest budget rate.
    pub most_ppm: Option<u64>,
    /// Periods off by more than 1 % of the budget.
    pub off_1_percent: u64,
    /// Periods off by more than 5 % of the budget: what counts as a violation here.
    pub off_5_percent: u64,
    /// The budget rate of each period, as Fig. 6 draws it.
    pub rates_ppm: Vec<u64>,
}

/// RT-Linux's square wave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SquareWaveResult {
    /// Time between the releases of each task, ns.
    pub period_ns: u64,
    /// Edges of each row that were asked for.
    pub edges: u64,
    /// Row by row.
    pub rows: Vec<SquareWaveRow>,
    /// The paper's processor.
    pub paper_cpu: String,
    /// Its clock, kHz.
    pub paper_khz: u64,
    /// The paper's worst variation, of one task and of two.
    pub paper_variation: MeasuredTime,
    /// A switch between two SCHED_FIFO threads with its system call (sched_yield); `null` where
    /// SCHED_FIFO is not permitted.
    pub switch: Option<SwitchCost>,
    /// The paper's, in cycles of a 486, calculated.
    pub paper_switch_cycles: u64,
}

/// A switch with its system call: means of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SwitchCost {
    /// How many batches.
    pub batches: u64,
    /// The least mean.
    pub min: MeasuredTime,
    /// The mean of all.
    pub average: MeasuredTime,
    /// The middle one.
    pub p50: MeasuredTime,
}

/// What ran beside the tasks of a square wave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum WaveLoad {
    /// Nothing.
    Idle,
    /// A file is copied.
    DiskCopy,
    /// Datagrams on the loopback interface.
    Network,
    /// Pictures are filled and copied in memory.
    Graphics,
    /// All three, as in the paper.
    All,
}

impl WaveLoad {
    /// What to call it in a table.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            WaveLoad::Idle => "idle",
            WaveLoad::DiskCopy => "disk copy",
            WaveLoad::Network => "network",
            WaveLoad::Graphics => "graphics",
            WaveLoad::All => "all three",
        }
    }
}

/// A square wave: each task makes an edge at each of its releases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SquareWaveRow {
    /// What released the tasks.
    pub host: MeasuredHost,
    /// Tasks: one toggles, of two one sets and the other clears.
    pub tasks: u32,
    /// What ran beside them.
    pub load: WaveLoad,
    /// How late the edges were.
    pub lateness: Option<LatencySpread>,
    /// Their worst variation: the latest less the earliest, each against its own instant.
    pub variation: Option<MeasuredTime>,
    /// Edges that were not made: releases that came when the task was not done.
    pub skipped: u64,
    /// Why this machine cannot have the row; then there are no figures.
    pub not_possible: Option<String>,
    /// What a reader should know beside the figures.
    pub notes: Vec<String>,
}
