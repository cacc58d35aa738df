//! Threads of other programs that wait for a mutex with priority inheritance.
//!
//! The kernel has the owner of such a mutex execute at the level of the thread that waits for it
//! best, without the dispatcher: so the owner, another's task or an ordinary thread, executes at
//! once, also where its own budget is used up. What is left to the dispatcher is who pays. That is
//! the thread that waits: of the time since the last event it is charged all that it and those
//! above it left. Where its budget is used up, it is parked, and its level no longer inherited.
//!
//! Who executed in that time is not asked. The memory of the mutex is its program's, and may name
//! any owner; so idle time and the execution of tasks below count too, whose own budgets pay for
//! their execution as always. A program can only lose by that: without it, a thread with a small
//! budget could wait for one without a budget, which would then keep the tasks below from
//! executing.

use punctual_dispatcher::Dispatcher;
use punctual_process::ObservedWait;

use crate::member::{Member, MemberKind, RunMode};

impl Member {
    /// Charges it `free` ns, in which it and those above it did not execute, if it waits for a
    /// mutex with priority inheritance; whether it does.
    pub fn pays_for_inheritance(
        &mut self,
        dispatcher: &mut Dispatcher,
        free: u64,
        now: u64,
    ) -> bool {
        let MemberKind::AdoptedThread(thread) = &self.kind else { return false };
        if free == 0 || self.run_mode != RunMode::Unparked {
            return false;
        }
        if thread.look() != ObservedWait::Inherits {
            return false;
        }
        if std::mem::take(&mut self.asleep) {
            let _ = dispatcher.task_ready(self.task, now);
        }
        self.ran += free;
        self.ran_at = now;
        self.quiet = false;
        self.periods.executed(free);
        let _ = dispatcher.charge_task(self.task, free, now);
        true
    }
}
