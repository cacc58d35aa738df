//! Bits that tasks wait for (RTAI, ipc/bits), in the order in which they come.

use crate::arena::queue::{WaitOutcome, SEMAPHORE};
use crate::arena::{Handle, ObjectIndex, Owner, SlotKind, TaskIndex, Transaction};
use crate::blocking::Begun;
use crate::rte;

/// A condition of bits: ALL_SET to ALL_CLR_OR_ANY_CLR.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitsTest {
    /// Its number.
    pub number: u64,
    /// One mask; of conditions of two, the first in the lower 32 bits.
    pub masks: u64,
}

/// A change of bits: SET_BITS to NOP_BITS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitsChange {
    number: i32,
    masks: u64,
}

/// The two masks of a pair.
fn pair(masks: u64) -> (u64, u64) {
    (masks & u64::from(u32::MAX), masks >> 32)
}

impl BitsTest {
    /// `None`: there is no such test.
    pub fn new(number: i32, masks: u64) -> Option<BitsTest> {
        let number = u64::try_from(number).ok().filter(|number| *number < 16)?;
        Some(BitsTest { number, masks })
    }

    /// Whether it holds.
    pub fn holds(self, bits: u64) -> bool {
        let single = |number: u64, mask: u64| match number {
            0 => bits & mask == mask,
            1 => bits & mask != 0,
            2 => !bits & mask == mask,
            _ => !bits & mask != 0,
        };
        // ALL_SET, ANY_SET, ALL_CLR, ANY_CLR; then pairs of these, in this order.
        const PAIRS: [(u64, u64); 6] = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        let (first_mask, second_mask) = pair(self.masks);
        let parts =
            |(first, second): (u64, u64)| (single(first, first_mask), single(second, second_mask));
        match self.number {
            number @ 0..4 => single(number, self.masks),
            number @ 4..10 => parts(PAIRS[number as usize - 4]) == (true, true),
            number => parts(PAIRS[number as usize - 10]) != (false, false),
        }
    }
}

impl BitsChange {
    /// `None`: there is no such change.
    pub fn new(number: i32, masks: u64) -> Option<BitsChange> {
        (0..4).contains(&number).then_some(BitsChange { number, masks })
    }

    fn apply(self, bits: u64) -> u64 {
        let (set, cleared) = pair(self.masks);
        match self.number {
            0 => bits | self.masks,
            1 => bits & !self.masks,
            2 => (bits | set) & !cleared,
            _ => bits,
        }
    }
}

