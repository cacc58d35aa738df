//! The thread's side of what a task and its dispatcher share: its gate, and its requests.

use std::ptr;
use std::sync::atomic::Ordering::{Relaxed, Release, SeqCst};

use punctual_sys::{clock, futex};

use super::{Answer, Request, TaskControl, CLOSED, NO_PHASE, OPEN};
use crate::mutex::{LendingMutex, LockError};
use crate::wait_queue::{WaitError, WaitQueue, Waited};

impl TaskControl {
    /// Stands in the gate until it is open. Async-signal-safe.
    ///
    /// `inside` goes down before the gate is looked at again, so that a dispatcher that closes the
    /// gate in between sends its signal.
    pub fn pass(&self) {
        loop {
            while self.gate.load(SeqCst) == CLOSED {
                self.inside.store(1, SeqCst);
                futex::wait(&self.gate, CLOSED, u64::MAX);
            }
            self.inside.store(0, SeqCst);
            if self.gate.load(SeqCst) == OPEN {
                break;
            }
        }
        if self.stamp.load(Relaxed) == 1 {
            self.stamp.store(0, Relaxed);
            self.started.store(clock::monotonic_ns(), Release);
        }
    }

    /// `wait_period`: tells the dispatcher and stands in the gate until the next release, or goes
    /// on at once when this wait was a delayed one.
    pub fn wait_period(&self) {
        if self.over.load(Relaxed) {
            return;
        }
        self.done.store(clock::monotonic_ns(), Release);
        self.stand_in_gate(|| {
            self.post(Request::Wait);
            // Afterwards: an event in between takes the request, or takes the permission back.
            let timer = self.doorbell.budget_timer.get();
            if !timer.is_some_and(|timer| timer.move_if_permitted(&self.silent_until)) {
                self.ring_for_answer();
            }
        });
    }

    /// Closes its own gate, sends a request, and stands in the gate until the dispatcher opens it.
    fn stand_in_gate(&self, send: impl FnOnce()) {
        self.inside.store(1, SeqCst);
        self.gate.store(CLOSED, SeqCst);
        send();
        if self.detached.load(SeqCst) {
            self.gate.store(OPEN, SeqCst);
        }
        self.pass();
    }

    /// Waits for a mutex that another task holds, to which the dispatcher lends this one's jobs
    /// meanwhile, until `until`. `None`: the run is over.
    pub fn await_mutex(&self, mutex: &LendingMutex, until: u64) -> Option<Result<(), LockError>> {
        if self.detached.load(SeqCst) {
            return None;
        }
        self.mutex.store(ptr::from_ref(mutex).cast_mut(), SeqCst);
        self.until.store(until, SeqCst);
        match self.await_answer(Request::Lock)? {
            Answer::Deadlock => Some(Err(LockError::Deadlock)),
            Answer::OnOtherCpu => Some(Err(LockError::OtherCpu)),
            Answer::TimedOut => Some(Err(LockError::TimedOut)),
            _ => Some(Ok(())),
        }
    }

    /// Waits for a token, and gives up a mutex meanwhile, if there is one.
    pub fn await_token(
        &self,
        queue: &WaitQueue,
        mutex: Option<&LendingMutex>,
        until: u64,
    ) -> Waited {
        self.phase.store(NO_PHASE, SeqCst);
        self.await_queue(queue, mutex, until)
    }

    /// Waits for the end of a phase.
    pub fn await_phase(&self, queue: &WaitQueue, phase: u32, until: u64) -> Waited {
        self.phase.store(phase.into(), SeqCst);
        self.await_queue(queue, None, until)
    }

