//! Processor demand for EDF within a table's windows, where everything has its fixed time: the
//! offsets of members and windows count (RED-Linux, Fig. 6 with Table 2).
//!
//! Every job is judged by itself. Jobs never execute beyond their deadlines, so that what was
//! released before an instant e, and is due by e, is nobody's concern from then on: if no job that is
//! due by d is released before e and due after it, a job from [e, d] is in time if for every x
//! from e to its release
//!
//! ```text
//! demand(x, d) <= supply(x, d)
//! ```
//!
//! where a job that keeps its budget while it has nothing to execute demands, from x on, as much of
//! it as it can execute until its deadline.

use crate::contender::{Contender, PutOff};
use crate::effort::{Effort, Exhausted};
use crate::hyperperiod::lcm;
use crate::interference::Interference;
use crate::supply::Table;
use crate::time_table::LONGEST_CYCLE;

/// Jobs that are looked at, at most.
const MOST_JOBS: u64 = 4_000;

#[derive(Clone, Copy)]
struct Job {
    release: u64,
    due: u64,
    budget: u64,
    keeps: bool,
    member: usize,
}

impl Job {
    /// What it can execute from x on until it is due.
    fn demand(&self, x: u64) -> u64 {
        match (self.keeps, self.release >= x) {
            (_, true) => self.budget,
            (true, false) => self.budget.min(self.due.saturating_sub(x)),
            (false, false) => 0,
        }
    }
}

/// For each member whether all its jobs are in time; `None` where this test does not apply.
pub(crate) fn in_time(
    members: &[Contender],
    table: &Table,
    host: &Interference,
    effort: &mut Effort,
) -> Result<Option<Vec<bool>>, Exhausted> {
    let Some(jobs) = jobs(members, table) else { return Ok(None) };
    let mut good = vec![true; members.len()];
    for (at, job) in jobs.iter().enumerate() {
        if good[job.member] && !is_in_time(at, &jobs, table, host, effort)? {
            good[job.member] = false;
        }
    }
    Ok(Some(good))
}

/// All jobs until everything has come round twice, by release.
fn jobs(members: &[Contender], table: &Table) -> Option<Vec<Job>> {
    let mut cycle = table.cycle();
    let mut last = 0;
    for c in members {
        let plain = c.jitter == 0 && c.blocking == 0 && c.wet.is_none();
        let (Some(period), Some(start), true) = (c.period, c.start, plain) else { return None };
        cycle = lcm(cycle, period).filter(|&c| c < LONGEST_CYCLE)?;
        last = last.max(start);
    }
    // With more demand than supply, what is in time now may be late in a later round.
    let demand: u128 =
        members.iter().map(|c| u128::from(cycle / c.period.unwrap_or(cycle)) * u128::from(c.cost())).sum();
    if demand > u128::from(table.between(0, cycle)) {
        return None;
    }
    let end = last.checked_add(2 * cycle)?;
    let count: u64 = members.iter().filter_map(|c| Some(end / c.period?)).fold(0, u64::saturating_add);
    if count > MOST_JOBS {
        return None;
    }
    let mut jobs = Vec::new();
    for (member, c) in members.iter().enumerate() {
        let (mut release, period) = (c.start?, c.period?);
        while release < end {
            let due = release + c.deadline;
            jobs.push(Job { release, due, budget: c.cost(), keeps: c.put_off != PutOff::Never, member });
            release += period;
        }
    }
    jobs.sort_by_key(|j| j.release);
    Some(jobs)
}

fn is_in_time(
    at: usize,
    jobs: &[Job],
    table: &Table,
    host: &Interference,
    effort: &mut Effort,
) -> Result<bool, Exhausted> {
    let job = jobs[at];
    let urgent = |j: &&Job| j.due <= job.due;
    // The latest instant, up to its release, that no urgent job lies across.
    let mut clean = job.release;
    effort.spend(jobs.len())?;
    for j in jobs[..at].iter().rev().filter(urgent) {
        if j.release < clean && j.due > clean {
            clean = j.release;
        }
    }
    let rivals: Vec<Job> =
        jobs.iter().filter(urgent).filter(|j| j.release >= clean && j.release < job.due).copied().collect();
    let begins = rivals.iter().flat_map(|j| [j.release, j.due - j.budget.min(j.due)]);
    for x in begins.chain([clean, job.release]).filter(|x| (clean..=job.release).contains(x)) {
        effort.spend(rivals.len() + host.terms.len() + 1)?;
        let demand: u128 = rivals.iter().map(|j| u128::from(j.demand(x))).sum();
        if demand + host.within(job.due - x) > u128::from(table.between(x, job.due)) {
            return Ok(false);
        }
    }
    Ok(true)
}
