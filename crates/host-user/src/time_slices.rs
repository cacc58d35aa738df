//! Time slices for the threads of one program, within its budget.
//!
//! A slice is 1 ms of the program's execution. At its end the threads that executed are queued
//! behind the others (punctual_process, turns.rs). Reading the clocks of many threads takes long,
//! so with more than ten of them the slice is longer. The kernel does not report how many threads
//! are runnable: while one thread alone executes, the slices double up to eight times their length,
//! so that such a program costs hardly more than one of a single thread.

use punctual_process::{Executed, Threads};

use crate::engine::Engine;
use crate::member::{Member, MemberKind, RunMode};

/// The shortest slice, ns.
const SLICE: u64 = 1_000_000;
/// What a slice has at least for each thread, ns: the end of one takes some 1.3 us for each.
const PER_THREAD: u64 = 100_000;
/// Slices grow up to this many times while one thread alone executes.
const LONGEST: u64 = 8;
/// A thread that executed less than this part (a divisor) of a slice did not use it: waiting
/// threads execute a little when their program is thawed.
const USED: u64 = 16;
/// A slice may end this part (a divisor) early or late: when its timer expires, it is not quite
/// used up, by the time that the switch to the program took.
const TOLERANCE: u64 = 16;

/// The time slice of a program's threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeSlice {
    /// What the program executed in it, ns.
    used: u64,
    /// How many times as long as the shortest; 0: the program has not had one.
    times: u64,
    /// The only thread that executed in the latest one; 0: there were several.
    only: i32,
}

impl TimeSlice {
    fn length(&self, threads: usize) -> u64 {
        (PER_THREAD * threads as u64).max(SLICE) * self.times.max(1)
    }

    /// The next slice, after one in which these executed.
    fn next(&mut self, executed: Executed) {
        let same = executed.threads == 0 || executed.threads == 1 && executed.tid == self.only;
        self.times = if same { (self.times.max(1) * 2).min(LONGEST) } else { 1 };
        self.only = if executed.threads == 1 { executed.tid } else { 0 };
        self.used = 0;
    }
}

impl Member {
    /// The threads of a program that has several.
    fn several_threads(&self) -> Option<&Threads> {
        match &self.kind {
            MemberKind::Program(p) if p.threads.count() > 1 => Some(&p.threads),
            _ => None,
        }
    }

    /// Counts what it executed toward the slice.
    pub fn use_slice(&mut self) {
        self.slice.used += self.ran;
    }

    /// When an unparked program's slice is expected to be used up, if the program executes at the
    /// same rate as in the `lapse` ns since the previous event; `u64::MAX` for a single thread. A
    /// program that did not execute in them is polled at growing intervals.
    pub fn slice_end(&self, now: u64, lapse: u64) -> u64 {
        let Some(threads) = self.several_threads() else { return u64::MAX };
        let length = self.slice.length(threads.count_in_turns());
        let left = length.saturating_sub(self.slice.used).max(length / TOLERANCE);
        let expected = match self.ran {
            0 if self.ran_at == now => left,
            0 => (now.saturating_sub(self.ran_at) / 4).max(SLICE),
            ran => left.saturating_mul(lapse) / ran,
        };
        now.saturating_add(left.max(expected.min(LONGEST * SLICE)))
    }

    /// Ends a slice that is used up. A parked program's threads are put into this order when it is
    /// unparked.
    fn end_slice(&mut self) {
        let Some(threads) = self.several_threads() else { return };
        let length = self.slice.length(threads.count_in_turns());
        if self.slice.used < length - length / TOLERANCE {
            return;
        }
        let executed = threads.end_slice(length / USED);
        if self.run_mode == RunMode::Unparked {
            threads.requeue(executed);
        }
        self.slice.next(executed);
    }
}

impl Engine {
    /// Ends the slices that are used up, of parked programs too: their execution has been read
    /// here.
    pub(crate) fn end_slices(&mut self) {
        for &i in &self.moving {
            if let Some(m) = self.members[i as usize].as_deref_mut() {
                m.end_slice();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(slices: &[(usize, i32)]) -> u64 {
        let mut slice = TimeSlice::default();
        for &(threads, tid) in slices {
            slice.next(Executed { threads, tid });
        }
        slice.length(2)
    }

    #[test]
    fn slices_double_while_one_thread_alone_executes() {
        assert_eq!(after(&[]), SLICE);
        assert_eq!(after(&[(1, 7)]), SLICE);
        assert_eq!(after(&[(1, 7), (1, 7)]), 2 * SLICE);
        assert_eq!(after(&[(1, 7); 9]), 8 * SLICE);
        assert_eq!(after(&[(0, 0); 9]), 8 * SLICE);
    }

    #[test]
    fn another_thread_makes_them_short_again() {
        let alone = [(1, 7); 9];
        assert_eq!(after(&[&alone[..], &[(1, 8)]].concat()), SLICE);
        assert_eq!(after(&[&alone[..], &[(2, 8)]].concat()), SLICE);
        assert_eq!(after(&[&alone[..], &[(1, 8), (1, 7), (1, 8)]].concat()), SLICE);
    }

    #[test]
    fn many_threads_have_longer_ones() {
        assert_eq!(TimeSlice::default().length(10), SLICE);
        assert_eq!(TimeSlice::default().length(40), 4 * SLICE);
    }
}
