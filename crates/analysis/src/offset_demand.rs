//! Processor demand for EDF within the windows of a table, where all jobs are released at fixed
//! times: the offsets of members and windows count (RED-Linux, Fig. 6 with Table 2).
//!
//! Each job is tested by itself. No job executes after its deadline. So if e is an instant that no
//! job with a deadline up to d spans, jobs released before e do not delay a job that is released
//! from e on and due at d, and this job is in time if for every x from e to its release
//!
//! ```text
//! demand(x, d) <= supply(x, d)
//! ```
//!
//! A job that keeps its budget while it has nothing to execute demands, from x on, as much of the
//! budget as it can execute before its deadline.

use crate::analysed_task::{AnalysedTask, Deferral};
use crate::hyperperiod::lcm;
use crate::interference::Interference;
use crate::step_limit::{Exhausted, StepLimit};
use crate::time_table::LONGEST_CYCLE;
use crate::window_supply::WindowSupply;

/// Jobs that are tested at most.
const MOST_JOBS: u64 = 4_000;

#[derive(Clone, Copy)]
struct Job {
    release: u64,
    due: u64,
    budget: u64,
    keeps_budget: bool,
    member: usize,
}

impl Job {
    /// Its possible execution from x to its deadline.
    fn demand(&self, x: u64) -> u64 {
        match (self.keeps_budget, self.release >= x) {
            (_, true) => self.budget,
            (true, false) => self.budget.min(self.due.saturating_sub(x)),
            (false, false) => 0,
        }
    }
}

/// For each member whether all its jobs are in time; `None` where this test does not apply: a
/// member is not strictly periodic, is delayed otherwise, or there are too many jobs.
pub(crate) fn in_time(
    members: &[AnalysedTask],
    windows: &WindowSupply,
    host: &Interference,
    steps: &mut StepLimit,
) -> Result<Option<Vec<bool>>, Exhausted> {
    let Some(jobs) = jobs(members, windows) else { return Ok(None) };
    let mut good = vec![true; members.len()];
    for (at, job) in jobs.iter().enumerate() {
        if good[job.member] && !is_in_time(at, &jobs, windows, host, steps)? {
            good[job.member] = false;
        }
    }
    Ok(Some(good))
}

/// All jobs of two hyperperiods after the last offset, by release.
fn jobs(members: &[AnalysedTask], windows: &WindowSupply) -> Option<Vec<Job>> {
    let mut cycle = windows.cycle();
    let mut last = 0;
    for m in members {
        let undelayed = m.jitter == 0 && m.blocking == 0 && m.limited_by.is_none();
        let (Some(period), Some(offset), true) = (m.period, m.offset, undelayed) else {
            return None;
        };
        cycle = lcm(cycle, period).filter(|&c| c < LONGEST_CYCLE)?;
        last = last.max(offset);
    }
    // With more demand than supply, jobs that are in time here may be late in a later hyperperiod.
    let demands = members
        .iter()
        .map(|m| u128::from(cycle / m.period.unwrap_or(cycle)) * u128::from(m.cost()));
    if demands.sum::<u128>() > u128::from(windows.between(0, cycle)) {
        return None;
    }
    let end = last.checked_add(2 * cycle)?;
    let count: u64 =
        members.iter().filter_map(|m| Some(end / m.period?)).fold(0, u64::saturating_add);
    if count > MOST_JOBS {
        return None;
    }
    let mut jobs = Vec::new();
    for (member, m) in members.iter().enumerate() {
        let (mut release, period) = (m.offset?, m.period?);
        let keeps_budget = m.deferral != Deferral::Never;
        while release < end {
            jobs.push(Job {
                release,
                due: release + m.deadline,
                budget: m.cost(),
                keeps_budget,
                member,
            });
            release += period;
        }
    }
    jobs.sort_by_key(|j| j.release);
    Some(jobs)
}

fn is_in_time(
    at: usize,
    jobs: &[Job],
    windows: &WindowSupply,
    host: &Interference,
    steps: &mut StepLimit,
) -> Result<bool, Exhausted> {
    let job = jobs[at];
    let urgent = |j: &&Job| j.due <= job.due;
    // The latest instant, up to the release, that no urgent job spans.
    let mut clean = job.release;
    steps.spend(jobs.len())?;
    for j in jobs[..at].iter().rev().filter(urgent) {
        if j.release < clean && j.due > clean {
            clean = j.release;
        }
    }
    let competing: Vec<Job> = jobs
        .iter()
        .filter(urgent)
        .filter(|j| j.release >= clean && j.release < job.due)
        .copied()
        .collect();
    let begins = competing.iter().flat_map(|j| [j.release, j.due - j.budget.min(j.due)]);
    for x in begins.chain([clean, job.release]).filter(|x| (clean..=job.release).contains(x)) {
        steps.spend(competing.len() + host.terms.len() + 1)?;
        let demand: u128 = competing.iter().map(|j| u128::from(j.demand(x))).sum();
        if demand + host.within(job.due - x) > u128::from(windows.between(x, job.due)) {
            return Ok(false);
        }
    }
    Ok(true)
}
