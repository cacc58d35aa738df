//! Imprecise computation (RED-Linux IV-E.1, Figs. 3 and 4).
//!
//! Each release has a mandatory part in the high band and then an optional part in the low band,
//! for what is left of the budget: the optional part executes only when no mandatory one waits. A
//! task that says it is done in its mandatory part has ended its release. In the paper's listing
//! the mandatory part may use the whole budget, and ends when the task says so; a task set tells
//! instead how long it is (`mandatory`), so that any program will do.

use punctual_dispatcher::{Attribute, End};
use punctual_taskset::registry;

use crate::band;
use crate::entry::{PolicyEntry, Setup};
use crate::per_release::{per_release, ReleasePolicy};
use crate::policy::{MemberParams, Release, SchedulingPolicy};
use crate::JobParams;
use punctual_diagnostic::Diagnostic;

/// Within each band, rate monotonic.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    info: &registry::IMPRECISE,
    order: &[Attribute::Priority],
    priority: |u| band::high(u.period),
    wakeup_rule: false,
    timers: false,
    make,
};

struct Imprecise;

fn make(
    entry: &'static PolicyEntry,
    _: &Setup<'_>,
) -> Result<Box<dyn SchedulingPolicy>, Diagnostic> {
    Ok(per_release(entry, Imprecise))
}

fn job(m: &MemberParams, r: &Release, budget: u64, priority: i64) -> JobParams {
    JobParams { start: r.at, finish: r.at.saturating_add(m.deadline), budget, priority }
}

impl ReleasePolicy for Imprecise {
    fn first(&mut self, m: &MemberParams, r: &Release) -> JobParams {
        let mandatory = m.mandatory.unwrap_or(r.left).min(r.left);
        job(m, r, mandatory, band::high(m.period))
    }

    fn next(&mut self, m: &MemberParams, r: &Release, end: End) -> Option<JobParams> {
        let optional = m.mandatory.is_some_and(|mandatory| mandatory < m.budget);
        (r.part == 1 && end == End::Exhausted && optional)
            .then(|| job(m, r, r.left, band::low(m.period)))
    }
}
