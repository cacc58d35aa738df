//! Worst-case response times under EDF on a whole CPU (Spuri 1996).
//!
//! The worst case need not begin with the release of the task itself: all others are released at 0,
//! the job under test at a. Each a at which its deadline is that of another job is tried, up to the
//! longest busy period. Equal deadlines count against the job, so that the bound is reached where
//! the dispatcher breaks ties so.

use crate::analysed_task::AnalysedTask;
use crate::step_limit::{fixed_point, Exhausted, StepLimit};

/// The worst response of each member, as far as the steps go; `None` beyond.
///
/// For members with periods that have no jitter, blocking or suspensions and whose demand is always
/// supplied: otherwise no useful busy period is bounded.
pub(crate) fn responses(members: &[AnalysedTask], steps: &mut StepLimit) -> Vec<Option<u64>> {
    let mut found = vec![None; members.len()];
    let Ok(busy) = busy_period(members, steps) else { return found };
    for (i, response) in found.iter_mut().enumerate() {
        match response_of(i, members, busy, steps) {
            Ok(w) => *response = Some(w),
            Err(Exhausted) => break,
        }
    }
    found
}

fn period(task: &AnalysedTask) -> u64 {
    task.period.unwrap_or(u64::MAX)
}

/// Busy periods and deadlines from here on, in ns, are not computed: sums might overflow.
const LONGEST: u64 = 1 << 61;

fn busy_period(members: &[AnalysedTask], steps: &mut StepLimit) -> Result<u64, Exhausted> {
    if members.iter().any(|m| m.deadline >= LONGEST) {
        return Err(Exhausted);
    }
    let next = |length: u64| {
        let terms = members.iter().map(|m| length.div_ceil(period(m)).saturating_mul(m.budget));
        terms.fold(0, u64::saturating_add)
    };
    fixed_point(1, LONGEST - 1, members.len(), steps, next)?.ok_or(Exhausted)
}

fn response_of(
    i: usize,
    members: &[AnalysedTask],
    busy: u64,
    steps: &mut StepLimit,
) -> Result<u64, Exhausted> {
    let own = &members[i];
    let mut releases: Vec<u64> = Vec::new();
    for m in members {
        let (mut a, step) = (u128::from(m.deadline), u128::from(period(m)));
        let least = u128::from(own.deadline);
        if a < least {
            a += (least - a).div_ceil(step) * step;
        }
        while a - least < u128::from(busy) {
            steps.spend(1)?;
            releases.push((a - least) as u64);
            a += step;
        }
    }
    releases.sort_unstable();
    releases.dedup();
    let mut worst = own.budget;
    for a in releases {
        worst = worst.max(completion(i, a, members, steps)?.saturating_sub(a));
    }
    Ok(worst)
}

/// When the job that is released at `a` completes, in a busy period that begins at 0.
fn completion(
    i: usize,
    a: u64,
    members: &[AnalysedTask],
    steps: &mut StepLimit,
) -> Result<u64, Exhausted> {
    let own = &members[i];
    let due = a + own.deadline;
    let own_jobs = (a / period(own) + 1).saturating_mul(own.budget);
    let next = |w: u64| {
        let others = members.iter().enumerate().filter(|(j, m)| *j != i && m.deadline <= due);
        let urgent = others.map(|(_, m)| {
            let urgent = (due - m.deadline) / period(m) + 1;
            urgent.min(w.div_ceil(period(m))).saturating_mul(m.budget)
        });
        urgent.fold(own_jobs, u64::saturating_add)
    };
    fixed_point(1, (LONGEST << 1) - 1, members.len(), steps, next)?.ok_or(Exhausted)
}
