//! Which reservation is proposed: of a few periods the one that needs the least share of a CPU,
//! each with the smallest budget that lets enough of the recorded jobs meet their deadline.

use punctual_analysis::Capacity;
use punctual_diagnostic::Diagnostic;
use punctual_taskset::LEAST_PERIOD;

use crate::activity::Burst;
use crate::jobs::RecordedJob;
use crate::replay::{Beside, Replay};
use crate::result::Candidate;
use crate::rhythm::rounded;

/// A longer recording is not replayed whole: its last jobs are.
const MOST_JOBS: usize = 10_000;
/// The period of a proposal for a program that never waits, and the budgets shown for it, ns.
const SHARED_PERIOD: u64 = 20_000_000;
const SHARED_BUDGETS: [u64; 4] = [2_000_000, 5_000_000, 10_000_000, 15_000_000];
const SHARED_PROPOSAL: u64 = 5_000_000;
/// A longer period is preferred, if it needs so many percent more at most: it switches less.
const TIE: u64 = 10;

/// What a proposal is made for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// A job's relative deadline, ns.
    pub deadline: u64,
    /// The share of jobs that is to meet it, parts per million.
    pub share_ppm: u64,
    /// What the host offers.
    pub capacity: Capacity,
    /// The policy of the set.
    pub policy: String,
}

/// Reservations with what they would do for the recorded jobs, by period and budget; one of them is
/// the proposed one, unless not even all of what the host admits does for as many as wanted.
/// `progress` is called with the number of reservations tried.
///
/// # Errors
/// There is no such policy.
pub fn candidates(
    jobs: &[RecordedJob],
    bursts: &[Burst],
    wanted: &Wanted,
    progress: &mut dyn FnMut(u64),
) -> Result<Vec<Candidate>, Diagnostic> {
    let jobs = &jobs[jobs.len().saturating_sub(MOST_JOBS)..];
    let Wanted { deadline, capacity, policy, .. } = wanted;
    let replay = Replay::new(jobs, bursts, *deadline, *capacity, policy);
    let mut search = Search { replay, wanted, tried: 0, progress };
    let base = rounded(*deadline).max(LEAST_PERIOD);
    let mut found: Vec<(u64, u64)> = Vec::new();
    for parts in [1, 2, 4] {
        let period = rounded(base / parts);
        if period >= LEAST_PERIOD && (parts == 1 || period >= 10 * search.least(period)) {
            found.extend(search.smallest(period)?.map(|budget| (period, budget)));
        }
    }
    // The least share, with what the host takes for each release; then the longest period that
    // needs little more.
    let costs = wanted.capacity.costs;
    let host = costs.release + costs.timer + 2 * (costs.switch + costs.command);
    let needs = |&(period, budget): &(u64, u64)| share(period, budget + host);
    let least = found.iter().map(needs).min().unwrap_or(0);
    let near = |one: &&(u64, u64)| needs(one) * 100 <= least * (100 + TIE);
    let proposed = found.iter().filter(near).max_by_key(|(period, _)| *period).copied();
    let period = proposed.map_or(base, |(period, _)| period);
    let mut all = found;
    all.extend(search.percentiles(jobs, period).map(|budget| (period, budget)));
    // By period, the longest first, then by budget.
    all.sort_unstable_by_key(|&(period, budget)| (std::cmp::Reverse(period), budget));
    all.dedup();
    all.into_iter().map(|one| search.candidate(one, proposed == Some(one))).collect()
}

/// For a program that uses whatever it gets: some shares to choose from.
#[must_use]
pub fn shares() -> Vec<Candidate> {
    let candidate = |budget_ns| Candidate {
        period_ns: SHARED_PERIOD,
        budget_ns,
        share_ppm: share(SHARED_PERIOD, budget_ns),
        alone_ppm: None,
        beside_ppm: None,
        proposed: budget_ns == SHARED_PROPOSAL,
    };
    SHARED_BUDGETS.map(candidate).to_vec()
}

/// Whether a program that executed for so long, ns, without waiting used up any of those shares:
/// only then is it known to.
#[must_use]
pub fn uses_up(executed: u64) -> bool {
    SHARED_BUDGETS.iter().all(|&budget| executed >= budget)
}

