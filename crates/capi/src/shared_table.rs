//! Handles of objects that any number of threads use at once, tasks and others: an array, whose
//! slots are used again, with a generation each. A call counts itself in the slot while it uses the
//! object, so that none is destroyed below a call. Nothing waits.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::error::{failed, CallError};
use crate::handle::{bad_handle, handle_of_slot, slot_of_handle, HandleKind, GENERATIONS, SLOTS};

/// A slot's state: how many calls use the object; whether it is there; the generation.
const CALLS: u64 = 1 << 16;
const FREE: u64 = 0;
const OPEN: u64 = CALLS;
/// Its object is being put in or taken out.
const BUSY: u64 = 2 * CALLS;
const GENERATION: u64 = 4 * CALLS;

/// The objects of one kind, with handles `*mut H`.
pub struct SharedTable<T, H> {
    kind: HandleKind,
    slots: [SharedSlot<T>; SLOTS],
    handles: PhantomData<fn(*mut H)>,
}

#[repr(align(64))]
struct SharedSlot<T> {
    state: AtomicU64,
    /// There is one while the slot is OPEN.
    object: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: threads share the object while the slot is OPEN; the one that made it BUSY has it alone.
unsafe impl<T: Send + Sync> Sync for SharedSlot<T> {}

impl<T> SharedSlot<T> {
    const fn new() -> SharedSlot<T> {
        let object = UnsafeCell::new(MaybeUninit::uninit());
        SharedSlot { state: AtomicU64::new(FREE), object }
    }
}

/// A call that uses the object of a slot.
struct CallInProgress<'a>(&'a AtomicU64);

impl Drop for CallInProgress<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.fetch_sub(1, Release);
    }
}

impl<T, H> SharedTable<T, H> {
    pub const fn new(kind: HandleKind) -> SharedTable<T, H> {
        let slots = [const { SharedSlot::new() }; SLOTS];
        SharedTable { kind, slots, handles: PhantomData }
    }

    /// A handle for it.
    ///
    /// # Errors
    /// ENOSPC.
    pub fn add(&self, object: T) -> Result<*mut H, CallError> {
        for (number, slot) in self.slots.iter().enumerate() {
            let free = slot.state.load(Relaxed);
            let of_generation = free / GENERATION * GENERATION;
            if free != of_generation + FREE {
                continue;
            }
            let busy = of_generation + BUSY;
            if slot.state.compare_exchange(free, busy, Acquire, Relaxed).is_ok() {
                // SAFETY: this thread made it BUSY.
                unsafe { (*slot.object.get()).write(object) };
                slot.state.store(of_generation + OPEN, Release);
                return Ok(handle_of_slot(self.kind, free / GENERATION, number));
            }
        }
        Err(no_room())
    }

    /// Calls `f` with the object of a handle. Real-time safe.
    ///
    /// # Errors
    /// EBADF.
    #[inline]
    pub fn with<R>(&self, handle: *mut H, f: impl FnOnce(&T) -> R) -> Result<R, CallError> {
        let (generation, number) = slot_of_handle(self.kind, handle)?;
        let slot = &self.slots[number];
        let open = generation * GENERATION + OPEN;
        // More calls than tasks and threads there can be are refused as well.
        let one_more = |state: u64| (open..open + CALLS - 1).contains(&state).then(|| state + 1);
        slot.state.fetch_update(Acquire, Relaxed, one_more).map_err(|_| bad_handle())?;
        let _call = CallInProgress(&slot.state);
        // SAFETY: it is OPEN, and stays so while this call is counted.
        Ok(f(unsafe { (*slot.object.get()).assume_init_ref() }))
    }

    /// The object of a handle that is not one any more.
    ///
    /// # Errors
    /// EBADF; EBUSY: a call uses it.
    pub fn remove(&self, handle: *mut H) -> Result<T, CallError> {
        self.remove_if(handle, |_| Ok(()))
    }

