//! Adaptive budgets, for one task: each release has the budget that the task's recent use predicts
//! (Abeni and Buttazzo 1999; Abeni, Cucinotta, Lipari, Marzario and Palopoli 2005).
//!
//! Releases, deadlines and priorities are those of a task without a server. The control law, in
//! ns, after each release:
//!
//! ```text
//! use          what the release executed; under the overrun policy `skip` with what releases right
//!              before it did that exhausted their budgets: all of it is one job
//! predicted    the second largest of the last 32 uses
//! wanted       predicted + predicted / 8; if the budget was exhausted, at least twice that budget
//! next budget  wanted, at least the least budget, at most the task's budget
//! ```
//!
//! At first all 32 uses are the task's budget, so that a task that starts up has all of it. The
//! second largest disregards a single outlier, and includes what comes twice in 32 releases, such
//! as each twelfth frame of a video that is larger. What an exhausted release wanted is not known:
//! doubling finds it in a few releases, and the window then holds what those used.

use punctual_dispatcher::{End, OverrunPolicy};
use punctual_taskset::registry;

use super::{reserved, state};
use crate::entry::{PolicyEntry, Setup};
use crate::policy::{MemberParams, PolicyEvent, SchedulingPolicy};
use crate::wakeup::cut_to_bandwidth;
use crate::{Context, JobParams};

pub(super) static ADAPTIVE: PolicyEntry = PolicyEntry {
    info: &registry::ADAPTIVE,
    make: |_, setup| Ok(Box::new(Adaptive::of(setup))),
    ..reserved::DEFERRABLE
};

/// How many uses the prediction is made of.
const WINDOW: usize = 32;

/// The share of a prediction that is added to it: 1 / 8.
const HEADROOM: u64 = 8;

/// By how much an exhausted budget grows.
const GROWTH: u64 = 2;

/// The share of a task's budget that is the least budget, where the set has none: 1 / 10.
const LEAST_SHARE: u64 = 10;

struct Adaptive {
    /// By member; `None` before its first release.
    laws: Vec<Option<Law>>,
    /// The least budget that the host enforces, ns.
    enforced: u64,
}

impl Adaptive {
    fn of(setup: &Setup<'_>) -> Adaptive {
        Adaptive { laws: state(setup, None), enforced: setup.costs.least_budget }
    }
}

/// The control law of one task. Times are ns.
#[derive(Clone, Copy)]
struct Law {
    /// The latest uses; the oldest one is at `oldest`.
    uses: [u64; WINDOW],
    oldest: usize,
    /// Limits of a budget.
    least: u64,
    most: u64,
    /// Of the next release, or of the one in flight.
    budget: u64,
    /// What exhausted releases have executed of a job that the next one continues.
    unfinished: u64,
}

impl Law {
    fn of(member: &MemberParams, enforced: u64) -> Law {
        let most = member.budget;
        let least = member.min_budget.unwrap_or(most / LEAST_SHARE).max(enforced).clamp(1, most);
        Law { uses: [most; WINDOW], oldest: 0, least, most, budget: most, unfinished: 0 }
    }

    /// A release has executed `used` ns. `continues`: its budget was exhausted, and the next one
    /// executes the rest of the same job alone; `grows`: a larger budget would have been used.
    fn observe(&mut self, used: u64, continues: bool, grows: bool) {
        let used = used.saturating_add(self.unfinished);
        self.unfinished = if continues { used } else { 0 };
        self.uses[self.oldest] = used;
        self.oldest = (self.oldest + 1) % WINDOW;
        let predicted = self.second_largest();
        let mut wanted = predicted.saturating_add(predicted / HEADROOM);
        if grows {
            wanted = wanted.max(self.budget.saturating_mul(GROWTH));
        }
        self.budget = wanted.clamp(self.least, self.most);
    }

    fn second_largest(&self) -> u64 {
        let (mut largest, mut second) = (0, 0);
        for &used in &self.uses {
            if used > largest {
                (largest, second) = (used, largest);
            } else {
                second = second.max(used);
            }
        }
        second
    }
}

impl SchedulingPolicy for Adaptive {
    fn budget(&self, member: &MemberParams) -> u64 {
        self.laws[member.index as usize].map_or(member.budget, |law| law.budget)
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let member = *context.member();
        let law = &mut self.laws[member.index as usize];
        match event {
            PolicyEvent::Released => {
                law.get_or_insert_with(|| Law::of(&member, self.enforced));
                let release = *context.release();
                // One that is refused loses the release: the host learns of it.
                let _ = context.add_job(&JobParams {
                    start: release.at,
                    finish: release.deadline,
                    budget: release.left,
                    priority: context.rank(),
                });
            }
            // The bandwidth that admission counts is that of the task's budget.
            PolicyEvent::Ready if context.cuts_on_waking() => {
                let start = context.now();
                if let Some(budget) = cut_to_bandwidth(context) {
                    let (finish, priority) = (context.release().deadline, context.rank());
                    let _ = context.replace_job(&JobParams { start, finish, budget, priority });
                }
            }
            // The next program that has this place starts up as this one did.
            PolicyEvent::JobEnded { end: End::TaskGone, .. } => *law = None,
            PolicyEvent::JobEnded { end, .. } if end != End::Cancelled => {
                // A larger budget does not help a release that was cut: its bandwidth limited it.
                let exhausted = end == End::Exhausted;
                let continues = exhausted && context.overrun() == OverrunPolicy::Skip;
                let grows = exhausted && context.cut() == 0;
                if let Some(law) = law {
                    law.observe(context.executed_in_release(), continues, grows);
                }
            }
            _ => {}
        }
    }
}
