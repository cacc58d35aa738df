//! How the thread of a task waits: it begins its wait in one transaction, sleeps, and learns in
//! another one how the wait ended.

use std::sync::atomic::Ordering;

use punctual_sys::{clock, futex};

use crate::arena::queue::{WaitOutcome, DELAYED, READY};
use crate::arena::{Arena, TaskIndex, TaskSlot, Transaction};
use crate::hard;

/// How long a thread relies on being woken, ns: a program may be killed just before it wakes it.
const LOOK_AGAIN: u64 = 1_000_000_000;

/// What the beginning of an operation came to.
#[derive(Debug)]
pub enum Begun<T> {
    /// The operation is over, with this result.
    Done(T),
    /// The task waits.
    Waits,
}

/// CLOCK_MONOTONIC ns, as RTAI's time.
pub fn now() -> i64 {
    clock::monotonic_ns() as i64
}

/// Does what may have the calling thread's `task` wait: `begin`, and `end` once it is ready again.
/// Real-time safe but for the wait.
pub fn wait<T>(
    arena: &Arena,
    task: TaskIndex,
    begin: impl FnOnce(&mut Transaction<'_>) -> Begun<T>,
    end: impl FnOnce(&mut Transaction<'_>, WaitOutcome) -> T,
) -> T {
    let slot = arena.task(task);
    let begun = arena.transact(|transaction| {
        let begun = begin(transaction);
        (begun, slot.wake.load(Ordering::Acquire))
    });
    match begun {
        (Begun::Done(result), _) => result,
        (Begun::Waits, seen) => sleep(arena, task, seen, end),
    }
}

/// Waits until the calling thread's `task`, which another one suspended, or made periodic, may
/// execute. Real-time safe but for the wait.
pub fn pass(arena: &Arena, task: TaskIndex) {
    let slot = arena.task(task);
    let seen = slot.wake.load(Ordering::Acquire);
    if slot.state.get() != READY {
        sleep(arena, task, seen, |_, _| ());
    }
}

/// Sleeps until the task is ready; `seen` counts what woke it before its wait began.
fn sleep<T>(
    arena: &Arena,
    task: TaskIndex,
    mut seen: u32,
    end: impl FnOnce(&mut Transaction<'_>, WaitOutcome) -> T,
) -> T {
    let slot = arena.task(task);
    let mut end = Some(end);
    loop {
        let now = clock::monotonic_ns();
        let look_again = now.saturating_add(LOOK_AGAIN);
        let until = expiry(slot).unwrap_or(u64::MAX).min(look_again);
        let is_interrupted = futex::wait_shared_interrupted(&slot.wake, seen, until);
        // A task of Punctual is parked by a signal, which is no event of its program.
        let is_signalled = is_interrupted && !hard::is_attached();
        let ended = arena.transact(|transaction| {
            if expiry(slot).is_some_and(|expiry| expiry <= clock::monotonic_ns()) {
                transaction.expire(task);
            }
            if is_signalled {
                transaction.unblock(task, !READY);
            }
            seen = slot.wake.load(Ordering::Acquire);
            let is_ready = slot.state.get() == READY;
            let end = is_ready.then(|| end.take()).flatten()?;
            let outcome = transaction.outcome(task);
            Some(end(transaction, outcome))
        });
        if let Some(result) = ended {
            return result;
        }
        if clock::monotonic_ns() >= look_again {
            arena.reap_sometimes();
        }
    }
}

/// When the wait of a task ends in any case, CLOCK_MONOTONIC ns.
fn expiry(slot: &TaskSlot) -> Option<u64> {
    let is_delayed = slot.state.get() & DELAYED != 0;
    is_delayed.then(|| slot.resume_time.signed().max(0) as u64)
}
