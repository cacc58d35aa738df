//! What the host takes of the windows of a time-driven group.
//!
//! The host's work is a queue that precedes all tasks. What it takes of a window [s, s + L) is at
//! most, over all times x for which the queue may have been busy before s,
//!
//! ```text
//! max over x of (work that arrives in [s - x, s + L) - x)
//! ```
//!
//! Periodic releases and windows lie at fixed times: an arrival counts only where it meets the
//! window in some cycle. Everything else counts as often as it can occur at all. For x stands a
//! grid, each of whose steps counts with its least x and the arrivals of its largest one: an upper
//! bound.

use indexmap::IndexMap;
use punctual_taskset::{Costs, DomainId, TaskSet};

use crate::hyperperiod::gcd;
use crate::interference::{host_work, of_window, Work};

/// Steps of the grid: each is twice as long as all before.
const GRID: usize = 9;

/// The longest time, ns, for which the host's work may keep a CPU by itself.
const LONGEST: u64 = 1 << 40;

/// The work of a host beside a time-driven group.
#[derive(Debug, Clone, Default)]
pub struct HostWork {
    works: Vec<Work>,
    /// Times before a window for which the host may have been busy, ns, growing.
    grid: [u64; GRID],
    /// What one window of the group's own table takes.
    window: u64,
    /// The end of a window's own job and the switch after it: after its execution.
    end: u64,
    /// The host may never be idle.
    is_overloaded: bool,
}

/// The windows of a synthesised table. ns from the start of its cycle.
#[derive(Debug, Clone, Default)]
pub(crate) struct FoundWindows {
    cycle: u64,
    /// In order, all within the cycle.
    starts: Vec<u64>,
    /// In order, modulo the cycle.
    ends: Vec<u64>,
    /// Windows that end in the cycle after that of their start.
    wrapped: u64,
}

impl HostWork {
    /// What a host with these costs does for a domain while `group` is carried out.
    #[must_use]
    pub fn new(set: &TaskSet, domain: DomainId, group: Option<usize>, costs: &Costs) -> HostWork {
        if costs.is_free() {
            return HostWork::default();
        }
        let mut merged: IndexMap<(Option<u64>, u64, u64), u64> = IndexMap::new();
        host_work(set, domain, costs, &|task| task.group != group, &mut |work| {
            let at = work.at.map(|at| at % work.period);
            let sum = merged.entry((at, work.period, work.jitter)).or_default();
            *sum = sum.saturating_add(work.amount);
        });
        let works = merged.into_iter();
        let works = works.map(|((at, period, jitter), amount)| Work { at, period, jitter, amount });
        let mut busy = 1;
        // As if nothing lay at a fixed time, and the group's own table were not known.
        let mut all: Vec<Work> = Vec::new();
        host_work(set, domain, costs, &|_| true, &mut |work| all.push(work));
        let is_overloaded = loop {
            let next = all.iter().fold(0, |sum, work| sum + work.sporadic(busy));
            if next <= u128::from(busy) {
                break false;
            }
            if next > u128::from(LONGEST) {
                break true;
            }
            busy = next as u64;
        };
        HostWork {
            works: works.collect(),
            grid: std::array::from_fn(|n| (busy >> (GRID - 1 - n)).max(1)),
            window: of_window(costs),
            end: costs.timer.max(costs.command) + costs.switch,
            is_overloaded,
        }
    }

    /// Whether the host takes nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        self.works.is_empty()
    }

    /// How many terms one window takes.
    pub(crate) fn terms(&self) -> usize {
        self.works.len()
    }

    /// The most that the host takes of a window before its job is done: `length` from `start` on in
    /// each `cycle`. `found`: windows of the same group that the set does not specify.
    pub(crate) fn within(
        &self,
        (start, cycle, length): (u64, u64, u64),
        found: &FoundWindows,
    ) -> u64 {
        if self.is_none() {
            return 0;
        }
        if self.is_overloaded {
            return length;
        }
        let mut sums = [0u128; GRID];
        for work in &self.works {
            let shared = gcd(cycle, work.period);
            for (sum, &before) in sums.iter_mut().zip(&self.grid) {
                *sum += work.within(start, shared, before, length);
            }
        }
        let mut most = 0;
        let mut least_before = 0;
        for (sum, &before) in sums.iter().zip(&self.grid) {
            let own = found.meeting(start, cycle, before, length);
            let own = u128::from(own) * u128::from(self.window);
            most = most.max((sum + own).saturating_sub(u128::from(least_before)));
            least_before = before;
        }
        // The job's own window is among them.
        u64::try_from(most).unwrap_or(u64::MAX).saturating_sub(self.end).min(length)
    }
}

