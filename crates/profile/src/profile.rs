//! From a recording to a result.

use punctual_analysis::Capacity;
use punctual_diagnostic::Diagnostic;
use punctual_measure::distribution::Distribution;
use punctual_session::results::Machine;
use punctual_taskset::{Body, TaskSet};

use crate::activity::ProgramActivity;
use crate::jobs::{busiest_window, jobs_of, RecordedJob};
use crate::observe::Observation;
use crate::propose::{candidates, shares, uses_up, Wanted};
use crate::result::{Candidate, Pattern, ProfileResult, Proposal, ThreadResult};
use crate::rhythm::{self, Rhythm, LEAST_JOBS};

/// What is wanted of a profile.
#[derive(Debug, Clone)]
pub struct Wish {
    /// What the task of the proposal executes.
    pub body: Body,
    /// The CPU of the proposed set.
    pub cpu: u32,
    /// The relative deadline of jobs, ns; `None`: the program's period.
    pub deadline: Option<u64>,
    /// The share of jobs that is to meet its deadline, parts per million.
    pub share_ppm: u64,
    /// The start-up that is left out, ns; `None`: a second, or a fifth of a shorter recording.
    pub skip: Option<u64>,
    /// The policy of the set.
    pub policy: String,
    /// What the host offers.
    pub capacity: Capacity,
}

/// The relative deadline of jobs of a program without a period, ns: people notice longer delays.
const PATIENCE: u64 = 100_000_000;
/// Pauses up to this, ns, do not end a job of a program without a period.
const PAUSE: u64 = 1_000_000;
/// A program that waits for less than this share of the time never waits; percent.
const WAITS: u64 = 2;
/// Threads are listed up to this number.
const MOST_THREADS: usize = 32;
/// Of this share of what the program executed on, time as ready is worth a warning; percent.
const MUCH_READY: u64 = 1;

/// Evaluates an observation; `progress` is called with the number of reservations tried.
///
/// # Errors
/// There is no such policy.
pub fn evaluate(
    seen: &Observation,
    wish: &Wish,
    progress: &mut dyn FnMut(u64),
) -> Result<ProfileResult, Diagnostic> {
    let observed = seen.end - seen.begin;
    let skipped = wish.skip.unwrap_or(1_000_000_000.min(observed / 5)).min(observed);
    let activity = ProgramActivity::of(&seen.records, seen.end);
    let start = seen.begin + skipped;
    let bursts = activity.whole_bursts(start);
    let active = activity.active_between(start, seen.end);
    let rest = observed - skipped - active.min(observed - skipped);
    let waits = rest * 100 >= (observed - skipped) * WAITS;

    let executed = activity.threads.values().map(|thread| thread.executed).sum();
    let mut result = empty(seen, wish, skipped, &activity);
    let mut rhythm = None;
    let jobs = match rhythm::find(bursts).filter(|_| waits) {
        Some(Rhythm { jobs, gap, period, regular }) => {
            rhythm = Some(period);
            (result.period_ns, result.regular_percent) = (Some(period), Some(regular));
            result.gap_ns = gap;
            jobs
        }
        None => {
            result.gap_ns = PAUSE;
            jobs_of(bursts, PAUSE)
        }
    };
    result.pattern = match rhythm {
        _ if !waits && uses_up(executed) => Pattern::NeverWaits,
        Some(_) => Pattern::Periodic,
        None if jobs.len() < LEAST_JOBS => Pattern::TooFew,
        None => Pattern::Aperiodic,
    };
    result.jobs = jobs.len() as u64;
    match result.pattern {
        Pattern::NeverWaits => result.candidates = shares(),
        Pattern::TooFew => {}
        Pattern::Periodic | Pattern::Aperiodic => {
            spreads(&mut result, &jobs);
            let deadline = wish.deadline.or(rhythm).unwrap_or(PATIENCE);
            result.deadline_ns = Some(deadline);
            result.busiest_window_ns = Some(busiest_window(bursts, deadline));
            let Wish { share_ppm, capacity, .. } = *wish;
            let wanted = Wanted { deadline, share_ppm, capacity, policy: wish.policy.clone() };
            result.candidates = candidates(&jobs, bursts, &wanted, progress)?;
        }
    }
    let proposed = result.candidates.iter().find(|candidate| candidate.proposed);
    result.proposal = proposed.map(|candidate| proposal(candidate, wish)).transpose()?;
    Ok(result)
}

