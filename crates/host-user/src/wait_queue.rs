//! A queue in which tasks wait for tokens: what condition variables and semaphores are made of.
//! Tasks at a barrier wait for the end of a phase in it.
//!
//! Any thread puts tokens. A task that finds none asks its dispatcher, which blocks it, and at each
//! event gives tokens to those that wait, the one that selection prefers first. Who puts a token
//! where tasks wait wakes their dispatchers: a dispatcher counts a waiter before it looks for a
//! token, and a token is there before waiters are looked for, so that none is overlooked.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use crate::doorbell::ring;
use crate::mutex::{LendingMutex, LockError};
use crate::task::ThreadTask;
use crate::task_control::TaskControl;

/// Why a task waits no longer, without what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WaitError {
    /// The time has come.
    TimedOut,
    /// The run is over, or the task was asked to end.
    Over,
    /// Of the mutex.
    Lock(LockError),
}

impl fmt::Display for WaitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("timed out"),
            Self::Over => f.write_str("the run is over"),
            Self::Lock(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for WaitError {}

impl From<LockError> for WaitError {
    fn from(e: LockError) -> WaitError {
        WaitError::Lock(e)
    }
}

/// How a wait that gives up a mutex ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    /// The task holds the mutex again.
    Locked {
        /// It is not poisoned.
        consistent: bool,
        /// The time has come.
        timed_out: bool,
    },
    /// The task did not wait, and holds the mutex still.
    NotBegun(WaitError),
    /// The task does not hold the mutex.
    Unlocked(WaitError),
}

/// A queue in which tasks wait for tokens, or all for the end of a phase.
#[derive(Debug)]
pub struct WaitQueue {
    /// Tokens, or the phase, in the lower half; tasks that wait; and of a condition variable's
    /// their doorbell.
    state: AtomicU64,
    /// A bit for each dispatcher that had a task in it.
    rings: AtomicU64,
}

const WAITER: u64 = 1 << 32;
const DOORBELL: u32 = 48;

fn tokens(state: u64) -> u32 {
    state as u32
}

/// Whether the queue has ended this phase. Phases wrap around; no task waits for half of them.
fn has_ended(state: u64, phase: u32) -> bool {
    tokens(state).wrapping_sub(phase) as i32 > 0
}

fn waiters(state: u64) -> u32 {
    u32::from((state >> 32) as u16)
}

/// Of a queue with this state, the phase that follows.
fn next_phase(state: u64) -> u64 {
    tokens(state).wrapping_add(1).into()
}

/// A task's entry, by its dispatcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joined {
    Waits,
    /// No task waited, and there was a token.
    Token,
    /// Others have tokens first.
    TokensLeft,
    /// Tasks of another dispatcher are in it.
    OtherCpu,
}

impl WaitQueue {
    /// One with so many tokens.
    #[must_use]
    pub const fn new(tokens: u32) -> Self {
        Self { state: AtomicU64::new(tokens as u64), rings: AtomicU64::new(0) }
    }

    /// Takes a token, unless there is none or tasks wait for it. Any thread may; wait-free but for
    /// others that do so.
    #[inline]
    pub fn try_take(&self) -> bool {
        let free = |state| (tokens(state) > 0 && waiters(state) == 0).then(|| state - 1);
        self.state.fetch_update(SeqCst, SeqCst, free).is_ok()
    }

    /// Puts `count` tokens, if there are no more than `most` then; whether it did. Any thread may.
    #[inline]
    pub fn put(&self, count: u32, most: u32) -> bool {
        let room = |state| {
            let sum = tokens(state).checked_add(count).filter(|&sum| sum <= most);
            sum.map(|_| state + u64::from(count))
        };
        let put = self.state.fetch_update(SeqCst, SeqCst, room);
        put.inspect(|&state| self.wake(state)).is_ok()
    }

    /// Puts tokens for `count` of the tasks that wait now, or for all. Any thread may.
    pub fn put_for_waiters(&self, count: u32) {
        let put = self.state.fetch_update(SeqCst, SeqCst, |state| {
            let missing = waiters(state) - tokens(state).min(waiters(state));
            (missing > 0).then(|| state + u64::from(missing.min(count)))
        });
        if let Ok(state) = put {
            self.wake(state);
        }
    }

    #[inline]
    fn wake(&self, state: u64) {
        if waiters(state) > 0 {
            ring(self.rings.load(SeqCst));
        }
    }

    /// Waits for a token, until `until` (CLOCK_MONOTONIC ns; `u64::MAX`: for ever). Real-time safe.
    ///
    /// # Errors
    /// No token came in time, or the run is over.
    pub fn wait(&self, task: &ThreadTask, until: u64) -> Result<(), WaitError> {
        match task.control().await_token(self, None, until) {
            Waited::Locked { timed_out: false, .. } => Ok(()),
            Waited::Locked { .. } => Err(WaitError::TimedOut),
            Waited::NotBegun(e) | Waited::Unlocked(e) => Err(e),
        }
    }

    /// Ends a phase for all that wait for its end; the first one is 0. A queue has phases or
    /// tokens. Any thread may.
    pub fn end_phase(&self) {
        let next = |state: u64| Some(state - u64::from(tokens(state)) + next_phase(state));
        let ended = self.state.fetch_update(SeqCst, SeqCst, next);
        self.wake(ended.unwrap_or_else(|state| state));
    }

    /// Waits for the end of this phase, until `until` (CLOCK_MONOTONIC ns; `u64::MAX`: for ever).
    /// Real-time safe.
    ///
    /// # Errors
    /// It did not end in time, or the run is over.
    pub fn wait_phase(&self, task: &ThreadTask, phase: u32, until: u64) -> Result<(), WaitError> {
        match task.control().await_phase(self, phase, until) {
            Waited::Locked { .. } => Ok(()),
            Waited::NotBegun(e) | Waited::Unlocked(e) => Err(e),
        }
    }

