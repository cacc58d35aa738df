//! Equal fixed priorities: they go by arrival, then by index.
//!
//! At most one job of each equal task is ahead of a job if all of them are completed before any is
//! released again. That job of a task with a larger index is ahead only if it arrived at least 1 ns
//! earlier.

use std::collections::HashMap;

use crate::analysed_task::{AnalysedTask, Deferral};
use crate::higher_priority::{HigherPriority, LowerBound};
use crate::interference::Interference;
use crate::step_limit::{Exhausted, StepLimit};
use crate::supply::Supply;

/// The common values of all tasks of one priority.
pub(crate) struct EqualPriority {
    /// Whether at most one job of each is ahead of another's.
    pub(crate) one_job_each: bool,
    /// For each task: the execution of the jobs that are ahead when released at the same instant,
    /// and of those that are ahead only when released earlier.
    pub(crate) ahead: Vec<(u128, u128)>,
    /// The more important tasks and all of this priority; `None` where it is not needed.
    pub(crate) with_equals: Option<HigherPriority>,
    /// Some task is strictly periodic: that it is released just before another may never happen.
    pub(crate) periodic: bool,
    /// The order of jobs that are released together is known for all.
    pub(crate) tie_breaks_known: bool,
}

impl EqualPriority {
    /// `equals` are sorted by index.
    pub(crate) fn new(
        equals: &[&AnalysedTask],
        higher: &HigherPriority,
        supply: &Supply,
        host: &Interference,
        steps: &mut StepLimit,
    ) -> Result<EqualPriority, Exhausted> {
        let mut level = EqualPriority {
            one_job_each: true,
            ahead: vec![(0, 0)],
            with_equals: None,
            periodic: false,
            tie_breaks_known: true,
        };
        if equals.len() == 1 {
            return Ok(level);
        }
        let all: u128 = equals.iter().map(|e| u128::from(e.cost())).sum();
        let next_release =
            |e: &&AnalysedTask| e.period.map_or(0, |t| t.saturating_sub(e.effective_jitter()));
        let soonest = equals.iter().map(next_release).min().unwrap_or(0);
        let simple =
            equals.iter().all(|e| e.suspension == 0 && e.blocking == 0 && e.limited_by.is_none());
        level.one_job_each = simple && {
            let all = all + u128::from(host.blocking);
            higher.completion(all, None, supply, (LowerBound::default(), soonest), steps)?.is_some()
        };
        level.tie_breaks_known = equals.iter().all(|e| e.tie_break.is_some());
        level.periodic = equals.iter().any(|e| e.offset.is_some());
        if !level.one_job_each || equals.iter().any(|e| e.deferral != Deferral::Never) {
            steps.spend(higher.terms() + equals.len())?;
            let mut with = higher.clone();
            equals.iter().for_each(|e| with.add(e));
            level.with_equals = Some(with);
        }
        level.ahead = ahead(equals, all);
        Ok(level)
    }
}

/// See [`EqualPriority::ahead`]. `all`: the cost of all.
fn ahead(equals: &[&AnalysedTask], all: u128) -> Vec<(u128, u128)> {
    let cost = |e: &&AnalysedTask| u128::from(e.cost());
    let unordered: u128 = equals.iter().filter(|e| e.tie_break.is_none()).map(cost).sum();
    let mut together: HashMap<(u64, u64), u128> = HashMap::new();
    for e in equals.iter().filter(|e| e.tie_break.is_some()) {
        if let Some(releases) = e.exact_releases() {
            *together.entry(releases).or_default() += cost(e);
        }
    }
    let mut earlier = unordered;
    let of = |e: &&AnalysedTask| {
        let own = cost(e);
        if e.tie_break.is_none() {
            return (all - own, 0);
        }
        let mut later = all - earlier - own;
        if let Some(rest) = e.exact_releases().and_then(|releases| together.get_mut(&releases)) {
            // Of those that are always released together the later ones are never ahead.
            *rest -= own;
            later -= *rest;
        }
        let ahead = (earlier, later);
        earlier += own;
        ahead
    };
    equals.iter().map(of).collect()
}
