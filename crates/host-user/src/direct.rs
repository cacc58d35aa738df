//! A mutex that its holder hands over without the dispatcher, which follows at its next event: as
//! soon as a mutex with priority inheritance.
//!
//! At the end of each event the dispatcher looks whether the task that executes does so on the
//! budget of the only task that waits for its mutex, whose thread has the higher level. Then the
//! holder may open that one's gate, which preempts it and continues on its own job, until when the
//! timer is armed already. The dispatcher withdraws that permission first of all at an event, and
//! finds whether it was used. Should the holder execute again before that, it rings.

use std::ptr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicPtr};

use crate::engine::Engine;
use crate::lending::paying_lender;
use crate::member::{Member, RunMode};
use crate::mutex::LendingMutex;
use crate::task_control::TaskControl;

/// What a task shares with its dispatcher of this.
#[derive(Debug, Default)]
pub struct Permission {
    /// The mutex that the task may hand over; null: none.
    mutex: AtomicPtr<LendingMutex>,
    /// To this task.
    to: AtomicPtr<TaskControl>,
    /// It did so, and the dispatcher has not seen it yet.
    used: AtomicBool,
}

/// What became of a permission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Withdrawn {
    Unused,
    /// The task is about to hand over, and will.
    InUse,
    Used,
}

impl Permission {
    /// The task is about to hand over this mutex; to which one.
    pub fn take(&self, mutex: &LendingMutex) -> Option<*const TaskControl> {
        let address = ptr::from_ref(mutex).cast_mut();
        let to = self.to.load(SeqCst);
        let taken = self.mutex.compare_exchange(address, ptr::null_mut(), SeqCst, SeqCst);
        taken.is_ok().then_some(to.cast_const())
    }

    /// The other task has the mutex and may execute.
    pub fn used(&self) {
        self.used.store(true, SeqCst);
    }

    /// That is so, and the dispatcher does not know it.
    pub fn is_used(&self) -> bool {
        self.used.load(SeqCst)
    }

    fn give(&self, mutex: *const LendingMutex, to: &TaskControl) {
        self.to.store(ptr::from_ref(to).cast_mut(), SeqCst);
        self.mutex.store(mutex.cast_mut(), SeqCst);
    }

    fn withdraw(&self) -> Withdrawn {
        if !self.mutex.swap(ptr::null_mut(), SeqCst).is_null() {
            Withdrawn::Unused
        } else if self.used.swap(false, SeqCst) {
            Withdrawn::Used
        } else {
            Withdrawn::InUse
        }
    }
}

/// Between which tasks of an engine there is a permission.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectHandOver {
    holder: u32,
    pub(crate) waiter: u32,
}

impl Engine {
    /// Before execution is charged: withdraws the permission. If it was used, the waiter executed,
    /// and its slot is returned. A holder that is about to use it, and was preempted, still
    /// executes for the waiter.
    pub(crate) fn withdraw_direct(&mut self, now: u64) -> Option<u32> {
        let DirectHandOver { holder, waiter } = self.direct?;
        let control = self.members[holder as usize].as_deref().and_then(Member::control)?;
        let withdrawn = control.permission.withdraw();
        if withdrawn == Withdrawn::InUse {
            return None;
        }
        self.direct = None;
        if withdrawn == Withdrawn::Unused {
            return None;
        }
        let m = self.members[waiter as usize].as_deref_mut()?;
        m.run_mode = RunMode::Unparked;
        m.unwatch();
        m.quiet = false;
        m.ran_at = now;
        if let Some(control) = m.control().filter(|control| control.has_answer()) {
            // It did not execute yet: the holder may have been preempted before it woke it.
            control.open();
        }
        if !std::mem::replace(&mut m.moving, true) {
            // What its clock shows since it was parked is execution of its job.
            self.moving.push(waiter);
        }
        self.cpu.ranked.insert(0, waiter);
        Some(waiter)
    }

    /// Permits the holder that executes now to hand over its mutex.
    pub(crate) fn permit_direct(&mut self) {
        if self.direct.is_some() {
            return;
        }
        let Some(&holder) = self.cpu.ranked.first() else { return };
        let Some(h) = self.members[holder as usize].as_deref() else { return };
        let Some(owner) = paying_lender(&self.dispatcher, h.task) else { return };
        let Some(mutex) = self.only_waiter(owner.0, holder) else { return };
        let Some(w) = self.members[owner.0 as usize].as_deref() else { return };
        let (Some(from), Some(to)) = (h.control(), w.control()) else { return };
        if h.run_mode == RunMode::Unparked && w.at_rest() && w.is_charged() && w.level > h.level {
            from.permission.give(mutex, to);
            self.direct = Some(DirectHandOver { holder, waiter: owner.0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::Doorbell;
    use crate::holder::HolderName;
    use std::sync::Arc;

    #[test]
    fn a_permission_is_for_one_mutex_and_one_time() {
        let doorbell = Arc::new(Doorbell::new());
        let name = HolderName::claim(doorbell.id()).expect("there is room");
        let to = TaskControl::new(doorbell, name);
        let (mutex, other) = (LendingMutex::new(), LendingMutex::new());
        let permission = Permission::default();
        assert_eq!(permission.take(&mutex), None);
        permission.give(&mutex, &to);
        assert_eq!(permission.withdraw(), Withdrawn::Unused);
        assert_eq!(permission.take(&mutex), None);
        permission.give(&mutex, &to);
        assert_eq!(permission.take(&other), None);
        assert_eq!(permission.take(&mutex), Some(ptr::from_ref(&to)));
        assert_eq!(permission.withdraw(), Withdrawn::InUse, "preempted in between");
        permission.used();
        assert!(permission.is_used());
        assert_eq!(permission.withdraw(), Withdrawn::Used);
        assert!(!permission.is_used());
    }
}