    /// Unlocks the mutex and waits for a token that is put from then on, until `until`; then locks
    /// the mutex, and lends for that as any task. Real-time safe.
    ///
    /// # Safety
    /// The calling task has locked the mutex.
    pub unsafe fn wait_unlocked(
        &self,
        mutex: &LendingMutex,
        task: &ThreadTask,
        until: u64,
    ) -> Waited {
        let waited = task.control().await_token(self, Some(mutex), until);
        mutex.waited(task, &waited);
        waited
    }

    // The dispatcher's side.

    /// A task waits from now on, or has a token at once. With `alone`, for a condition variable,
    /// only among tasks of its own dispatcher, and only for tokens that are put from now on.
    pub fn join(&self, control: &TaskControl, alone: bool) -> Joined {
        self.rings.fetch_or(control.doorbell.ring_bit(), SeqCst);
        let mine = u64::from(control.doorbell.id() as u16) << DOORBELL;
        let mut joined = Joined::Waits;
        let _ = self.state.fetch_update(SeqCst, SeqCst, |state| {
            let of = state >> DOORBELL << DOORBELL;
            joined = match (waiters(state), tokens(state)) {
                (1.., _) if alone && of != mine => Joined::OtherCpu,
                (_, 1..) if alone => Joined::TokensLeft,
                (0, 1..) => Joined::Token,
                _ => Joined::Waits,
            };
            match joined {
                Joined::Waits if alone => Some(state - of + mine + WAITER),
                Joined::Waits => Some(state + WAITER),
                Joined::Token => Some(state - 1),
                _ => None,
            }
        });
        joined
    }

    /// A task waits from now on for the end of this phase, if that has not come.
    pub fn join_phase(&self, control: &TaskControl, phase: u32) -> Joined {
        self.rings.fetch_or(control.doorbell.ring_bit(), SeqCst);
        let joined = self.state.fetch_update(SeqCst, SeqCst, |state| {
            (!has_ended(state, phase)).then(|| state + WAITER)
        });
        joined.map_or(Joined::Token, |_| Joined::Waits)
    }

    /// A task that waited for the end of this phase waits no longer, if that has come.
    pub fn leave_phase(&self, phase: u32) -> bool {
        let left = |state| has_ended(state, phase).then(|| state - WAITER);
        self.state.fetch_update(SeqCst, SeqCst, left).is_ok()
    }

    /// Takes a token for one of the tasks that wait.
    pub fn take_for_waiter(&self) -> bool {
        let taken = |state| (tokens(state) > 0).then(|| state - 1 - WAITER);
        self.state.fetch_update(SeqCst, SeqCst, taken).is_ok()
    }

    /// A task waits no longer, and has no token. `alone`: as it joined.
    pub fn leave(&self, alone: bool) {
        let _ = self.state.fetch_update(SeqCst, SeqCst, |state| {
            let left = state - WAITER;
            let surplus = tokens(left).saturating_sub(waiters(left));
            Some(if alone { left - u64::from(surplus) } else { left })
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::Doorbell;
    use crate::holder::HolderName;
    use std::sync::Arc;

    fn task() -> TaskControl {
        let doorbell = Arc::new(Doorbell::new());
        let name = HolderName::claim(doorbell.id()).expect("there is room");
        TaskControl::new(doorbell, name)
    }

    #[test]
    fn a_semaphore_s_tokens_go_to_those_that_wait_and_no_further_than_its_maximum() {
        let queue = WaitQueue::new(1);
        let task = task();
        assert!(!queue.put(1, 1) && queue.try_take() && !queue.try_take());
        assert_eq!(queue.join(&task, false), Joined::Waits);
        assert!(!queue.take_for_waiter());
        assert!(queue.put(1, 1));
        assert!(!queue.try_take(), "a task waits for it");
        assert!(queue.take_for_waiter() && !queue.take_for_waiter());
        assert!(queue.put(2, 2));
        assert_eq!(queue.join(&task, false), Joined::Token);
        assert!(queue.try_take() && !queue.try_take());
    }

    #[test]
    fn the_end_of_a_phase_is_for_all_that_wait_for_it_and_for_none_of_the_next_one() {
        let queue = WaitQueue::new(u32::MAX);
        let task = task();
        assert_eq!(queue.join_phase(&task, u32::MAX), Joined::Waits);
        assert_eq!(queue.join_phase(&task, 0), Joined::Waits, "it has begun elsewhere");
        assert!(!queue.leave_phase(u32::MAX));
        queue.end_phase();
        assert!(!queue.leave_phase(0) && queue.leave_phase(u32::MAX));
        assert_eq!(queue.join_phase(&task, u32::MAX), Joined::Token);
        queue.end_phase();
        assert!(queue.leave_phase(0));
        assert_eq!(waiters(queue.state.load(SeqCst)), 0);
    }

    #[test]
    fn a_condition_variable_s_tokens_are_for_those_that_waited_already() {
        let queue = WaitQueue::new(0);
        let (task, other) = (task(), task());
        queue.put_for_waiters(1);
        assert_eq!(queue.join(&task, true), Joined::Waits);
        assert_eq!(queue.join(&other, true), Joined::OtherCpu);
        assert!(!queue.take_for_waiter(), "it was put before");
        queue.put_for_waiters(u32::MAX);
        assert_eq!(queue.join(&task, true), Joined::TokensLeft);
        queue.leave(true);
        assert_eq!(queue.join(&other, true), Joined::Waits, "the token went with its task");
        assert!(!queue.take_for_waiter());
    }
}
