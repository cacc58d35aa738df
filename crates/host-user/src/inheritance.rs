//! Programs, and threads of other programs, that wait for a mutex with priority inheritance.
//!
//! The kernel has the owner of such a mutex execute at the level of the thread that waits for it
//! best, without the dispatcher: so the owner, another's task or an ordinary thread, executes at
//! once, also where its own budget is used up. What is left to the dispatcher is who pays. That is
//! the member that waits: it is charged all that it and those above it left. Where its budget is
//! used up, it is parked, and its level no longer inherited.
//!
//! ```text
//!                     executes                         seen to wait
//!   asleep <──────────────────────> unknown ─────────────────────────> waits
//!   charged nothing   seen asleep   counted in `left`  (charges `left`)  charged at each event
//!                                          <────────── executes ──────────
//! ```
//!
//! **When to sample.** What a member waits in does not change before it executes, so a finding
//! holds until then, and needs no further sample. In between a program might wait whenever no event
//! comes: events can be foreseen. So samples come at random times, of which none but the dispatcher
//! knows, and one that finds a wait charges all that was left since the member was last seen
//! asleep. The mean of that is what was inherited, whatever the times of the waits. So that no
//! single wait costs much more than it took, samples are near each other for [`LATELY`] after a
//! wait was seen, and the first wait is charged from its sample on only: that gives away [`SPAN`]
//! in [`LATELY`] at most. A program that does not leave its CPU has no samples.
//!
//! **Ready threads.** A wait with a time-out ends with the thread ready, while the owner executes
//! on at its level: the thread does not execute, and the owner keeps the level until it does. So a
//! member with a ready thread counts as one that waits if it and those above it left most of the
//! last [`BRIEF`] ns.
//!
//! **Parked.** A thread leaves its wait to be frozen, and would have to execute for that, behind
//! the owner. So a program that was seen to wait within [`LATELY`] is parked in the ordinary class,
//! and one that is not frozen although the CPU was free is put there.
//!
//! Who executed meanwhile is not asked. The memory of the mutex is its program's, and may name any
//! owner; so idle time and the execution of tasks below count too, whose own budgets pay for their
//! execution as always. A program can only lose by that: without it, a thread with a small budget
//! could wait for one with a large one, which would then keep the tasks between from executing.

use punctual_dispatcher::Dispatcher;
use punctual_process::{ObservedWait, WaitSample};

use crate::engine::{Engine, SWITCHING};
use crate::member::{Member, MemberKind, RunMode};

/// An interval in which ready threads show who did not execute, ns: long beside a switch, short
/// beside the time for which a thread sleeps that has just become ready.
const BRIEF: u64 = 100_000;

/// So long a member is sampled after it last left the CPU or was seen to wait, ns.
const LATELY: u64 = 1_000_000_000;

/// Samples are at most so far from each other, ns: each is one more event, which many programs that
/// sleep would have for nothing.
const SPAN: u64 = 10_000_000;

/// And at most so far for [`LATELY`] after a wait that cost others time, ns.
const SPAN_LATELY: u64 = 500_000;

/// What is known of the waits of one member.
#[derive(Debug, Default)]
pub struct WaitSamples {
    /// A sample was in vain: the next one comes after [`BRIEF`].
    again: bool,
    /// The thread at which the next sample begins.
    from: usize,
    /// What it does, as long as it has not executed since it was seen.
    known: Option<ObservedWait>,
    /// What it and those above it left since it was last seen asleep, ns.
    left: u64,
    /// When it had last left the CPU, was last seen to wait, and last to cost others time by that,
    /// CLOCK_MONOTONIC ns; 0: never.
    left_at: u64,
    found_at: u64,
    costly_at: u64,
}

impl WaitSamples {
    /// It is parked: nothing is left to it.
    pub fn end(&mut self) {
        let WaitSamples { left_at, found_at, costly_at, .. } = *self;
        *self = WaitSamples { left_at, found_at, costly_at, ..WaitSamples::default() };
    }

    /// Whether a wait was seen of late.
    pub fn found_lately(&self, now: u64) -> bool {
        is_lately(self.found_at, now)
    }

    /// A wait was seen.
    fn found(&mut self, now: u64) {
        self.known = Some(ObservedWait::Inherits);
        self.found_at = now;
        if self.left <= SWITCHING {
            return;
        }
        if !is_lately(self.costly_at, now) {
            self.left = 0;
        }
        self.costly_at = now;
    }

