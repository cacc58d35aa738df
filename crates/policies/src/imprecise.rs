//! Imprecise computation (RED-Linux IV-E.1, Figs. 3 and 4).
//!
//! Each release has a mandatory part in the high band and then an optional part in the low band,
//! for what is left of the budget: the optional part executes only when no mandatory one waits. A
//! task that says it is done in its mandatory part has ended its release. In the paper's listing
//! the mandatory part may use the whole budget, and ends when the task says so; a task set tells
//! instead how long it is (`mandatory`), so that any program will do.

use punctual_dispatcher::{Attribute, End};

use crate::allocator::{Allocator, Part, Release, TaskParams};
use crate::band;
use crate::policy::{PolicyEntry, Setup};
use punctual_diagnostic::Diagnostic;

/// Within each band, rate monotonic.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    name: "imprecise",
    title: "imprecise computation",
    source: "Liu, Lin, Shih et al. 1991; RED-Linux IV-E.1, Figs. 3 and 4",
    limits: "deadlines up to the period; servers of groups are in the mandatory band",
    order: &[Attribute::Priority],
    priority: |u| band::high(u.period),
    wakeup_rule: false,
    make,
};

struct Imprecise;

fn make(_: &'static PolicyEntry, _: &Setup<'_>) -> Result<Box<dyn Allocator>, Diagnostic> {
    Ok(Box::new(Imprecise))
}

fn part(m: &TaskParams, r: &Release, budget: u64, priority: i64) -> Part {
    Part { start: r.at, finish: r.at.saturating_add(m.deadline), budget, priority }
}

impl Allocator for Imprecise {
    fn order(&self) -> &[Attribute] {
        POLICY.order
    }

    fn first(&mut self, m: &TaskParams, r: &Release) -> Part {
        let mandatory = m.mandatory.unwrap_or(r.left).min(r.left);
        part(m, r, mandatory, band::high(m.period))
    }

    fn next(&mut self, m: &TaskParams, r: &Release, end: End) -> Option<Part> {
        let optional = m.mandatory.is_some_and(|mandatory| mandatory < m.budget);
        (r.part == 1 && end == End::Exhausted && optional)
            .then(|| part(m, r, r.left, band::low(m.period)))
    }
}