/// Parts per million.
fn share(period: u64, budget: u64) -> u64 {
    u64::try_from(u128::from(budget) * 1_000_000 / u128::from(period)).unwrap_or(u64::MAX)
}

struct Search<'a> {
    replay: Replay,
    wanted: &'a Wanted,
    tried: u64,
    progress: &'a mut dyn FnMut(u64),
}

impl Search<'_> {
    /// Budgets are whole steps: 1, 2 or 5 of a power of ten, at most a two-hundredth of the period,
    /// at least 10 us.
    fn step(period: u64) -> u64 {
        let wanted = (period / 200).max(1);
        let power = 10u64.pow(wanted.ilog10());
        let step = [5, 2, 1].map(|n| n * power).into_iter().find(|&step| step <= wanted);
        step.unwrap_or(power).max(10_000)
    }

    /// The least budget that the host enforces, and the greatest that it admits, in whole steps.
    fn least(&self, period: u64) -> u64 {
        let step = Search::step(period);
        self.wanted.capacity.costs.least_budget.div_ceil(step).max(1) * step
    }

    fn most(&self, period: u64) -> u64 {
        let most = u128::from(period) * u128::from(self.wanted.capacity.limit.0) / 1_000_000;
        let step = Search::step(period);
        u64::try_from(most).unwrap_or(u64::MAX) / step * step
    }

    /// The smallest budget with which enough jobs meet their deadline beside reservations. More
    /// budget does not make a job later, so halving the interval finds it.
    fn smallest(&mut self, period: u64) -> Result<Option<u64>, Diagnostic> {
        let step = Search::step(period);
        let (mut low, mut high) = (self.least(period) / step, self.most(period) / step);
        if low > high || !self.suffices(period, high * step)? {
            return Ok(None);
        }
        while low < high {
            let middle = low + (high - low) / 2;
            match self.suffices(period, middle * step)? {
                true => high = middle,
                false => low = middle + 1,
            }
        }
        Ok(Some(high * step))
    }

    fn suffices(&mut self, period: u64, budget: u64) -> Result<bool, Diagnostic> {
        self.count();
        let jobs = u128::from(self.replay.jobs());
        let least = (jobs * u128::from(self.wanted.share_ppm)).div_ceil(1_000_000);
        let least = u64::try_from(least).unwrap_or(u64::MAX);
        Ok(self.replay.met(period, budget, Beside::Reservations, least)?.is_some())
    }

    fn count(&mut self) {
        self.tried += 1;
        (self.progress)(self.tried);
    }

    /// Budgets by what jobs execute: of half of them, of 90 %, of 99 %, of all.
    fn percentiles(&self, jobs: &[RecordedJob], period: u64) -> impl Iterator<Item = u64> {
        let mut times: Vec<u64> = jobs.iter().map(|job| job.executed).collect();
        times.sort_unstable();
        let (step, least, most) = (Search::step(period), self.least(period), self.most(period));
        let (deadline, last) = (u128::from(self.wanted.deadline), times.len().saturating_sub(1));
        [500, 900, 990, 1_000].into_iter().filter_map(move |per_mille| {
            let rank = (times.len() * per_mille).div_ceil(1_000).saturating_sub(1).min(last);
            let part = u128::from(*times.get(rank)?) * u128::from(period) / deadline.max(1);
            let budget = u64::try_from(part).unwrap_or(u64::MAX).div_ceil(step) * step;
            (least..=most).contains(&budget).then_some(budget)
        })
    }

    fn candidate(
        &mut self,
        (period, budget): (u64, u64),
        proposed: bool,
    ) -> Result<Candidate, Diagnostic> {
        self.count();
        let jobs = u128::from(self.replay.jobs().max(1));
        let met = |beside| {
            let met = u128::from(self.replay.met(period, budget, beside, 0)?.unwrap_or(0));
            Ok(u64::try_from(met * 1_000_000 / jobs).ok())
        };
        Ok(Candidate {
            period_ns: period,
            budget_ns: budget,
            share_ppm: share(period, budget),
            alone_ppm: met(Beside::Nothing)?,
            beside_ppm: met(Beside::Reservations)?,
            proposed,
        })
    }
}

#[cfg(test)]
mod tests;
