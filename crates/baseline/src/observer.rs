//! Reads each task's CPU clock at each of its period boundaries, on the task's CPU and above it, so
//! that while it reads, no task runs whose clock it reads. Nothing here allocates or panics.

use crate::judge::{judge, still_open, Measured, Nature, Terms};
use crate::shared::{Control, SetupStep, TaskState, STAMPS};
use crate::sys::{set_affinity, set_policy, KernelPolicy};
use punctual_sys::clock::{monotonic_ns, sleep_until_unless, CpuClock};
use punctual_trace::{JobEnd, Period, NEVER};
use rtrb::Producer;
use std::sync::atomic::Ordering::*;

/// Records held back until their job is done. Fewer than there are stamps, or they would be
/// overwritten.
const HELD: usize = STAMPS / 2;

/// The observer's policies beside FIFO and ordinary tasks.
pub const ABOVE_ALL: &[KernelPolicy] = &[KernelPolicy::Fifo(99)];
/// Beside SCHED_DEADLINE tasks, which are above SCHED_FIFO 99: one of them, with a deadline before
/// all others. Where the 5 % that it takes do not fit, it is often late.
pub const AMONG_DEADLINES: &[KernelPolicy] = &[reservation(10_000), KernelPolicy::Fifo(99)];
/// The same where it shares several CPUs' bandwidth.
pub const AMONG_DEADLINES_FREE: &[KernelPolicy] = &[reservation(40_000), KernelPolicy::Fifo(99)];

const fn reservation(runtime: u64) -> KernelPolicy {
    KernelPolicy::Deadline { runtime, deadline: 200_000, period: 200_000 }
}

/// One task under observation.
pub struct Watch<'a> {
    terms: Terms,
    state: &'a TaskState,
    offset: u64,
    /// Next boundary, ns; `NEVER` when there is none.
    next: u64,
    number: u64,
    last: Option<(u64, u64)>,
    held: [Option<Period>; HELD],
    first_held: usize,
    count_held: usize,
}

impl<'a> Watch<'a> {
    /// A task whose first release is `offset` ns after the start.
    pub fn new(terms: Terms, offset: u64, state: &'a TaskState) -> Watch<'a> {
        Watch {
            terms,
            state,
            offset,
            next: NEVER,
            number: 0,
            last: None,
            held: [None; HELD],
            first_held: 0,
            count_held: 0,
        }
    }

    fn clock(&self) -> Option<u64> {
        match (self.state.id.load(Acquire), self.terms.nature) {
            (0, _) => None,
            (pid, Nature::Command) => CpuClock::of_process(pid).read(),
            (tid, _) => CpuClock::of_thread(tid).read(),
        }
    }

    /// The boundary at `self.next` has been reached: the record of the period that it ends, if it
    /// is one.
    fn sample(&mut self) -> Option<Period> {
        let boundary = self.next;
        let late = monotonic_ns().saturating_sub(boundary);
        let clock = self.clock();
        let gone = self.state.gone.load(Acquire) || clock.is_none();
        let before = std::mem::replace(&mut self.last, clock.map(|clock| (clock, late)));
        self.next = if gone { NEVER } else { boundary.saturating_add(self.terms.period) };
        // The very first reading ends no period.
        let (was, late_begin) = before?;
        let measured = Measured {
            number: self.number,
            release: boundary.saturating_sub(self.terms.period),
            received: clock.map_or(0, |clock| clock.saturating_sub(was)),
            late_begin,
            late_end: late,
        };
        self.number += 1;
        let mut period = judge(&self.terms, &measured, self.state);
        if gone {
            (period.end, period.miss) = (JobEnd::TaskGone, false);
            period = period.unknown();
        }
        Some(period)
    }

    /// Number of unsampled periods that end by `reached`, ns. The first boundary of all ends none.
    fn unsampled_until(&self, reached: u64) -> u64 {
        let left =
            reached.checked_sub(self.next).map_or(0, |left| left / self.terms.period.max(1) + 1);
        left.saturating_sub(u64::from(self.number == 0 && self.last.is_none()))
    }

    /// Keeps a record until its job is done, or no longer than there is room; gives what can go out
    /// to `emit`.
    fn hold(&mut self, period: Period, emit: &mut impl FnMut(Period)) {
        if self.count_held == HELD {
            self.release_first(emit);
        }
        self.held[(self.first_held + self.count_held) % HELD] = Some(period);
        self.count_held += 1;
        self.release_done(emit);
    }

    fn release_done(&mut self, emit: &mut impl FnMut(Period)) {
        while self.count_held > 0 {
            let waits = self.terms.nature == Nature::Ends;
            let open = match &mut self.held[self.first_held] {
                Some(period) => {
                    waits && period.end != JobEnd::TaskGone && still_open(period, self.state)
                }
                None => false,
            };
            if open {
                return;
            }
            self.release_first(emit);
        }
    }

    fn release_first(&mut self, emit: &mut impl FnMut(Period)) {
        if let Some(period) = self.held[self.first_held].take() {
            emit(period);
        }
        self.first_held = (self.first_held + 1) % HELD;
        self.count_held -= 1;
    }
}

/// The observer of one CPU.
pub struct Observer<'a> {
    /// Its CPU.
    pub cpu: u32,
    /// Where it may be; `None`: anywhere. The clocks of this process's own threads are exact from
    /// any CPU.
    pub pinned: Option<u32>,
    /// Its policy, the first that the kernel gives it.
    pub policies: &'static [KernelPolicy],
    /// Its tasks.
    pub watches: Vec<Watch<'a>>,
    /// Where records go.
    pub ring: Producer<Period>,
    /// The run.
    pub control: &'a Control,
}