    /// Within what time the next sample comes, ns.
    fn span(&self, now: u64) -> u64 {
        match is_lately(self.costly_at, now) {
            true => SPAN_LATELY,
            false => SPAN,
        }
    }

    /// The threads up to this one are asleep.
    fn found_asleep(&mut self, next: usize) {
        let all_at_once = self.from == 0 && next == 0;
        self.from = next;
        if next == 0 {
            self.left = 0;
        }
        self.known = all_at_once.then_some(ObservedWait::Asleep);
    }
}

fn is_lately(at: u64, now: u64) -> bool {
    at != 0 && now.saturating_sub(at) < LATELY
}

/// The sampling of one dispatcher: at times that programs cannot foresee.
#[derive(Debug)]
pub(crate) struct SampleTimes {
    /// The next one, CLOCK_MONOTONIC ns; `u64::MAX`: none.
    at: u64,
    /// Within what time it was to come when that was decided, ns.
    span: u64,
    random: u64,
}

impl SampleTimes {
    /// Seeded by the kernel.
    pub fn new() -> SampleTimes {
        let mut seed = [0u8; 8];
        // SAFETY: the kernel writes at most so many bytes into `seed`.
        unsafe { libc::getrandom(seed.as_mut_ptr().cast(), seed.len(), libc::GRND_NONBLOCK) };
        SampleTimes { at: u64::MAX, span: u64::MAX, random: u64::from_ne_bytes(seed) | 1 }
    }

    /// The next one, CLOCK_MONOTONIC ns; `u64::MAX`: none.
    pub fn next(&self) -> u64 {
        self.at
    }

    /// Whether it is due; it is not from then on.
    pub fn take(&mut self, now: u64) -> bool {
        let due = now >= self.at;
        if due {
            self.at = u64::MAX;
        }
        due
    }

    /// Plans the next one within `span`, ns; `None`: none. A later call with a shorter span moves
    /// it forward; with a longer one it stays.
    fn plan(&mut self, span: Option<u64>, now: u64) {
        match span {
            None => self.at = u64::MAX,
            Some(span) if self.at == u64::MAX || span < self.span => {
                self.span = span;
                self.at = self.at.min(now + self.up_to(span));
            }
            Some(_) => {}
        }
    }

    /// From 1 to `limit`, which is not 0.
    fn up_to(&mut self, limit: u64) -> u64 {
        // xorshift64*
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) % limit + 1
    }
}

impl Member {
    /// Takes note of `free` ns of the `lapse` ns since the last event, in which it and those above
    /// it did not execute, and samples it where a `sample` is due; charges it what it left, if it
    /// waits for a mutex with priority inheritance. Whether it was charged.
    pub fn pays_for_inheritance(
        &mut self,
        dispatcher: &mut Dispatcher,
        free: u64,
        lapse: u64,
        sample: bool,
        now: u64,
    ) -> bool {
        if self.run_mode != RunMode::Unparked || self.control().is_some() {
            return false;
        }
        if self.ran > 0 {
            self.wait_samples.known = None;
        }
        if free > SWITCHING.min(lapse / 4) {
            self.wait_samples.left_at = now;
        }
        if self.wait_samples.known != Some(ObservedWait::Asleep) {
            self.wait_samples.left += free;
        }
        if sample {
            self.sample(free, lapse, now);
        }
        if self.wait_samples.known != Some(ObservedWait::Inherits) || self.wait_samples.left == 0 {
            return false;
        }
        let left = std::mem::take(&mut self.wait_samples.left);
        if std::mem::take(&mut self.asleep) {
            let _ = dispatcher.task_ready(self.task, now);
        }
        self.ran += free;
        self.ran_at = now;
        self.quiet = false;
        self.periods.executed(left);
        let _ = dispatcher.charge_task(self.task, left, now);
        true
    }

    fn sample(&mut self, free: u64, lapse: u64, now: u64) {
        let WaitSample { wait, next } = self.waits();
        match wait {
            ObservedWait::Asleep => self.wait_samples.found_asleep(next),
            ObservedWait::Inherits => self.wait_samples.found(now),
            ObservedWait::Runnable if !(BRIEF / 2..=2 * BRIEF).contains(&lapse) => {
                self.wait_samples.again = true;
            }
            ObservedWait::Runnable if free >= lapse - lapse / 4 => self.wait_samples.found(now),
            // It executed, or those above it did.
            ObservedWait::Runnable => {}
        }
    }

    fn waits(&self) -> WaitSample {
        match &self.kind {
            MemberKind::Thread(_) => WaitSample { wait: ObservedWait::Asleep, next: 0 },
            MemberKind::Program(p) => p.threads.sample_waits(self.wait_samples.from),
            MemberKind::AdoptedThread(thread) => WaitSample { wait: thread.sample_wait(), next: 0 },
        }
    }

