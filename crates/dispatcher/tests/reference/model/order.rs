//! The order of a group's members: its attributes one after the other, then arrival; and the
//! ceilings that raise them.

use std::cmp::Ordering;

use punctual_dispatcher::{Attribute, Refusal, TaskCeiling};

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
    /// The ceiling of a job in a group that is ordered by this attribute first, as [`number`].
    fn ceiling(&self, job: &ModelJob, first: Attribute) -> Option<i128> {
        let task = self.task(job.task()?).expect("it has a job");
        match (first, task.ceiling?) {
            (Attribute::Finish, TaskCeiling::Finish(finish)) => Some(finish.into()),
            (Attribute::Priority, TaskCeiling::Priority(priority)) => Some(-i128::from(priority)),
            _ => None,
        }
    }

    /// Where a job stands by the first attribute, and then whether it is not raised.
    fn first_place(&self, job: &ModelJob, first: Attribute) -> (i128, bool) {
        let own = number(job, first);
        match self.ceiling(job, first) {
            Some(ceiling) => (own.min(ceiling), false),
            None => (own, true),
        }
    }

    pub fn raise(&mut self, task: u32, ceiling: Option<TaskCeiling>) -> Result<(), Refusal> {
        self.task(task)?;
        self.task_mut(task).ceiling = ceiling;
        Ok(())
    }

    /// `Less` if `a` is the better member of `group`.
    pub(super) fn compare(&self, group: u32, a: &ModelJob, b: &ModelJob) -> Ordering {
        let order = &self.groups[group as usize].order;
        let first = self.first_place(a, order[0]).cmp(&self.first_place(b, order[0]));
        if first != Ordering::Equal {
            return first;
        }
        for by in &order[1..] {
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
