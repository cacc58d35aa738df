//! The calling thread, as an owner of mutexes in shared memory.
//!
//! The memory of a mutex may say anything: another process can write there. So what a thread holds
//! is on a list in memory of this process alone, and the number by which the thread is known there
//! is one that no other thread of the process ever has.

use std::cell::Cell;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Once;

use punctual_sys::robust_list::RobustList;
use punctual_sys::sched;

use super::page::Ownership;
use super::SharedLockError;

/// Mutexes that a thread can hold at one time: the kernel looks at 2,048 entries of the robust list
/// of a thread that ends, those of the C library among them.
pub const MOST_HELD: u32 = 256;

/// What is known of a thread.
struct LockingThread {
    /// 0: not known yet.
    id: Cell<u64>,
    tid: Cell<u32>,
    robust: Cell<Option<RobustList>>,
    /// The mutexes that it holds, the latest one first.
    held: Cell<*const Ownership>,
    held_count: Cell<u32>,
}

thread_local! {
    static THREAD: LockingThread = const {
        LockingThread {
            id: Cell::new(0),
            tid: Cell::new(0),
            robust: Cell::new(None),
            held: Cell::new(ptr::null()),
            held_count: Cell::new(0),
        }
    };
}

/// The calling thread.
#[derive(Debug, Clone, Copy)]
pub struct CallingThread {
    /// Of this process, and of no other thread of it before or after.
    pub id: u64,
    /// The kernel's number.
    pub tid: u32,
    pub robust: RobustList,
}

impl CallingThread {
    /// The calling thread. Its first call allocates; others are real-time safe.
    ///
    /// # Errors
    /// [`SharedLockError::NoRobustList`]; [`SharedLockError::Ending`].
    #[inline]
    pub fn current() -> Result<Self, SharedLockError> {
        THREAD.try_with(LockingThread::current).unwrap_or(Err(SharedLockError::Ending))
    }

    /// # Errors
    /// [`SharedLockError::TooMany`].
    #[inline]
    pub fn check_count(self) -> Result<(), SharedLockError> {
        let held = THREAD.try_with(|thread| thread.held_count.get()).unwrap_or(MOST_HELD);
        if held < MOST_HELD {
            Ok(())
        } else {
            Err(SharedLockError::TooMany)
        }
    }

    /// Adds a mutex to those that it holds.
    #[inline]
    pub fn push(self, ownership: &Ownership) {
        let _ = THREAD.try_with(|thread| {
            let next = thread.held.replace(ownership);
            ownership.next.store(next.cast_mut(), Ordering::Relaxed);
            ownership.previous.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: what is on this list is there while it is.
            if let Some(next) = unsafe { next.as_ref() } {
                next.previous.store(ptr::from_ref(ownership).cast_mut(), Ordering::Relaxed);
            }
            thread.held_count.set(thread.held_count.get() + 1);
        });
    }

    /// Removes a mutex from those that it holds.
    #[inline]
    pub fn pop(self, ownership: &Ownership) {
        let _ = THREAD.try_with(|thread| {
            let next = ownership.next.load(Ordering::Relaxed);
            let previous = ownership.previous.load(Ordering::Relaxed);
            // SAFETY: as in `push`.
            match unsafe { previous.as_ref() } {
                Some(previous) => previous.next.store(next, Ordering::Relaxed),
                None => thread.held.set(next),
            }
            // SAFETY: as in `push`.
            if let Some(next) = unsafe { next.as_ref() } {
                next.previous.store(previous, Ordering::Relaxed);
            }
            thread.held_count.set(thread.held_count.get().saturating_sub(1));
        });
    }
}

impl LockingThread {
    #[inline]
    fn current(&self) -> Result<CallingThread, SharedLockError> {
        if self.id.get() == 0 {
            self.look();
        }
        let robust = self.robust.get().ok_or(SharedLockError::NoRobustList)?;
        Ok(CallingThread { id: self.id.get(), tid: self.tid.get(), robust })
    }

    #[cold]
    fn look(&self) {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        static FORKS: Once = Once::new();
        // SAFETY: what the handler does is safe in the child of a fork.
        FORKS.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(forget_parent));
        });
        self.robust.set(RobustList::of_thread());
        self.tid.set(sched::thread_id() as u32);
        self.id.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
}

/// The thread of a child of a fork holds nothing: what its parent holds is its parent's.
extern "C" fn forget_parent() {
    let _ = THREAD.try_with(|thread| {
        thread.id.set(0);
        thread.held.set(ptr::null());
        thread.held_count.set(0);
    });
}

impl Drop for LockingThread {
    /// The thread ends: what it still holds is unlocked, and inconsistent.
    fn drop(&mut self) {
        if self.held.get().is_null() {
            return;
        }
        let Ok(thread) = self.current() else { return };
        while let Some(held) = NonNull::new(self.held.get().cast_mut()) {
            // Not by `pop`, which does not find this thread any more.
            // SAFETY: what a thread holds is there until it is unlocked (`LockPage`).
            let ownership = unsafe { held.as_ref() };
            self.held.set(ownership.next.load(Ordering::Relaxed));
            ownership.abandon(thread);
        }
    }
}