impl Work {
    /// The most within any `length`.
    fn sporadic(&self, length: u64) -> u128 {
        let times = length.saturating_add(self.jitter).div_ceil(self.period);
        u128::from(times) * u128::from(self.amount)
    }

    /// The most from `before` ns before `start` until `length` after it, where `start` comes again
    /// in a cycle whose greatest common divisor with this period is `shared`.
    fn within(&self, start: u64, shared: u64, before: u64, length: u64) -> u128 {
        let Some(at) = self.at else { return self.sporadic(before.saturating_add(length)) };
        // From the earliest time whose work may still arrive in the interval.
        let ahead = before.saturating_add(self.jitter);
        let first = (u128::from(at) + u128::from(ahead)) % u128::from(shared);
        let first = (first + u128::from(shared) - u128::from(start % shared)) % u128::from(shared);
        let span = u128::from(ahead) + u128::from(length);
        span.saturating_sub(first).div_ceil(u128::from(self.period)) * u128::from(self.amount)
    }
}

impl FoundWindows {
    /// From intervals (start and length) that do not overlap in a cycle.
    pub(crate) fn new(cycle: u64, windows: impl Iterator<Item = (u64, u64)>) -> FoundWindows {
        let mut found = FoundWindows { cycle, ..FoundWindows::default() };
        for (start, length) in windows {
            let start = start % cycle;
            found.starts.push(start);
            found.ends.push((start + length) % cycle);
            found.wrapped += u64::from(start + length >= cycle);
        }
        found.starts.sort_unstable();
        found.ends.sort_unstable();
        found
    }

    /// After which they repeat, ns.
    pub(crate) fn cycle(&self) -> u64 {
        self.cycle
    }

    /// How many of them meet the time from `before` ns before `start` until `length` after it, in
    /// any `cycle`, which divides theirs.
    fn meeting(&self, start: u64, cycle: u64, before: u64, length: u64) -> u64 {
        if self.starts.is_empty() {
            return 0;
        }
        let starts = (0..self.cycle / cycle).map(|n| start % cycle + n * cycle);
        starts.map(|start| self.meeting_at(start, before, length)).max().unwrap_or(0)
    }

    fn meeting_at(&self, start: u64, before: u64, length: u64) -> u64 {
        let until = |times: &[u64], t: u64| {
            t / self.cycle * times.len() as u64
                + times.partition_point(|&time| time < t % self.cycle) as u64
        };
        let from = start % self.cycle + before.div_ceil(self.cycle) * self.cycle - before;
        let to = from + before + length;
        until(&self.starts, to) + self.wrapped - until(&self.ends, from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By looking at each ns: how often `work` may arrive in the interval, in any cycle.
    fn counted(work: &Work, start: u64, cycle: u64, before: u64, length: u64) -> u64 {
        let at = work.at.unwrap();
        let early = 40 * cycle * work.period;
        (0..work.period)
            .map(|n| {
                let from = early + start + n * cycle - before;
                let arrivals = (0..).map(|k| at + k * work.period);
                arrivals
                    .skip_while(|a| a + work.jitter < from)
                    .take_while(|&a| a < from + before + length)
                    .count() as u64
            })
            .max()
            .unwrap()
    }

    #[test]
    fn arrivals_at_fixed_times_are_those_that_counting_finds() {
        for (at, period, jitter) in [(0, 4, 0), (3, 6, 0), (5, 12, 2), (2, 5, 1), (1, 9, 4)] {
            let work = Work { at: Some(at), period, jitter, amount: 1 };
            for (start, cycle) in [(0, 6), (4, 12), (7, 9), (1, 10)] {
                for (before, length) in [(1, 1), (2, 3), (5, 4), (9, 6)] {
                    let found = work.within(start, gcd(cycle, period), before, length);
                    let seen = counted(&work, start, cycle, before, length);
                    assert_eq!(
                        found,
                        u128::from(seen),
                        "{work:?} {start} {cycle} {before} {length}"
                    );
                }
            }
        }
    }

    #[test]
    fn found_windows_that_meet_an_interval_are_those_that_counting_finds() {
        let windows = [(1u64, 3u64), (4, 2), (9, 4)];
        let found = FoundWindows::new(12, windows.into_iter());
        for start in 0..24 {
            for (before, length) in [(1, 1), (2, 5), (7, 3), (20, 4)] {
                let (from, to) = (start + 48 - before, start + 48 + length);
                let all =
                    (0..10).flat_map(|n| windows.map(|(at, len)| (at + 12 * n, at + 12 * n + len)));
                let seen = all.filter(|&(at, end)| at < to && end >= from).count() as u64;
                assert_eq!(
                    found.meeting_at(start, before, length),
                    seen,
                    "{start} {before} {length}"
                );
            }
        }
    }
}