impl Transaction<'_> {
    /// Makes bits; `None`: there is no room.
    pub fn new_bits(&mut self, name: u64, mask: u64) -> Option<Handle> {
        let id = self.claim_object()?;
        let object = self.object(id);
        self.reset_object(id);
        for word in [&object.count, &object.sem_type] {
            self.set(word, 0);
        }
        self.set(&object.is_fifo, 1);
        self.set(&object.mask, mask);
        self.register(&object.head, SlotKind::Bits, name, Owner::Process);
        Some(self.handle_of_object(id))
    }

    /// Deletes bits: tasks that wait return.
    pub fn delete_bits(&mut self, id: ObjectIndex) {
        let object = self.object(id);
        while let Some(task) = self.first(&object.waiters) {
            self.remove_from_under(task, SEMAPHORE);
        }
        self.deregister(&object.head);
    }

    /// Sets the mask, and wakes all that wait; the mask before.
    pub fn reset_bits(&mut self, id: ObjectIndex, mask: u64) -> u64 {
        let object = self.object(id);
        let before = object.mask.get();
        self.set(&object.mask, mask);
        while let Some(task) = self.first(&object.waiters) {
            self.grant(task, SEMAPHORE);
        }
        before
    }

    /// Changes bits, and wakes those whose condition holds then; the mask after it.
    pub fn change_bits(&mut self, id: ObjectIndex, change: BitsChange) -> u64 {
        let object = self.object(id);
        let mask = change.apply(object.mask.get());
        self.set(&object.mask, mask);
        let mut next = self.first(&object.waiters);
        // Bounded, should the memory be damaged.
        for _ in 0..crate::arena::TASKS {
            let Some(task) = next else { break };
            let slot = self.task(task);
            next = TaskIndex::from_word(slot.next.get());
            let test = BitsTest { number: slot.test.get(), masks: slot.test_masks.get() };
            if test.holds(mask) {
                self.grant(task, SEMAPHORE);
            }
        }
        mask
    }

    /// The condition holds: the mask, which is changed then. `None`: it does not.
    pub fn take_bits(
        &mut self,
        id: ObjectIndex,
        test: BitsTest,
        change: BitsChange,
    ) -> Option<u64> {
        let object = self.object(id);
        let mask = object.mask.get();
        if !test.holds(mask) {
            return None;
        }
        self.set(&object.mask, change.apply(mask));
        Some(mask)
    }

    /// The task waits for a condition; what RTAI returns, and the mask then.
    pub fn begin_bits_wait(
        &mut self,
        bits: Handle,
        task: TaskIndex,
        (test, change): (BitsTest, BitsChange),
        until: Option<i64>,
        now: i64,
    ) -> Begun<(i32, u64)> {
        let Some(id) = self.find_object(bits, SlotKind::Bits) else {
            return Begun::Done((rte::OBJINV, 0));
        };
        if let Some(mask) = self.take_bits(id, test, change) {
            return Begun::Done((0, mask));
        }
        if until.is_some_and(|until| until <= now) {
            return Begun::Done((rte::TIMOUT, 0));
        }
        let slot = self.task(task);
        self.set(&slot.test, test.number);
        self.set(&slot.test_masks, test.masks);
        self.enqueue(task, &self.object(id).waiters, true);
        self.suspend_for(task, SEMAPHORE);
        if let Some(until) = until {
            self.delay(task, until);
        }
        Begun::Waits
    }

    /// The wait of a task is over: its change is made, whatever the bits are by now.
    pub fn end_bits_wait(
        &mut self,
        bits: Handle,
        task: TaskIndex,
        change: BitsChange,
        outcome: WaitOutcome,
    ) -> (i32, u64) {
        match outcome {
            WaitOutcome::Done => match self.find_object(bits, SlotKind::Bits) {
                Some(id) => {
                    let object = self.object(id);
                    let mask = object.mask.get();
                    self.set(&object.mask, change.apply(mask));
                    (0, mask)
                }
                None => (rte::OBJREM, 0),
            },
            WaitOutcome::Removed => (rte::OBJREM, 0),
            WaitOutcome::TimedOut | WaitOutcome::Unblocked => {
                self.withdraw(task);
                let is_timed_out = outcome == WaitOutcome::TimedOut;
                (if is_timed_out { rte::TIMOUT } else { rte::UNBLKD }, 0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_two_masks_combine_those_of_one() {
        let holds = |number, masks, bits| BitsTest::new(number, masks).expect("a test").holds(bits);
        assert!(holds(0, 0b110, 0b111) && !holds(0, 0b110, 0b101));
        assert!(holds(1, 0b110, 0b100) && !holds(1, 0b110, 0b001));
        assert!(holds(2, 0b110, 0b001) && !holds(2, 0b110, 0b010));
        assert!(holds(3, 0b110, 0b010) && !holds(3, 0b110, 0b111));
        let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
        for bits in 0..16 {
            for masks in 0..256u64 {
                let (first, second) = (masks & 15, masks >> 4);
                let both = first | second << 32;
                for (n, (a, b)) in (0..).zip(pairs) {
                    let parts = (holds(a, first, bits), holds(b, second, bits));
                    assert_eq!(holds(4 + n, both, bits), parts.0 && parts.1);
                    assert_eq!(holds(10 + n, both, bits), parts.0 || parts.1);
                }
            }
        }
        assert!(BitsTest::new(16, 0).is_none() && BitsTest::new(-1, 0).is_none());
    }

    #[test]
    fn changes_set_clear_do_both_or_nothing() {
        let change = |number, masks| BitsChange::new(number, masks).expect("a change");
        assert_eq!(change(0, 0b110).apply(0b001), 0b111);
        assert_eq!(change(1, 0b110).apply(0b011), 0b001);
        assert_eq!(change(2, 0b100 | 0b011 << 32).apply(0b001), 0b100);
        assert_eq!(change(3, 7).apply(0b101), 0b101);
        assert!(BitsChange::new(4, 0).is_none() && BitsChange::new(-1, 0).is_none());
    }
}
