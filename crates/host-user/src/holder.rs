//! Names of the tasks of this process that are threads. A mutex names its holder; whether that one
//! lives, and where, can be asked after its memory is gone.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};

/// Threads of this process that can be tasks at one time.
pub const THREADS: usize = 4096;

/// Odd generations live.
struct Entry {
    generation: AtomicU32,
    doorbell: AtomicU32,
    slot: AtomicU32,
}

static TABLE: [Entry; THREADS] = [const {
    Entry {
        generation: AtomicU32::new(0),
        doorbell: AtomicU32::new(0),
        slot: AtomicU32::new(u32::MAX),
    }
}; THREADS];

/// Where the next search for a free entry begins, so that a name is used again late.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The bits below a name in a word of 64 bits.
const FLAGS: u32 = 16;

/// The name of a task, as long as it lives.
#[derive(Debug)]
pub struct HolderName {
    generation: u32,
    index: u32,
}

/// What a name says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// The word has no name.
    Free,
    /// The task has ended.
    Ended,
    /// The task in this slot of the dispatcher with this doorbell.
    Task { doorbell: u32, slot: u32 },
}

impl HolderName {
    /// A new name of a task of this doorbell; `None`: [`THREADS`] live.
    pub fn claim(doorbell: u32) -> Option<HolderName> {
        let from = NEXT.fetch_add(1, Relaxed);
        for k in 0..THREADS as u32 {
            let index = from.wrapping_add(k) % THREADS as u32;
            let entry = &TABLE[index as usize];
            let ended = entry.generation.load(Relaxed);
            let generation = ended.wrapping_add(1);
            let free = ended % 2 == 0;
            if free && entry.generation.compare_exchange(ended, generation, SeqCst, Relaxed).is_ok()
            {
                entry.doorbell.store(doorbell, SeqCst);
                entry.slot.store(u32::MAX, SeqCst);
                return Some(HolderName { generation, index });
            }
        }
        None
    }

    /// As a part of a word, whose lower [`FLAGS`] bits are clear. Never 0.
    #[inline]
    pub fn word(&self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index) << FLAGS
    }

    /// The task has this place among its dispatcher's members.
    pub fn set_slot(&self, slot: u32) {
        TABLE[self.index as usize].slot.store(slot, SeqCst);
    }

    /// The task has ended.
    pub fn end(&self) {
        let (live, ended) = (self.generation, self.generation.wrapping_add(1));
        // Another one may have the entry already.
        let _ = TABLE[self.index as usize].generation.compare_exchange(live, ended, SeqCst, SeqCst);
    }
}

impl Drop for HolderName {
    fn drop(&mut self) {
        self.end();
    }
}

/// The name in a word.
pub fn name_in(word: u64) -> u64 {
    word >> FLAGS << FLAGS
}

/// What the name in a word says.
pub fn holder_in(word: u64) -> Holder {
    let (generation, index) = ((word >> 32) as u32, (word as u32 >> FLAGS) as usize);
    if generation == 0 {
        return Holder::Free;
    }
    let entry = &TABLE[index % THREADS];
    let lives = || entry.generation.load(Acquire) == generation;
    let before = lives();
    let (doorbell, slot) = (entry.doorbell.load(Acquire), entry.slot.load(Acquire));
    match before && lives() {
        true => Holder::Task { doorbell, slot },
        false => Holder::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_where_its_task_is_until_it_ends() {
        let name = HolderName::claim(7).expect("there is room");
        name.set_slot(3);
        let word = name.word() | 3;
        assert_eq!(name_in(word), name.word());
        assert_eq!(holder_in(word), Holder::Task { doorbell: 7, slot: 3 });
        name.end();
        assert_eq!(holder_in(word), Holder::Ended);
        assert_eq!(holder_in(3), Holder::Free);
    }

    #[test]
    fn names_are_not_used_twice_and_their_number_is_bounded() {
        let names: Vec<HolderName> = std::iter::from_fn(|| HolderName::claim(1)).collect();
        // Other tests of this program may have some.
        assert!(names.len() > THREADS - 8 && names.len() <= THREADS);
        let mut words: Vec<u64> = names.iter().map(HolderName::word).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), names.len());
        let first = names[0].word();
        drop(names);
        let again: Vec<HolderName> = std::iter::from_fn(|| HolderName::claim(1)).collect();
        assert!(again.iter().all(|name| name.word() != first));
    }
}