/// What does not depend on jobs.
fn empty(
    seen: &Observation,
    wish: &Wish,
    skipped: u64,
    activity: &ProgramActivity,
) -> ProfileResult {
    let observed = seen.end - seen.begin;
    let threads = activity.threads.values();
    let executed: u64 = threads.clone().map(|thread| thread.executed).sum();
    let ready: u64 = threads.clone().map(|thread| thread.preempted).sum();
    let preemptions = threads.map(|thread| thread.preemptions).sum();
    let mut warnings = seen.problems.clone();
    warnings.extend(seen.noise.doubts());
    if ready * 100 > executed * MUCH_READY {
        warnings.push(format!(
            "threads stood ready for {} % of the time that they executed ({preemptions} \
            preemptions): \
             the CPUs were not theirs alone",
            ready * 100 / executed.max(1)
        ));
    }
    if seen.lost > 0 {
        warnings.push(format!(
            "{} context switches are missing: jobs around them are wrong",
            seen.lost
        ));
    }
    let mut threads: Vec<ThreadResult> = activity
        .threads
        .iter()
        .map(|(&tid, thread)| ThreadResult {
            tid,
            name: seen.names.get(&tid).cloned().unwrap_or_default(),
            wake_ups: thread.wake_ups,
            executed_ns: thread.executed,
        })
        .collect();
    threads.sort_by_key(|thread| std::cmp::Reverse(thread.executed_ns));
    threads.truncate(MOST_THREADS);
    ProfileResult {
        machine: Machine::detect(),
        name: TaskSet::single(1, 1, wish.body.clone()).task_name().to_owned(),
        observed_ns: observed,
        skipped_ns: skipped,
        interrupted: false,
        pattern: Pattern::TooFew,
        period_ns: None,
        regular_percent: None,
        gap_ns: 0,
        jobs: 0,
        execution: None,
        distance: None,
        deadline_ns: None,
        demand_ppm: u64::try_from(u128::from(executed) * 1_000_000 / u128::from(observed.max(1)))
            .unwrap_or(u64::MAX),
        busiest_window_ns: None,
        parallel: activity.parallel,
        preemptions,
        preempted_ns: ready,
        lost_records: seen.lost,
        threads,
        wanted_ppm: wish.share_ppm,
        candidates: Vec::new(),
        proposal: None,
        noise: seen.noise,
        warnings,
    }
}

fn spreads(result: &mut ProfileResult, jobs: &[RecordedJob]) {
    let (mut execution, mut distance) = (Distribution::new(), Distribution::new());
    jobs.iter().for_each(|job| execution.add(job.executed));
    jobs.windows(2).for_each(|two| distance.add(two[1].release - two[0].release));
    (result.execution, result.distance) = (execution.spread(), distance.spread());
}

fn proposal(candidate: &Candidate, wish: &Wish) -> Result<Proposal, Diagnostic> {
    let Candidate { period_ns, budget_ns, .. } = *candidate;
    let set = TaskSet::single(period_ns, budget_ns, wish.body.clone())
        .policy(&wish.policy)
        .cpu(wish.cpu)
        .build()?
        .to_toml();
    let entry = entry(&set);
    let set = format!("cpu = {}\npolicy = \"{}\"\n\n{entry}", wish.cpu, wish.policy);
    let policy_reason = match wish.policy.as_str() {
        "edf" => "it admits sets up to all that the host offers, whatever their periods are",
        "rm" | "dm" => {
            "a program that wakes late in its period keeps its whole budget; but admission \
             reckons with that, and fewer sets fit"
        }
        _ => "it was asked for",
    };
    Ok(Proposal {
        period_ns,
        budget_ns,
        policy: wish.policy.clone(),
        policy_reason: policy_reason.to_owned(),
        entry,
        set,
    })
}

/// The one task of a set, without what a file may leave out.
fn entry(set: &str) -> String {
    let task = set.find("[[task]]").map_or("", |at| &set[at..]);
    // What the task executes comes last, and may be of several lines.
    let body = ["\ncommand = ", "\npid = "].into_iter().filter_map(|key| task.find(key)).min();
    let (head, body) = task.split_at(body.unwrap_or(task.len()));
    let is_default = |line: &&str| {
        ["cpu", "priority", "deadline", "overrun"]
            .iter()
            .any(|key| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(" = ")))
    };
    let kept: Vec<&str> = head.lines().filter(|line| !is_default(line)).collect();
    kept.join("\n") + body
}

#[cfg(test)]
mod tests;
