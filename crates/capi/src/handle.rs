//! Handles: pointers in C that point to nothing. A handle is a number that is never given twice, so
//! that one that is NULL, closed, of another kind or of another origin is found not to be there.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{failed, CallError};
use crate::fork;
use crate::observer;

/// The kind of an object, in the upper byte of its handle. No address has these.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum HandleKind {
    Set = 0x51,
    Task = 0x52,
    Fifo = 0x53,
    Writer = 0x54,
    Reader = 0x55,
    Mutex = 0x56,
    Cond = 0x57,
    Sem = 0x58,
    Barrier = 0x59,
    Jobs = 0x5a,
    JobEvents = 0x5b,
    SharedMutex = 0x5c,
    SharedCond = 0x5d,
    SharedSem = 0x5e,
    SharedBarrier = 0x5f,
}

/// Objects of a kind that are kept in an array, for calls that real-time tasks make: as many as
/// open files by default, of which each end of a FIFO has one.
pub const SLOTS: usize = 1024;
/// The parts of their handles: kind, 8 bits; generation of the slot, 46; slot, 10.
pub const GENERATIONS: u64 = 1 << 46;

/// The handle of a slot in this generation.
pub fn handle_of_slot<H>(kind: HandleKind, generation: u64, slot: usize) -> *mut H {
    ((kind as u64) << 56 | (generation % GENERATIONS) << 10 | slot as u64) as *mut H
}

/// The generation and the slot of a handle. Real-time safe.
///
/// # Errors
/// EBADF: it is of another kind, or this is the child of a fork.
#[inline]
pub fn slot_of_handle<H>(kind: HandleKind, handle: *mut H) -> Result<(u64, usize), CallError> {
    let handle = handle as u64;
    if handle >> 56 != kind as u64 || fork::is_child() {
        return Err(bad_handle());
    }
    Ok(((handle >> 10) % GENERATIONS, handle as usize % SLOTS))
}

/// The objects of one kind, with handles `*mut H`, for calls that may wait. Objects live until the
/// last call that uses them returns.
pub struct Table<T, H> {
    kind: HandleKind,
    next: AtomicU64,
    objects: Mutex<BTreeMap<u64, Arc<T>>>,
    handles: PhantomData<fn(*mut H)>,
}

impl<T, H> Table<T, H> {
    pub const fn new(kind: HandleKind) -> Table<T, H> {
        Table {
            kind,
            next: AtomicU64::new(1),
            objects: Mutex::new(BTreeMap::new()),
            handles: PhantomData,
        }
    }

    fn objects(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<T>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn may_be_used(&self) -> Result<(), CallError> {
        // A lock that another thread held at the fork would never be released.
        if fork::is_child() {
            return Err(bad_handle());
        }
        match self.kind {
            HandleKind::Set | HandleKind::Task if observer::is_called() => {
                Err(failed(libc::EDEADLK, c"the set waits for its observer, which must return"))
            }
            _ => Ok(()),
        }
    }

    /// A handle for it.
    pub fn add(&self, object: Arc<T>) -> *mut H {
        let number = self.next.fetch_add(1, Relaxed) | (self.kind as u64) << 56;
        self.objects().insert(number, object);
        number as *mut H
    }

    /// The object of a handle.
    ///
    /// # Errors
    /// EBADF; EDEADLK in an observer.
    pub fn get(&self, handle: *mut H) -> Result<Arc<T>, CallError> {
        self.may_be_used()?;
        self.objects().get(&(handle as u64)).cloned().ok_or_else(bad_handle)
    }

    /// The object of a handle that is not one any more.
    ///
    /// # Errors
    /// EBADF.
    pub fn remove(&self, handle: *mut H) -> Result<Arc<T>, CallError> {
        self.may_be_used()?;
        self.objects().remove(&(handle as u64)).ok_or_else(bad_handle)
    }
}

/// Real-time safe.
#[cold]
pub fn bad_handle() -> CallError {
    failed(libc::EBADF, c"no open handle of this kind; NULL, closed, or of another origin")
}

/// Bad handles of a table of slots: one that was removed, whose slot is that of `good` now; and of
/// other origins.
#[cfg(test)]
pub fn bad_handles<H>(removed: *mut H, good: *mut H) -> [*mut H; 5] {
    let other_kind = (good as u64 ^ 1 << 56) as *mut H;
    let beyond = (good as u64 + 1) as *mut H;
    [removed, std::ptr::null_mut(), std::ptr::dangling_mut(), other_kind, beyond]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_good_until_it_is_removed_and_for_its_own_table() {
        let (sets, tasks) =
            (Table::<u8, u8>::new(HandleKind::Set), Table::<u8, u8>::new(HandleKind::Task));
        let handle = sets.add(Arc::new(7));
        assert_eq!(sets.get(handle).map(|object| *object).ok(), Some(7));
        for bad in [std::ptr::null_mut(), std::ptr::dangling_mut(), tasks.add(Arc::new(8))] {
            assert_eq!(sets.get(bad).err().map(|e| e.0), Some(-libc::EBADF));
        }
        assert_eq!(sets.remove(handle).map(|object| *object).ok(), Some(7));
        assert!(sets.get(handle).is_err() && sets.remove(handle).is_err());
        assert_ne!(sets.add(Arc::new(9)), handle, "no number is given twice");
    }
}