impl Observer<'_> {
    /// The thread's life.
    pub fn live(mut self) {
        if let Err(errno) = set_affinity(self.pinned) {
            self.control.fail(SetupStep::ObserverAffinity, self.cpu, errno);
        } else if let Err(errno) = self.rise() {
            self.control.fail(SetupStep::ObserverPolicy, self.cpu, errno);
        } else if let Some(start) = self.control.wait_for_start() {
            for watch in &mut self.watches {
                watch.next = start.saturating_add(watch.offset);
            }
            self.observe();
        }
        self.control.observed.fetch_add(1, AcqRel);
    }

    fn rise(&self) -> Result<(), i32> {
        let mut result = Ok(());
        for &policy in self.policies {
            result = set_policy(0, policy, false);
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn observe(&mut self) {
        // Those that run for ever do not end by themselves: the end of the run is the watchdog's,
        // and the flag is ours.
        let end = self.control.end.load(Acquire);
        let (ring, lost) = (&mut self.ring, &self.control.lost);
        let mut emit = |period: Period| {
            if ring.push(period).is_err() {
                lost.fetch_add(1, Relaxed);
            }
        };
        loop {
            let next = self.watches.iter().map(|watch| watch.next).min().unwrap_or(NEVER);
            if next > end || !sleep_until_unless(next, &self.control.stop) {
                break;
            }
            for watch in &mut self.watches {
                // Several boundaries may have passed while the observer itself was kept waiting.
                while watch.next <= end
                    && watch.next <= monotonic_ns()
                    && !self.control.stop.load(Acquire)
                {
                    if let Some(period) = watch.sample() {
                        watch.hold(period, &mut emit);
                    }
                }
            }
        }
        // The watchdogs stopped the run first: the tasks' threads, and with them their clocks, may
        // have gone.
        let reached = end.min(monotonic_ns());
        let unsampled = self.watches.iter().map(|watch| watch.unsampled_until(reached)).sum();
        lost.fetch_add(unsampled, Relaxed);
        for watch in &mut self.watches {
            watch.release_done(&mut emit);
            while watch.count_held > 0 {
                watch.release_first(&mut emit);
            }
        }
    }
}
