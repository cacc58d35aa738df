//! Time that is not available to a group's table: windows of others, and the time outside the
//! windows of the servers above it. Times are ns.

use punctual_taskset::{ServerSpec, TaskSet, TaskSpec, Window};

use crate::hyperperiod::gcd;

/// An interval that repeats: from `start` on, `length` in every `cycle`. ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReservedTime {
    /// From the start of the run.
    pub start: u64,
    /// After which it repeats, at least 1.
    pub cycle: u64,
    /// At most the cycle.
    pub length: u64,
}

impl ReservedTime {
    /// The windows that a task specifies, from its first release on.
    pub fn of_task(task: &TaskSpec) -> impl Iterator<Item = ReservedTime> + '_ {
        let cycle = task.period.max(1);
        let offset = task.offset % cycle;
        let windows = task.windows.iter();
        windows.map(move |w| ReservedTime { start: offset + w.start, cycle, length: w.length })
    }

    /// The windows of a server.
    pub fn of_windows(cycle: u64, windows: &[Window]) -> impl Iterator<Item = ReservedTime> + '_ {
        windows.iter().map(move |w| ReservedTime { start: w.start, cycle, length: w.length })
    }

    /// Whether the two intervals overlap in any cycle. `O(log cycle)`, exact.
    #[must_use]
    pub fn overlaps(&self, other: &ReservedTime) -> bool {
        let shared = gcd(self.cycle, other.cycle);
        let (a, b) = (self.start % shared, other.start % shared);
        let from_a_to_b = if b >= a { b - a } else { shared - (a - b) };
        let from_b_to_a = if from_a_to_b == 0 { 0 } else { shared - from_a_to_b };
        from_a_to_b < self.length || from_b_to_a < other.length
    }
}

/// The time outside the windows of a group's server and of all servers above it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutsideServers {
    /// The intervals, in no order; they may overlap.
    pub times: Vec<ReservedTime>,
    /// The lowest of these groups (an index in the set) whose server has a period and a budget, so
    /// that it receives the budget at no fixed time. `times` has no intervals of such servers.
    pub unfixed: Option<usize>,
}

impl OutsideServers {
    /// For a group of a set, or for group 0 (`None`), which has all of its CPU.
    #[must_use]
    pub fn new(set: &TaskSet, group: Option<usize>) -> OutsideServers {
        let mut outside = OutsideServers::default();
        let mut at = group;
        // A path of groups has at most as many levels as the set has groups.
        for _ in 0..set.groups.len() {
            let Some(g) = at else { break };
            match &set.groups[g].server {
                ServerSpec::Windows { cycle, windows } => outside.add_gaps(*cycle, windows),
                ServerSpec::Periodic { .. } => {
                    outside.unfixed.get_or_insert(g);
                }
            }
            at = set.groups[g].parent;
        }
        outside
    }

    fn add_gaps(&mut self, cycle: u64, windows: &[Window]) {
        let mut from = 0;
        let ends = windows.iter().map(|w| (w.start, w.start + w.length)).chain([(cycle, cycle)]);
        for (start, end) in ends {
            let length = start.saturating_sub(from);
            if length > 0 {
                self.times.push(ReservedTime { start: from, cycle, length });
            }
            from = end;
        }
    }
}

/// All intervals before `end` as (start, end), both counted from `zero`, sorted and merged.
pub(crate) fn merge(reserved: &[ReservedTime], zero: u64, end: u64) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for r in reserved.iter().filter(|r| r.length > 0) {
        // The interval that is in progress at `zero` counts too.
        let ahead = (r.start % r.cycle + r.cycle - zero % r.cycle) % r.cycle;
        let in_progress = (ahead + r.length).saturating_sub(r.cycle);
        if in_progress > 0 {
            all.push((0, in_progress));
        }
        let mut at = ahead;
        while at < end {
            all.push((at, at + r.length));
            at += r.cycle;
        }
    }
    all.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::with_capacity(all.len());
    for (from, to) in all {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_are_found_in_whatever_cycle_they_come() {
        let mut overlaps = 0;
        for (a_start, a_cycle, a_length) in
            [(0, 4, 1), (1, 6, 2), (5, 6, 3), (2, 10, 4), (9, 15, 6)]
        {
            for b_start in 0..12 {
                for (b_cycle, b_length) in [(4, 1), (6, 1), (9, 2), (15, 1), (7, 1)] {
                    let a = ReservedTime { start: a_start, cycle: a_cycle, length: a_length };
                    let b = ReservedTime { start: b_start, cycle: b_cycle, length: b_length };
                    let at = |t: &ReservedTime, now: u64| {
                        (now + 600 * t.cycle - t.start) % t.cycle < t.length
                    };
                    let found = (0..a_cycle * b_cycle).any(|now| at(&a, now) && at(&b, now));
                    assert_eq!(a.overlaps(&b), found, "{a:?} {b:?}");
                    overlaps += u32::from(found);
                }
            }
        }
        assert!(overlaps > 50 && overlaps < 290, "{overlaps} of 300 overlap");
    }
}
