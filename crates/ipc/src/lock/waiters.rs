//! Which threads wait for a lock, for those that look at it from outside. Locks do not depend on
//! it: what is written here, or left by a killed thread, changes no outcome.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many waiting threads can be shown.
const SLOTS: usize = 64;

/// The numbers of threads that wait; 0 in free slots.
#[repr(C)]
pub struct Waiters([AtomicU32; SLOTS]);

/// A thread that waits until this is dropped.
pub struct WaiterEntry<'a> {
    slot: Option<&'a AtomicU32>,
    tid: u32,
}

impl Waiters {
    /// The thread waits from now on. It is not shown where too many others wait. Real-time safe.
    pub fn enter(&self, tid: u32) -> WaiterEntry<'_> {
        let from = tid as usize % SLOTS;
        let (before, after) = self.0.split_at(from);
        let free = after.iter().chain(before).find(|slot| {
            slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, tid, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        });
        WaiterEntry { slot: free, tid }
    }

    /// How many threads wait, at least. Frees the slots of those that are not there any more.
    pub fn count(&self) -> usize {
        let waits = |slot: &&AtomicU32| match slot.load(Ordering::Relaxed) {
            0 => false,
            tid if super::owner::process_of(tid).is_some() => true,
            tid => {
                let _ = slot.compare_exchange(tid, 0, Ordering::Relaxed, Ordering::Relaxed);
                false
            }
        };
        self.0.iter().filter(waits).count()
    }
}

impl Drop for WaiterEntry<'_> {
    fn drop(&mut self) {
        if let Some(slot) = self.slot {
            let _ = slot.compare_exchange(self.tid, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}
