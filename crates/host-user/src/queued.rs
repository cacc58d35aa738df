//! Tasks that wait in queues, as the engine sees them: blocked, as in any self-suspension, until
//! there is a token, the time has come, or they are to end.

use punctual_dispatcher::Dispatcher;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::engine::Engine;
use crate::lending::{answer, paying_lender, thread_of};
use crate::member::{Member, RunMode};
use crate::task_control::Answer;
use crate::wait_queue::{Joined, WaitQueue};

/// A task that waits in a queue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueuedTask {
    slot: u32,
    queue: QueueAddress,
    /// For whose end it waits; `None`: it waits for a token.
    phase: Option<u32>,
    /// CLOCK_MONOTONIC ns.
    pub(crate) until: u64,
    /// It has given up a mutex, which it is to hold again.
    unlocked: bool,
}

/// The task that waits borrows the queue until it has the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QueueAddress(*const WaitQueue);

// SAFETY: a queue is `Sync`, and lives as long as a task waits in it.
unsafe impl Send for QueueAddress {}

impl QueueAddress {
    fn get(&self) -> &WaitQueue {
        // SAFETY: as above; a task of this engine waits in it.
        unsafe { &*self.0 }
    }
}

impl Engine {
    /// The task of this slot waits in the queue that it names, and gives up the mutex that it
    /// names; its thread is in the gate.
    pub(crate) fn enqueue(&mut self, i: u32, now: u64) {
        let Some((_, control)) = thread_of(&mut self.members, i) else { return };
        let queue = QueueAddress(control.queue());
        let unlocked = !control.mutex().is_null();
        let phase = control.phase();
        let joined = loop {
            if let Some(phase) = phase {
                break queue.get().join_phase(&control, phase);
            }
            // Those that wait already have the tokens.
            self.give_tokens(now);
            match queue.get().join(&control, unlocked) {
                Joined::TokensLeft => {}
                joined => break joined,
            }
        };
        let Some((m, _)) = thread_of(&mut self.members, i) else { return };
        match joined {
            Joined::OtherCpu => return answer(m, &control, Answer::OnOtherCpu),
            Joined::Token => return answer(m, &control, Answer::Granted),
            Joined::Waits | Joined::TokensLeft => {}
        }
        if m.run_mode == RunMode::Background {
            m.park();
        } else {
            control.close();
            m.run_mode = RunMode::Parked;
        }
        m.asleep = false;
        let task = m.task;
        self.queued.push(QueuedTask { slot: i, queue, phase, until: control.until(), unlocked });
        if unlocked {
            self.unlock(i, now);
        }
        let _ = self.dispatcher.task_blocked(task, now);
    }

    /// Gives tokens to the tasks that wait for them, and ends waits for phases that have ended, and
    /// those whose time has come.
    pub(crate) fn give_tokens(&mut self, now: u64) {
        let mut k = 0;
        while let Some(&QueuedTask { slot, queue, phase, until, unlocked }) = self.queued.get(k) {
            let over = || {
                let member = self.members.get(slot as usize).and_then(Option::as_deref);
                member.and_then(Member::control).is_none_or(|control| control.over.load(SeqCst))
            };
            if phase.is_some_and(|phase| queue.get().leave_phase(phase)) {
                self.wake(k, Answer::Granted, now);
            } else if phase.is_none() && queue.get().take_for_waiter() {
                let best = self.best_queued(queue, k, now);
                self.wake(best, Answer::Granted, now);
            } else if over() {
                queue.get().leave(unlocked);
                self.wake(k, Answer::Over, now);
            } else if until <= now {
                queue.get().leave(unlocked);
                self.wake(k, Answer::TimedOut, now);
            } else {
                k += 1;
            }
        }
    }

    /// The place of the task that selection would prefer, if all were ready, among those in a
    /// queue, the first of which is at `first`; with what is lent to each.
    fn best_queued(&mut self, queue: QueueAddress, first: usize, now: u64) -> usize {
        let top = self.queued[first].slot;
        // While they lend to one of them, all are blocked as before, and the best job of all is
        // that one's best.
        let mut others = false;
        for k in first + 1..self.queued.len() {
            if self.queued[k].queue == queue {
                others = true;
                self.lend(self.queued[k].slot, Some(top), now);
            }
        }
        if !others {
            return first;
        }
        let member = self.members[top as usize].as_deref();
        let job = member.and_then(|m| self.dispatcher.job_of_task(m.task));
        let mut best = job.and_then(|job| self.dispatcher.owner_of(job)).map(|owner| owner.0);
        for k in first + 1..self.queued.len() {
            if self.queued[k].queue == queue {
                self.lend(self.queued[k].slot, None, now);
            }
        }
        while let Some(slot) = best {
            let at = self.queued.iter().position(|q| q.queue == queue && q.slot == slot);
            if let Some(at) = at {
                return at;
            }
            // The job of a task that lends to it.
            best = self.holder_for(slot);
        }
        first
    }

    /// A task no longer waits.
    fn wake(&mut self, k: usize, how: Answer, now: u64) {
        let QueuedTask { slot, unlocked, .. } = self.queued.remove(k);
        let Engine { dispatcher, members, .. } = self;
        let Some((m, control)) = thread_of(members, slot) else { return };
        let _ = dispatcher.task_ready(m.task, now);
        note_remaining(dispatcher, m, m.charged);
        if unlocked && how != Answer::Over {
            control.set_timed_out(how == Answer::TimedOut);
            self.lock(slot, u64::MAX, now);
        } else {
            answer(m, &control, how);
        }
    }

    /// At the end of the run no task is in a queue.
    pub(crate) fn leave_queues(&mut self) {
        for queued in self.queued.drain(..) {
            queued.queue.get().leave(queued.unlocked);
        }
    }
}

/// The wake-up rule may have cut what is left of the task's budget; its CPU clock was `clock` then.
pub(crate) fn note_remaining(dispatcher: &Dispatcher, m: &Member, clock: u64) {
    let job = dispatcher.job_of_task(m.task);
    let own = job.filter(|_| paying_lender(dispatcher, m.task).is_none());
    if let (Some(control), Some(job)) = (m.control(), own) {
        let left = dispatcher.remaining(job);
        control.exhausted_at.store(clock.saturating_add(left), Relaxed);
    }
}