    fn await_queue(&self, queue: &WaitQueue, mutex: Option<&LendingMutex>, until: u64) -> Waited {
        if self.detached.load(SeqCst) {
            return Waited::NotBegun(WaitError::Over);
        }
        let mutex_address = mutex.map_or(ptr::null(), ptr::from_ref);
        self.mutex.store(mutex_address.cast_mut(), SeqCst);
        self.queue.store(ptr::from_ref(queue).cast_mut(), SeqCst);
        self.until.store(until, SeqCst);
        self.timed_out.store(false, SeqCst);
        let answer = self.await_answer(Request::Enqueue);
        if self.request.load(SeqCst) != 0 {
            // The dispatcher ended before it saw the request.
            return Waited::NotBegun(WaitError::Over);
        }
        match answer {
            // In the queue, or of the mutex that it was to lock again.
            Some(Answer::OnOtherCpu) => match mutex {
                Some(mutex) if !mutex.is_held_by(Some(self)) => {
                    Waited::Unlocked(LockError::OtherCpu.into())
                }
                _ => Waited::NotBegun(LockError::OtherCpu.into()),
            },
            Some(Answer::Deadlock) => Waited::Unlocked(LockError::Deadlock.into()),
            Some(Answer::TimedOut) => Waited::Unlocked(WaitError::TimedOut),
            Some(Answer::Over) | None => Waited::Unlocked(WaitError::Over),
            Some(Answer::Granted | Answer::Waits) => Waited::Locked {
                consistent: !mutex.is_some_and(LendingMutex::is_poisoned),
                timed_out: self.timed_out.load(SeqCst),
            },
        }
    }

    /// Sends a request, and stands in the gate until it is answered; `None`: the run is over, and
    /// it was not.
    fn await_answer(&self, request: Request) -> Option<Answer> {
        self.answer.store(Answer::Waits as u32, SeqCst);
        self.stand_in_gate(|| {
            self.send_request(request);
        });
        loop {
            match self.answer.swap(Answer::Waits as u32, SeqCst) {
                1 => return Some(Answer::Granted),
                2 => return Some(Answer::Deadlock),
                3 => return Some(Answer::OnOtherCpu),
                4 => return Some(Answer::TimedOut),
                5 => return Some(Answer::Over),
                _ if self.detached.load(SeqCst) => return None,
                // In the background, after an overrun.
                waits => futex::wait(&self.answer, waits, clock::monotonic_ns() + 1_000_000),
            }
        }
    }

    /// Hands over a mutex to the only task that waits for it; false: that is the dispatcher's.
    pub fn hand_over_directly(&self, mutex: &LendingMutex) -> bool {
        let Some(to) = self.permission.take(mutex) else { return false };
        // SAFETY: named by the dispatcher with the mutex, for which it waits until its gate opens.
        let to = unsafe { &*to };
        // The dispatcher may come in between at any point: until `handed_over` it waits for the
        // rest. The other task does so until it has the answer; then it may end, and its gate is
        // an address only.
        let gate = &to.gate;
        gate.store(OPEN, SeqCst);
        mutex.give(to, false);
        to.answer.store(Answer::Granted as u32, SeqCst);
        self.permission.used();
        futex::wake(gate);
        // Preempted until now, unless the other one sleeps: then the dispatcher knows nothing yet.
        if self.permission.is_used() {
            self.doorbell.ring();
        }
        true
    }

    /// Hands over a mutex for which others wait; false: the run is over, and nothing was done.
    pub fn hand_over_mutex(&self, mutex: &LendingMutex) -> bool {
        if self.detached.load(SeqCst) {
            return false;
        }
        self.mutex.store(ptr::from_ref(mutex).cast_mut(), SeqCst);
        self.send_request(Request::Unlock)
    }

    /// Sends a request and waits for its answer; false: the dispatcher ended without one.
    fn send_request(&self, request: Request) -> bool {
        self.post(request);
        self.ring_for_answer()
    }

    /// Puts a request where the dispatcher finds it at its next event.
    fn post(&self, request: Request) {
        self.request.store(request as u32, SeqCst);
        self.doorbell.push(self);
    }

    /// Makes that event now, and waits for the answer; false: the dispatcher ended without one. It
    /// has a higher priority on the same CPU and answers before `ring` returns; the loop is for a
    /// thread that was moved away.
    fn ring_for_answer(&self) -> bool {
        self.doorbell.ring();
        loop {
            let request = self.request.load(SeqCst);
            if request == 0 {
                return true;
            }
            if self.detached.load(SeqCst) {
                // It may have answered last of all.
                return self.request.load(SeqCst) == 0;
            }
            futex::wait(&self.request, request, clock::monotonic_ns() + 1_000_000);
        }
    }

    /// The thread is at its end.
    pub fn exit(&self) {
        if !self.detached.load(Relaxed) {
            self.done.store(clock::monotonic_ns(), Release);
            self.send_request(Request::Exit);
        }
        self.name.end();
    }
}