    /// The same, unless `refusal` returns an error: nothing is changed then.
    ///
    /// # Errors
    /// As of [`remove`](Self::remove); that of `refusal`.
    pub fn remove_if(
        &self,
        handle: *mut H,
        refusal: impl FnOnce(&T) -> Result<(), CallError>,
    ) -> Result<T, CallError> {
        let (generation, number) = slot_of_handle(self.kind, handle)?;
        let slot = &self.slots[number];
        let of_generation = generation * GENERATION;
        let (open, busy) = (of_generation + OPEN, of_generation + BUSY);
        if let Err(state) = slot.state.compare_exchange(open, busy, AcqRel, Relaxed) {
            let in_use = (open..open + CALLS).contains(&state);
            return Err(if in_use { still_in_use() } else { bad_handle() });
        }
        // SAFETY: this thread made it BUSY; it was OPEN, and no call uses it.
        if let Err(error) = refusal(unsafe { (*slot.object.get()).assume_init_ref() }) {
            slot.state.store(open, Release);
            return Err(error);
        }
        // SAFETY: as above.
        let object = unsafe { (*slot.object.get()).assume_init_read() };
        slot.state.store((generation + 1) % GENERATIONS * GENERATION + FREE, Release);
        Ok(object)
    }
}

#[cold]
pub fn no_room() -> CallError {
    failed(libc::ENOSPC, c"1,024 locks of this kind are there; destroy some")
}

#[cold]
pub fn still_in_use() -> CallError {
    failed(libc::EBUSY, c"a task holds it, or a thread uses it at this moment")
}

#[cfg(test)]
mod tests {
    use super::*;

    type Numbers = SharedTable<u32, u8>;

    fn number<R>(result: Result<R, CallError>) -> Option<i32> {
        result.err().map(|e| e.0)
    }

    #[test]
    fn a_handle_is_good_until_it_is_removed_though_its_slot_is_used_again() {
        static TABLE: Numbers = SharedTable::new(HandleKind::Sem);
        let first = TABLE.add(7).expect("there is room");
        assert_eq!(TABLE.with(first, |object| *object).ok(), Some(7));
        assert_eq!(TABLE.remove(first).ok(), Some(7));
        let second = TABLE.add(8).expect("there is room");
        for bad in crate::handle::bad_handles(first, second) {
            assert_eq!(number(TABLE.with(bad, |_| ())), Some(-libc::EBADF), "{bad:?}");
            assert_eq!(number(TABLE.remove(bad)), Some(-libc::EBADF), "{bad:?}");
        }
        assert_eq!(TABLE.remove(second).ok(), Some(8));
    }

    #[test]
    fn calls_share_an_object_and_none_loses_it() {
        static TABLE: Numbers = SharedTable::new(HandleKind::Sem);
        let handle = TABLE.add(1).expect("there is room");
        let within = TABLE.with(handle, |_| {
            let second = TABLE.with(handle, |object| *object).ok();
            (second, number(TABLE.remove(handle)))
        });
        assert_eq!(within.ok(), Some((Some(1), Some(-libc::EBUSY))));
        let refused = TABLE.remove_if(handle, |_| Err(still_in_use()));
        assert_eq!(number(refused), Some(-libc::EBUSY));
        assert_eq!(TABLE.remove(handle).ok(), Some(1));
    }

    #[test]
    fn a_full_table_refuses_and_takes_again() {
        static TABLE: Numbers = SharedTable::new(HandleKind::Cond);
        let handles: Vec<*mut u8> = (0..SLOTS as u32).map_while(|n| TABLE.add(n).ok()).collect();
        assert_eq!(handles.len(), SLOTS);
        assert_eq!(number(TABLE.add(0)), Some(-libc::ENOSPC));
        assert!(TABLE.remove(handles[5]).is_ok() && TABLE.add(9).is_ok());
    }
}
