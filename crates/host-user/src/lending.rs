//! Mutexes, as the engine sees them: which task waits for which, and lends to its holder meanwhile.

use std::sync::Arc;

use punctual_dispatcher::{Dispatcher, JobId, TaskId};

use crate::engine::Engine;
use crate::holder::Holder;
use crate::member::{Member, MemberKind, RunMode};
use crate::mutex::LendingMutex;
use crate::task_control::{Answer, TaskControl};

/// Runner-ups among which the best waiter is looked for.
const RANKS: u32 = 16;

/// A task that waits for a mutex.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiter {
    slot: u32,
    mutex: MutexAddress,
    /// CLOCK_MONOTONIC ns.
    pub(crate) until: u64,
}

/// The task that waits borrows the mutex until it has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MutexAddress(*const LendingMutex);

// SAFETY: a mutex is `Sync`, and lives as long as a task waits for it or asks to unlock it.
unsafe impl Send for MutexAddress {}

impl MutexAddress {
    fn get(&self) -> &LendingMutex {
        // SAFETY: as above; a task of this engine waits for it, or asks to unlock it.
        unsafe { &*self.0 }
    }
}

impl Engine {
    /// The task of this slot requests the mutex that it names, and waits for it until `until`; its
    /// thread is in the gate.
    pub(crate) fn lock(&mut self, i: u32, until: u64, now: u64) {
        let Some((m, control)) = thread_of(&mut self.members, i) else { return };
        let mutex = MutexAddress(control.mutex());
        let holder = match mutex.get().wait(&control) {
            Ok(Holder::Task { slot, .. }) => slot,
            Ok(Holder::Free | Holder::Ended) => return answer(m, &control, Answer::Granted),
            Err(_) => return answer(m, &control, Answer::OnOtherCpu),
        };
        let task = m.task;
        let lives = |m: &&Member| mutex.get().is_held_by(m.control());
        let holder = self.members.get(holder as usize).and_then(Option::as_deref);
        let holder = holder.filter(lives).map(|m| m.task);
        let lent = holder.map(|holder| self.dispatcher.lend(task, Some(holder), now));
        let Some((m, control)) = thread_of(&mut self.members, i) else { return };
        match lent {
            // It ended just now, and its thread not yet.
            None => {
                mutex.get().poison();
                mutex.get().give(&control, self.waiters.iter().any(|w| w.mutex == mutex));
                answer(m, &control, Answer::Granted);
            }
            Some(Err(_)) => answer(m, &control, Answer::Deadlock),
            Some(Ok(())) => {
                if m.run_mode == RunMode::Background {
                    m.park();
                } else {
                    control.close();
                    m.run_mode = RunMode::Parked;
                }
                self.waiters.push(Waiter { slot: i, mutex, until });
            }
        }
    }

    /// The task of this slot releases the mutex that it names.
    pub(crate) fn unlock(&mut self, i: u32, now: u64) {
        let Some((_, control)) = thread_of(&mut self.members, i) else { return };
        let mutex = MutexAddress(control.mutex());
        self.hand_over(mutex, now);
    }

    /// The task of this slot has the mutex for which it waited: its holder handed it over.
    pub(crate) fn handed_over(&mut self, slot: u32, now: u64) {
        let Some(k) = self.waiters.iter().position(|w| w.slot == slot) else { return };
        let mutex = self.waiters.remove(k).mutex;
        self.lend(slot, None, now);
        // Others may have come when the holder was about to hand over: they request it again.
        for _ in 0..self.waiters.iter().filter(|w| w.mutex == mutex).count() {
            let Some(k) = self.waiters.iter().position(|w| w.mutex == mutex) else { break };
            let Waiter { slot: other, until, .. } = self.waiters.remove(k);
            self.lend(other, None, now);
            self.lock(other, until, now);
        }
    }

    /// Ends the waits whose time has come. A mutex that its holder is about to hand over itself is
    /// its waiter's already.
    pub(crate) fn end_timed_locks(&mut self, now: u64) {
        let mut k = 0;
        while let Some(&Waiter { slot, mutex, until }) = self.waiters.get(k) {
            if until > now || self.direct.is_some_and(|direct| direct.waiter == slot) {
                k += 1;
                continue;
            }
            self.waiters.remove(k);
            if !self.waiters.iter().any(|w| w.mutex == mutex) {
                mutex.get().unmark();
            }
            self.lend(slot, None, now);
            if let Some((m, control)) = thread_of(&mut self.members, slot) {
                answer(m, &control, Answer::TimedOut);
            }
        }
    }

