//! The ceilings of locks, by the policy of the task that holds one.
//!
//! A lock's ceiling is the best value of the tasks that lock it: their shortest relative deadline,
//! or their largest priority. The policy decides by which of both a group is ordered, and how it
//! becomes the value of a job; a task whose policy gives its jobs other values in the course of a
//! release has no ceiling.

use punctual_dispatcher::{Attribute, TaskCeiling, TaskId};

use crate::allocators::Allocators;
use crate::entry::Urgency;

/// The best value of the tasks that lock a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockCeiling {
    /// The shortest relative deadline, ns; where periods decide (`rm`), the shortest period.
    Deadline(u64),
    /// The largest priority.
    Priority(i64),
}

/// How the value of a job follows from the parameters of its task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OrderedBy {
    Finish,
    Deadline,
    Period,
    Priority,
}

fn ordered_by(order: &[Attribute], priority: fn(&Urgency) -> i64) -> Option<OrderedBy> {
    let base = Urgency { period: 2, deadline: 2, priority: 0 };
    let decides = |other: Urgency| priority(&base) != priority(&other);
    match order.first()? {
        Attribute::Finish => Some(OrderedBy::Finish),
        Attribute::Priority if decides(Urgency { deadline: 1, ..base }) => {
            Some(OrderedBy::Deadline)
        }
        Attribute::Priority if decides(Urgency { period: 1, ..base }) => Some(OrderedBy::Period),
        Attribute::Priority if decides(Urgency { priority: 1, ..base }) => {
            Some(OrderedBy::Priority)
        }
        _ => None,
    }
}

impl Allocators {
    fn ordered_by(&self, s: usize) -> Option<OrderedBy> {
        let slot = &self.slots[s];
        // Another one than a standard periodic policy has jobs of several values in a release.
        self.at_work[slot.next_by as usize].policy.reservation(&slot.member)?;
        let entry = self.entry_of_group(s);
        ordered_by(entry.order, entry.priority)
    }

    /// The ceiling of a task that locked such a lock after `since`, ns; `None`: its policy has none
    /// of this kind.
    pub fn task_ceiling(
        &self,
        task: TaskId,
        ceiling: LockCeiling,
        since: u64,
    ) -> Option<TaskCeiling> {
        let s = self.slot_of(task)?;
        let priority = self.entry_of_group(s).priority;
        match (self.ordered_by(s)?, ceiling) {
            (OrderedBy::Finish, LockCeiling::Deadline(ns)) => {
                Some(TaskCeiling::Finish(since.saturating_add(ns)))
            }
            (OrderedBy::Deadline | OrderedBy::Period, LockCeiling::Deadline(ns)) => {
                let of_ns = Urgency { period: ns, deadline: ns, priority: 0 };
                Some(TaskCeiling::Priority(priority(&of_ns)))
            }
            (OrderedBy::Priority, LockCeiling::Priority(value)) => {
                let of_value = Urgency { period: 2, deadline: 2, priority: value };
                Some(TaskCeiling::Priority(priority(&of_value)))
            }
            _ => None,
        }
    }

    /// The task's own value, which is the lowest ceiling of a lock that it may lock; `None`: its
    /// policy has no ceilings.
    pub fn own_ceiling(&self, task: TaskId) -> Option<LockCeiling> {
        let s = self.slot_of(task)?;
        let member = &self.slots[s].member;
        Some(match self.ordered_by(s)? {
            OrderedBy::Finish | OrderedBy::Deadline => LockCeiling::Deadline(member.deadline),
            OrderedBy::Period => LockCeiling::Deadline(member.period),
            OrderedBy::Priority => LockCeiling::Priority(member.priority),
        })
    }
}
