//! The result of a profile, as `--json` prints it. All of it is integers.

use punctual_measure::distribution::LatencySpread;
use punctual_measure::noise::Noise;
use punctual_session::results::Machine;
use serde::{Deserialize, Serialize};

/// How a program uses the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// It wakes in a period.
    Periodic,
    /// It wakes and waits, in no period that was found.
    Aperiodic,
    /// It hardly ever waits: it uses any budget.
    NeverWaits,
    /// It woke too seldom to judge it.
    TooFew,
}

/// What a program did, and which reservation it needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileResult {
    /// What it ran on.
    pub machine: Machine,
    /// Its name in the task set.
    pub name: String,
    /// How long it was observed, ns.
    pub observed_ns: u64,
    /// Of that, its start-up, which was left out, ns.
    pub skipped_ns: u64,
    /// It was interrupted: more might have been seen.
    pub interrupted: bool,
    /// How it uses the CPU.
    pub pattern: Pattern,
    /// The mean time between its jobs, ns; `null` without a period.
    pub period_ns: Option<u64>,
    /// How many percent of the times between jobs are that period, or a few of it, within a fifth.
    pub regular_percent: Option<u64>,
    /// Bursts of execution that are at most so far apart are one job, ns.
    pub gap_ns: u64,
    /// Jobs that were seen whole.
    pub jobs: u64,
    /// What each job executed, all threads together.
    pub execution: Option<LatencySpread>,
    /// From one release to the next.
    pub distance: Option<LatencySpread>,
    /// A job's relative deadline, ns; `null` without jobs.
    pub deadline_ns: Option<u64>,
    /// What all threads executed, as a share of one CPU, parts per million.
    pub demand_ppm: u64,
    /// The most that was executed in any window as long as the deadline, ns.
    pub busiest_window_ns: Option<u64>,
    /// The most threads that executed at one time.
    pub parallel: u32,
    /// Times that a thread lost its CPU to another one.
    pub preemptions: u64,
    /// How long threads then stood ready, ns.
    pub preempted_ns: u64,
    /// Context switches that are missing, because this program did not take them in time.
    pub lost_records: u64,
    /// The threads that executed most, at most 32.
    pub threads: Vec<ThreadResult>,
    /// The share of jobs that is to meet its deadline, parts per million.
    pub wanted_ppm: u64,
    /// Reservations that were tried.
    pub candidates: Vec<Candidate>,
    /// The reservation that is proposed; `null` where none can be.
    pub proposal: Option<Proposal>,
    /// What disturbed the CPUs meanwhile.
    pub noise: Noise,
    /// Reasons not to believe the figures.
    pub warnings: Vec<String>,
}

/// One thread of the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadResult {
    /// Its number.
    pub tid: i32,
    /// Its name; empty if it ended before it could be read.
    pub name: String,
    /// Times that it got the CPU after it had waited.
    pub wake_ups: u64,
    /// ns.
    pub executed_ns: u64,
}

/// A reservation, and how many of the recorded jobs meet their deadline with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Candidate {
    /// ns.
    pub period_ns: u64,
    /// ns.
    pub budget_ns: u64,
    /// Budget by period, parts per million.
    pub share_ppm: u64,
    /// Jobs that meet their deadline, parts per million, rounded down, in the worst phase of eight,
    /// when no other reservation is on the CPU; `null` without jobs.
    pub alone_ppm: Option<u64>,
    /// The same beside reservations that have all the rest of what the host admits.
    pub beside_ppm: Option<u64>,
    /// It is the one that is proposed.
    pub proposed: bool,
}

/// A reservation to paste.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proposal {
    /// ns.
    pub period_ns: u64,
    /// ns.
    pub budget_ns: u64,
    /// The policy that it was replayed under.
    pub policy: String,
    /// Why this policy.
    pub policy_reason: String,
    /// The `[[task]]` table of a task set, in TOML.
    pub entry: String,
    /// A whole task set of it.
    pub set: String,
}
