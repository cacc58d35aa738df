//! Mutexes and their handles. A slot keeps its mutex: a call with a handle that went bad meanwhile
//! finds a mutex in any case, and sees afterwards that it is another one's. So locking costs two
//! loads beside the mutex itself.
//!
//! - Locking looks at the slot's state again once it has the mutex.
//! - Destroying marks the state, and then looks whether the mutex is free.
//!
//! All of these are sequentially consistent: one of both sees the other.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

use punctual::raw::{LendingMutex, LockCeiling, ThreadTask};
use punctual::LockError;

use crate::error::{failed, CallError};
use crate::handle::{bad_handle, handle_of_slot, slot_of_handle, HandleKind, GENERATIONS, SLOTS};
use crate::lock_error::{lock_refused, owner_dead};
use crate::shared_table::{no_room, still_in_use};

/// `struct punctual_mutex`.
pub enum HandleOfMutex {}

/// What a slot's state has beside its generation.
const FREE: u64 = 0;
const OPEN: u64 = 1;
/// A thread makes or destroys it.
const BUSY: u64 = 2;
const STATES: u64 = 4;

#[repr(align(64))]
struct MutexSlot {
    /// The generation times [`STATES`], and the state.
    state: AtomicU64,
    mutex: LendingMutex,
}

static SLOTS_OF_MUTEXES: [MutexSlot; SLOTS] =
    [const { MutexSlot { state: AtomicU64::new(FREE), mutex: LendingMutex::new() } }; SLOTS];

/// The mutex of a handle that was good when it was looked up.
#[derive(Clone, Copy)]
pub struct FoundMutex {
    slot: &'static MutexSlot,
    open: u64,
}

/// A handle of a new mutex, with this ceiling.
///
/// # Errors
/// ENOSPC.
pub fn add(ceiling: Option<LockCeiling>) -> Result<*mut HandleOfMutex, CallError> {
    for (number, slot) in SLOTS_OF_MUTEXES.iter().enumerate() {
        let free = slot.state.load(SeqCst);
        let busy = free - FREE + BUSY;
        if free % STATES == FREE && slot.state.compare_exchange(free, busy, SeqCst, SeqCst).is_ok()
        {
            slot.mutex.renew(ceiling);
            slot.state.store(free - FREE + OPEN, SeqCst);
            return Ok(handle_of_slot(HandleKind::Mutex, free / STATES, number));
        }
    }
    Err(no_room())
}

/// The mutex of a handle. Real-time safe.
///
/// # Errors
/// EBADF.
#[inline]
pub fn find(handle: *mut HandleOfMutex) -> Result<FoundMutex, CallError> {
    let (generation, number) = slot_of_handle(HandleKind::Mutex, handle)?;
    let found = FoundMutex { slot: &SLOTS_OF_MUTEXES[number], open: generation * STATES + OPEN };
    let state = found.slot.state.load(SeqCst);
    // It is not gone before its destruction has found it free.
    if state != found.open && state != found.open - OPEN + BUSY {
        return Err(bad_handle());
    }
    Ok(found)
}

/// Destroys the mutex of a handle.
///
/// # Errors
/// EBADF; EBUSY.
pub fn remove(handle: *mut HandleOfMutex) -> Result<(), CallError> {
    let FoundMutex { slot, open } = find(handle)?;
    let busy = open - OPEN + BUSY;
    match slot.state.compare_exchange(open, busy, SeqCst, SeqCst) {
        Ok(_) => {}
        Err(state) if state == busy => return Err(still_in_use()),
        Err(_) => return Err(bad_handle()),
    }
    if !slot.mutex.is_free() {
        slot.state.store(open, SeqCst);
        return Err(still_in_use());
    }
    slot.state.store((open - OPEN + STATES) % (GENERATIONS * STATES) + FREE, SeqCst);
    Ok(())
}

impl FoundMutex {
    pub fn mutex(&self) -> &'static LendingMutex {
        &self.slot.mutex
    }

    /// What a task gets that has locked it, `consistent` or not; it holds it then, unless the
    /// handle went bad meanwhile.
    ///
    /// # Errors
    /// EOWNERDEAD; of locking; EBADF, EBUSY: another thread has destroyed it, or is about to.
    #[inline]
    pub fn locked(
        self,
        task: &ThreadTask,
        consistent: Result<bool, LockError>,
    ) -> Result<(), CallError> {
        let consistent = consistent.map_err(lock_refused)?;
        if self.slot.state.load(SeqCst) != self.open {
            return Err(self.undo(task));
        }
        match consistent {
            true => Ok(()),
            false => Err(owner_dead()),
        }
    }

    #[cold]
    fn undo(self, task: &ThreadTask) -> CallError {
        self.slot.mutex.try_unlock(task);
        match self.slot.state.load(SeqCst) / STATES == self.open / STATES {
            true => failed(libc::EBUSY, c"another thread is about to destroy the mutex"),
            false => bad_handle(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_good_until_its_mutex_is_destroyed_though_the_slot_is_used_again() {
        let number = |result: Result<FoundMutex, CallError>| result.err().map(|e| e.0);
        let first = add(None).expect("there is room");
        find(first).expect("it is there").mutex().poison();
        assert_eq!(remove(first).ok(), Some(()));
        let second = add(None).expect("there is room");
        assert!(!find(second).expect("it is there").mutex().is_poisoned());
        for bad in crate::handle::bad_handles(first, second) {
            assert_eq!(number(find(bad)), Some(-libc::EBADF), "{bad:?}");
            assert_eq!(remove(bad).err().map(|e| e.0), Some(-libc::EBADF), "{bad:?}");
        }
        // One that was looked up before, and destroyed then.
        let found = find(second).expect("it is there");
        assert_eq!(remove(second).ok(), Some(()));
        assert_ne!(found.slot.state.load(SeqCst), found.open);
    }

    #[test]
    fn a_mutex_that_another_thread_is_about_to_destroy_is_neither_destroyed_nor_lost() {
        let handle = add(None).expect("there is room");
        let FoundMutex { slot, open } = find(handle).expect("it is there");
        slot.state.store(open - OPEN + BUSY, SeqCst);
        assert_eq!(remove(handle).err().map(|e| e.0), Some(-libc::EBUSY));
        // Its holder can unlock it still.
        assert!(find(handle).is_ok());
        slot.state.store(open, SeqCst);
        assert_eq!(remove(handle).ok(), Some(()));
    }
}
