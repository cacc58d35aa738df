//! The order of a group's members: its attributes one after the other, then arrival.

use std::cmp::Ordering;

use punctual_dispatcher::{Attribute, Refusal};

use super::{Model, ModelJob};

/// Less is better.
fn number(job: &ModelJob, by: Attribute) -> i128 {
    match by {
        Attribute::Start => job.attr.start.into(),
        Attribute::Finish => job.attr.finish.into(),
        Attribute::Budget => job.remaining.into(),
        Attribute::Priority => -i128::from(job.attr.priority),
    }
}

impl ModelJob {
    /// The time of arrival, then the order of adding.
    pub(super) fn arrived(&self) -> (u64, u64) {
        (self.arrival, self.id)
    }
}

impl Model {
    /// `Less` if `a` is the better member of `group`.
    pub(super) fn compare(&self, group: u32, a: &ModelJob, b: &ModelJob) -> Ordering {
        for by in &self.groups[group as usize].order {
            let decided = number(a, *by).cmp(&number(b, *by));
            if decided != Ordering::Equal {
                return decided;
            }
        }
        a.arrived().cmp(&b.arrived())
    }

    pub fn set_order(&mut self, group: u32, by: &[Attribute]) -> Result<(), Refusal> {
        let repeated = by.iter().enumerate().any(|(i, a)| by[..i].contains(a));
        if group >= self.limits.groups {
            return Err(Refusal::Nothing);
        }
        if by.is_empty() || by.len() > 4 || repeated {
            return Err(Refusal::Invalid);
        }
        self.groups[group as usize].order = by.to_vec();
        Ok(())
    }
}
