//! Handles of ends of FIFOs and the like, which real-time tasks look up: an array, whose slots are
//! used again, with a generation each. One atomic instruction finds that a handle is good and takes
//! its end; another thread that has it, or an interrupted call below a signal handler, is found
//! too. Nothing waits.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::error::{failed, CallError};
use crate::handle::{bad_handle, handle_of_slot, slot_of_handle, HandleKind, GENERATIONS, SLOTS};

/// What a slot's state has beside its generation.
const FREE: u64 = 0;
const READY: u64 = 1;
const IN_USE: u64 = 2;
const STATES: u64 = 4;

/// The ends of one kind, with handles `*mut H`.
pub struct EndTable<T, H> {
    kind: HandleKind,
    slots: [EndSlot<T>; SLOTS],
    handles: PhantomData<fn(*mut H)>,
}

#[repr(align(64))]
struct EndSlot<T> {
    /// The generation times [`STATES`], and the state.
    state: AtomicU64,
    /// There is one unless the slot is FREE.
    end: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: the thread alone that made a slot IN_USE has its end.
unsafe impl<T: Send> Sync for EndSlot<T> {}

impl<T> EndSlot<T> {
    const fn new() -> EndSlot<T> {
        EndSlot { state: AtomicU64::new(FREE), end: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}

/// A slot that this thread has; dropping it leaves the end there.
struct Taken<'a, T> {
    slot: &'a EndSlot<T>,
    ready: u64,
}

impl<T> Drop for Taken<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.slot.state.store(self.ready, Release);
    }
}

impl<T, H> EndTable<T, H> {
    pub const fn new(kind: HandleKind) -> EndTable<T, H> {
        let slots = [const { EndSlot::new() }; SLOTS];
        EndTable { kind, slots, handles: PhantomData }
    }

    /// A handle for it.
    ///
    /// # Errors
    /// EMFILE.
    pub fn add(&self, end: T) -> Result<*mut H, CallError> {
        for (number, slot) in self.slots.iter().enumerate() {
            let free = slot.state.load(Relaxed);
            let busy = free - FREE + IN_USE;
            if free % STATES == FREE
                && slot.state.compare_exchange(free, busy, Acquire, Relaxed).is_ok()
            {
                // SAFETY: this thread made it IN_USE.
                unsafe { (*slot.end.get()).write(end) };
                slot.state.store(free - FREE + READY, Release);
                return Ok(handle_of_slot(self.kind, free / STATES, number));
            }
        }
        Err(failed(libc::EMFILE, c"1,024 ends of this kind are open; close some"))
    }

    #[inline]
    fn take(&self, handle: *mut H) -> Result<Taken<'_, T>, CallError> {
        let (generation, number) = slot_of_handle(self.kind, handle)?;
        let slot = &self.slots[number];
        let ready = generation * STATES + READY;
        let busy = ready - READY + IN_USE;
        match slot.state.compare_exchange(ready, busy, Acquire, Relaxed) {
            Ok(_) => Ok(Taken { slot, ready }),
            Err(state) if state == busy => Err(in_use()),
            Err(_) => Err(bad_handle()),
        }
    }

    /// Calls `f` with the end of a handle. Real-time safe.
    ///
    /// # Errors
    /// EBADF; EBUSY: another thread has it.
    #[inline]
    pub fn with<R>(&self, handle: *mut H, f: impl FnOnce(&mut T) -> R) -> Result<R, CallError> {
        let taken = self.take(handle)?;
        // SAFETY: this thread made it IN_USE; it was READY.
        Ok(f(unsafe { (*taken.slot.end.get()).assume_init_mut() }))
    }

    /// The end of a handle that is not one any more.
    ///
    /// # Errors
    /// As of [`with`](EndTable::with).
    pub fn remove(&self, handle: *mut H) -> Result<T, CallError> {
        let mut taken = self.take(handle)?;
        // The next generation.
        taken.ready = (taken.ready - READY + STATES) % (GENERATIONS * STATES) + FREE;
        // SAFETY: as above; it is FREE from here on.
        Ok(unsafe { (*taken.slot.end.get()).assume_init_read() })
    }
}

#[cold]
fn in_use() -> CallError {
    failed(libc::EBUSY, c"another thread uses this end; open an end for each thread")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = EndTable<u32, u8>;

    fn number<R>(result: Result<R, CallError>) -> Option<i32> {
        result.err().map(|e| e.0)
    }

    #[test]
    fn a_handle_is_good_until_it_is_removed_though_its_slot_is_used_again() {
        static TABLE: Numbers = EndTable::new(HandleKind::Writer);
        let first = TABLE.add(7).expect("there is room");
        assert_eq!(TABLE.with(first, |end| *end).ok(), Some(7));
        assert_eq!(TABLE.remove(first).ok(), Some(7));
        let second = TABLE.add(8).expect("there is room");
        for bad in crate::handle::bad_handles(first, second) {
            assert_eq!(number(TABLE.with(bad, |_| ())), Some(-libc::EBADF), "{bad:?}");
            assert_eq!(number(TABLE.remove(bad)), Some(-libc::EBADF), "{bad:?}");
        }
        assert_eq!(TABLE.remove(second).ok(), Some(8));
    }

    #[test]
    fn an_end_is_one_threads_at_a_time() {
        static TABLE: Numbers = EndTable::new(HandleKind::Writer);
        let handle = TABLE.add(1).expect("there is room");
        let within = TABLE
            .with(handle, |_| (number(TABLE.with(handle, |_| ())), number(TABLE.remove(handle))));
        assert_eq!(within.ok(), Some((Some(-libc::EBUSY), Some(-libc::EBUSY))));
        assert_eq!(TABLE.with(handle, |end| *end).ok(), Some(1));
    }

    #[test]
    fn a_full_table_refuses_and_takes_again() {
        static TABLE: Numbers = EndTable::new(HandleKind::Reader);
        let handles: Vec<*mut u8> = (0..SLOTS as u32).map_while(|n| TABLE.add(n).ok()).collect();
        assert_eq!(handles.len(), SLOTS);
        assert_eq!(number(TABLE.add(0)), Some(-libc::EMFILE));
        for (n, &handle) in (0..).zip(&handles) {
            assert_eq!(TABLE.with(handle, |end| *end).ok(), Some(n));
        }
        assert!(TABLE.remove(handles[5]).is_ok() && TABLE.add(9).is_ok());
    }
}