    /// Whether a parked program is kept from coming to rest by a thread that executes at its level:
    /// it has not executed, though the CPU was free. Takes note of it.
    pub fn is_kept_by_inheritance(&mut self, now: u64) -> bool {
        let MemberKind::Program(p) = &self.kind else { return false };
        let is_kept = self.run_mode == RunMode::Parked
            && self.ran == 0
            && p.park.stands_still() == Some(false)
            && self.waits().wait != ObservedWait::Asleep;
        if is_kept {
            self.wait_samples.found_at = now;
        }
        is_kept
    }
}

impl Engine {
    /// Decides when to sample the members that may have others inherit their levels.
    pub(crate) fn plan_samples(&mut self, now: u64) {
        let Engine { members, moving, sample_times, .. } = self;
        let (mut span, mut again) = (None, false);
        for &i in moving.iter() {
            let Some(m) = members[i as usize].as_deref_mut() else { continue };
            again |= std::mem::take(&mut m.wait_samples.again);
            let lately = is_lately(m.wait_samples.left_at, now) || m.wait_samples.found_lately(now);
            if lately && m.run_mode == RunMode::Unparked {
                let own = m.wait_samples.span(now);
                span = Some(span.map_or(own, |s: u64| s.min(own)));
            }
        }
        sample_times.plan(span, now);
        if again {
            sample_times.at = sample_times.at.min(now + BRIEF);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn what_was_left_is_forgotten_when_all_threads_were_seen_asleep() {
        let mut samples = WaitSamples { left: MS, ..WaitSamples::default() };
        samples.found_asleep(16);
        assert_eq!((samples.left, samples.known, samples.from), (MS, None, 16));
        samples.found_asleep(0);
        assert_eq!((samples.left, samples.known, samples.from), (0, None, 0));
        samples.left = MS;
        samples.found_asleep(0);
        assert_eq!((samples.left, samples.known), (0, Some(ObservedWait::Asleep)));
    }

    #[test]
    fn samples_are_near_each_other_after_a_wait_that_cost_others_time() {
        let mut samples = WaitSamples::default();
        samples.found(MS);
        assert_eq!(samples.known, Some(ObservedWait::Inherits));
        assert_eq!(samples.span(MS), SPAN);
        samples.left = MS;
        samples.found(MS);
        assert_eq!(samples.span(MS + LATELY - 1), SPAN_LATELY);
        assert_eq!(samples.span(MS + LATELY), SPAN);
        samples.end();
        assert!(samples.known.is_none() && samples.left == 0);
        assert!(samples.found_lately(MS + LATELY - 1) && !samples.found_lately(MS + LATELY));
    }

    #[test]
    fn the_first_wait_is_charged_from_its_sample_on_and_each_other_one_for_all_that_was_left() {
        let mut samples = WaitSamples { left: MS, ..WaitSamples::default() };
        samples.found(MS);
        assert_eq!(samples.left, 0);
        samples.left = MS;
        samples.found(2 * MS);
        assert_eq!(samples.left, MS);
        samples.found(2 * MS + LATELY);
        assert_eq!(samples.left, 0);
    }

    #[test]
    fn samples_come_at_random_within_their_span() {
        let mut times = SampleTimes { random: 1, ..SampleTimes::new() };
        let mut tenths = [0; 10];
        for _ in 0..10_000 {
            times.plan(Some(1_000), MS);
            let time = times.next() - MS;
            assert!((1..=1_000).contains(&time));
            tenths[(time as usize - 1) / 100] += 1;
            assert!(!times.take(MS + time - 1) && times.take(MS + time) && !times.take(2 * MS));
        }
        assert!(tenths.iter().all(|&count| (800..1_200).contains(&count)), "{tenths:?}");
        assert_ne!(SampleTimes::new().random, SampleTimes::new().random);
    }

    #[test]
    fn a_sample_that_was_decided_comes_unless_it_is_to_come_sooner_or_not_at_all() {
        let mut times = SampleTimes::new();
        times.plan(Some(100 * MS), 0);
        let first = times.next();
        times.plan(Some(100 * MS), 1);
        times.plan(Some(200 * MS), 2);
        assert_eq!(times.next(), first);
        times.plan(Some(1), 3);
        assert!(times.next() <= 4);
        times.plan(None, 5);
        assert_eq!(times.next(), u64::MAX);
    }
}