    /// When the next of these waits ends. What is past at `now` is about to be handed over.
    pub(crate) fn next_timed_lock(&self, now: u64) -> u64 {
        let pending = self.waiters.iter().map(|waiter| waiter.until).filter(|&until| until > now);
        pending.min().unwrap_or(u64::MAX)
    }

    /// The mutex of the task of slot `holder`, if that of `slot` alone waits for it.
    pub(crate) fn only_waiter(&self, slot: u32, holder: u32) -> Option<*const LendingMutex> {
        let mutex = self.waiters.iter().find(|waiter| waiter.slot == slot)?.mutex;
        let others = self.waiters.iter().any(|w| w.mutex == mutex && w.slot != slot);
        let held = mutex.get().held_by(self.doorbell.id()) == Some(holder);
        (held && !others).then_some(mutex.0)
    }

    /// Gives a mutex to the task that selection prefers among those that wait for it, to which the
    /// others lend from now on.
    fn hand_over(&mut self, mutex: MutexAddress, now: u64) {
        for k in 0..self.waiters.len() {
            if self.waiters[k].mutex == mutex {
                self.lend(self.waiters[k].slot, None, now);
            }
        }
        let Some(next) = self.best_waiter(mutex, now) else {
            mutex.get().free();
            return;
        };
        let slot = self.waiters.remove(next).slot;
        let mut others = false;
        for k in 0..self.waiters.len() {
            if self.waiters[k].mutex == mutex {
                others = true;
                self.lend(self.waiters[k].slot, Some(slot), now);
            }
        }
        let Some((m, control)) = thread_of(&mut self.members, slot) else { return };
        mutex.get().give(&control, others);
        answer(m, &control, Answer::Granted);
    }

    /// The task of this slot ends: what it holds has another holder, and is poisoned.
    pub(crate) fn end_locks(&mut self, i: u32, now: u64) {
        self.waiters.retain(|waiter| waiter.slot != i);
        let doorbell = self.doorbell.id();
        let held = |w: &&Waiter| w.mutex.get().held_by(doorbell) == Some(i);
        while let Some(mutex) = self.waiters.iter().find(held).map(|w| w.mutex) {
            mutex.get().poison();
            self.hand_over(mutex, now);
        }
    }

    /// Its place among the waiters: the first in the order of selection; where none is ready, the
    /// one that has waited longest.
    fn best_waiter(&mut self, mutex: MutexAddress, now: u64) -> Option<usize> {
        let place = |waiters: &[Waiter], task: u32| {
            waiters.iter().position(|w| w.mutex == mutex && w.slot == task)
        };
        let mut job: Option<JobId> = self.dispatcher.select(0, now);
        let mut rank = 0;
        while let Some(owner) = job.and_then(|job| self.dispatcher.owner_of(job)) {
            if let Some(at) = place(&self.waiters, owner.0) {
                return Some(at);
            }
            rank += 1;
            job = (rank < RANKS).then(|| self.dispatcher.runner_up(0, rank)).flatten();
        }
        self.waiters.iter().position(|w| w.mutex == mutex)
    }

    /// The holder of the mutex for which the task of this slot waits.
    pub(crate) fn holder_for(&self, slot: u32) -> Option<u32> {
        let waiter = self.waiters.iter().find(|waiter| waiter.slot == slot)?;
        waiter.mutex.get().held_by(self.doorbell.id())
    }

    pub(crate) fn lend(&mut self, slot: u32, to: Option<u32>, now: u64) {
        let task_of =
            |i: u32| self.members.get(i as usize).and_then(|m| m.as_deref()).map(|m| m.task);
        if let Some(task) = task_of(slot) {
            // A task that waited for this mutex lends to none that waits for it.
            let _ = self.dispatcher.lend(task, to.and_then(task_of), now);
        }
    }
}

/// The other task whose budget pays for what this one executes now; `None`: its own does.
pub(crate) fn paying_lender(dispatcher: &Dispatcher, task: TaskId) -> Option<TaskId> {
    dispatcher.lender_of(task)?;
    let owner = dispatcher.owner_of(dispatcher.job_of_task(task)?)?;
    (owner != task).then_some(owner)
}

/// Answers a request. A parked thread reads the answer when its next job is selected.
pub(crate) fn answer(m: &Member, control: &TaskControl, answer: Answer) {
    control.answer(answer);
    if m.run_mode != RunMode::Parked {
        control.open();
    }
}

pub(crate) fn thread_of(
    members: &mut [Option<Box<Member>>],
    i: u32,
) -> Option<(&mut Member, Arc<TaskControl>)> {
    let m = members.get_mut(i as usize)?.as_deref_mut()?;
    let MemberKind::Thread(control) = &m.kind else { return None };
    let control = control.clone();
    Some((m, control))
}
