//! Time tables: which windows of a cycle each task executes in, found off line by earliest
//! deadline first (RED-Linux Table 1, "time driven": the scheduler's times).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Window;

/// Windows in one table at most.
pub const LARGEST_TABLE: usize = 1 << 16;

/// A table's cycle is shorter than this, ns.
pub const LONGEST_CYCLE: u64 = 1 << 60;

/// A periodic task that wants its place. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// Offset of the first release.
    pub start: u64,
    /// Time between releases, at least 1.
    pub period: u64,
    /// Execution time per release.
    pub budget: u64,
    /// Relative deadline, at most the period.
    pub deadline: u64,
}

/// Time that is not available: from `start` on, `length` in every `cycle`. ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// From the start of the run.
    pub start: u64,
    /// After which it comes again, at least 1.
    pub cycle: u64,
    /// At most the cycle.
    pub length: u64,
}

/// Why there is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableError {
    /// All periods together come again only after 2^60 ns or more.
    LongCycle,
    /// It would have more than [`LARGEST_TABLE`] windows.
    TooLarge,
    /// The task (a place in the list) cannot be done by its deadline: so much, ns, is missing at
    /// that time (after the start of the cycle). Earliest deadline first is optimal on one CPU, so
    /// no other table can do it either.
    Late {
        /// Whose deadline.
        task: usize,
        /// The deadline, ns.
        deadline: u64,
        /// Execution time missing then, ns.
        missing: u64,
    },
    /// The budgets and the taken time are more than there is, by so much, ns, in each cycle of all
    /// periods together.
    Overload {
        /// At least 1 ns.
        excess: u64,
    },
}

/// Windows for every release of every task, over and over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeTable {
    windows: Vec<Window>,
    /// By task: its rows, one for each release in a cycle (windows from .. to), and which of them is
    /// that of its first release.
    rows: Vec<(Vec<(u32, u32)>, u64)>,
}

impl TimeTable {
    /// The windows of a task's `number`th release, from 0; their starts count from the release.
    #[must_use]
    pub fn windows(&self, task: usize, number: u64) -> &[Window] {
        let Some((rows, first)) = self.rows.get(task) else { return &[] };
        if rows.is_empty() {
            return &[];
        }
        let n = rows.len() as u64;
        let (from, to) = rows[((first % n + number % n) % n) as usize];
        &self.windows[from as usize..to as usize]
    }

    /// After how many releases a task's windows come again; 0 for a task that is not in the table.
    #[must_use]
    pub fn rows(&self, task: usize) -> u64 {
        self.rows.get(task).map_or(0, |(rows, _)| rows.len() as u64)
    }

    /// A table that is given: the same windows at every release.
    #[must_use]
    pub fn given(tasks: &[&[Window]]) -> TimeTable {
        let mut table = TimeTable { windows: Vec::new(), rows: Vec::new() };
        for windows in tasks {
            let from = table.windows.len() as u32;
            table.windows.extend_from_slice(windows);
            table.rows.push((vec![(from, table.windows.len() as u32)], 0));
        }
        table
    }

    /// Finds windows for all, outside of what is taken.
    ///
    /// # Errors
    /// No table can do it, or it would be too long.
    pub fn synthesise(wanted: &[Wanted], taken: &[Taken]) -> Result<TimeTable, TableError> {
        let cycle = cycle_of(wanted, taken)?;
        let releases: u64 = wanted.iter().map(|w| cycle / w.period).sum();
        let closed: u64 = taken.iter().map(|t| cycle / t.cycle).sum();
        if releases > LARGEST_TABLE as u64 || closed > LARGEST_TABLE as u64 {
            return Err(TableError::TooLarge);
        }
        // Released together, all begin anew after one cycle. Else what goes on from one cycle into
        // the next is settled after two (Leung and Merrill 1980).
        let zero = wanted.first().map_or(0, |w| w.start % w.period);
        let together = wanted.iter().all(|w| w.start % w.period == zero);
        let (zero, settled) = if together { (zero, 0) } else { (0, 2 * cycle) };
        let closed = closed_times(taken, zero, settled + 2 * cycle);
        // With offsets a small excess shows as a late job only after many cycles.
        let shut = closed.iter().map(|c| c.1.min(settled + cycle).saturating_sub(c.0.max(settled)));
        let budgets = wanted.iter().map(|w| u128::from(cycle / w.period) * u128::from(w.budget));
        let needed = budgets.sum::<u128>() + shut.map(u128::from).sum::<u128>();
        if needed > u128::from(cycle) {
            let excess = u64::try_from(needed - u128::from(cycle)).unwrap_or(u64::MAX);
            return Err(TableError::Overload { excess });
        }
        let mut plan = Plan {
            wanted,
            closed,
            rows: wanted.iter().map(|w| vec![Vec::new(); (cycle / w.period) as usize]).collect(),
            count: 0,
            settled,
            end: settled + cycle,
        };
        plan.fill(zero)?;
        let mut table = TimeTable { windows: Vec::with_capacity(plan.count), rows: Vec::new() };
        for (rows, w) in plan.rows.iter().zip(wanted) {
            let mut places = Vec::with_capacity(rows.len());
            for row in rows {
                let from = table.windows.len() as u32;
                table.windows.extend_from_slice(row);
                places.push((from, table.windows.len() as u32));
            }
            table.rows.push((places, w.start / w.period));
        }
        Ok(table)
    }
}

fn cycle_of(wanted: &[Wanted], taken: &[Taken]) -> Result<u64, TableError> {
    let mut cycle = 1u64;
    for period in wanted.iter().map(|w| w.period).chain(taken.iter().map(|t| t.cycle)) {
        let shared = gcd(cycle, period);
        cycle = (cycle / shared).checked_mul(period).filter(|&c| c < LONGEST_CYCLE).ok_or(TableError::LongCycle)?;
    }
    Ok(cycle)
}

/// The greatest common divisor.
#[must_use]
pub fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Whether two times that come again, each after its cycle, ever overlap.
#[must_use]
pub fn overlap(a: &Taken, b: &Taken) -> bool {
    let shared = gcd(a.cycle, b.cycle);
    let (x, y) = (a.start % shared, b.start % shared);
    let from_a_to_b = if y >= x { y - x } else { shared - (x - y) };
    let from_b_to_a = if from_a_to_b == 0 { 0 } else { shared - from_a_to_b };
    from_a_to_b < a.length || from_b_to_a < b.length
}

/// All taken times before `end`, counted from `zero`, in order and merged.
fn closed_times(taken: &[Taken], zero: u64, end: u64) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    for t in taken.iter().filter(|t| t.length > 0) {
        // The one that may be under way at `zero` belongs to it.
        let ahead = (t.start % t.cycle + t.cycle - zero % t.cycle) % t.cycle;
        let under_way = (ahead + t.length).saturating_sub(t.cycle);
        if under_way > 0 {
            all.push((0, under_way));
        }
        let mut at = ahead;
        while at < end {
            all.push((at, at + t.length));
            at += t.cycle;
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

/// Earliest deadline first in an empty machine, on paper.
struct Plan<'a> {
    wanted: &'a [Wanted],
    closed: Vec<(u64, u64)>,
    rows: Vec<Vec<Vec<Window>>>,
    count: usize,
    /// Releases from here on, and before `end`, make the table.
    settled: u64,
    end: u64,
}

/// A job: deadline, task, release, what is left.
type Pending = Reverse<(u64, usize, u64, u64)>;

impl Plan<'_> {
    fn fill(&mut self, zero: u64) -> Result<(), TableError> {
        let mut releases: BinaryHeap<Reverse<(u64, usize)>> =
            self.wanted.iter().enumerate().map(|(i, w)| Reverse((w.start % w.period - zero, i))).collect();
        let mut ready: BinaryHeap<Pending> = BinaryHeap::new();
        let mut closed = 0;
        let mut now = 0;
        // How many jobs of the table are still to be done.
        let mut open: usize = self.rows.iter().map(Vec::len).sum();
        while open > 0 {
            while let Some(&Reverse((at, i))) = releases.peek().filter(|r| r.0 .0 <= now) {
                releases.pop();
                let w = &self.wanted[i];
                releases.push(Reverse((at + w.period, i)));
                ready.push(Reverse((at + w.deadline, i, at, w.budget)));
            }
            while self.closed.get(closed).is_some_and(|c| c.1 <= now) {
                closed += 1;
            }
            let next_release = releases.peek().map_or(u64::MAX, |r| r.0 .0);
            let Some(&Reverse((deadline, i, release, left))) = ready.peek() else {
                now = next_release;
                continue;
            };
            if now >= deadline {
                return Err(TableError::Late {
                    task: i,
                    deadline: deadline % (self.end - self.settled),
                    missing: left,
                });
            }
            let (shut, reopened) = self.closed.get(closed).copied().unwrap_or((u64::MAX, u64::MAX));
            if shut <= now {
                now = reopened.min(next_release).min(deadline);
                continue;
            }
            let until = (now + left).min(next_release).min(shut).min(deadline);
            ready.pop();
            self.window(i, release, now, until - now)?;
            let left = left - (until - now);
            if left > 0 {
                ready.push(Reverse((deadline, i, release, left)));
            } else if (self.settled..self.end).contains(&release) {
                open -= 1;
            }
            now = until;
        }
        Ok(())
    }

    fn window(&mut self, task: usize, release: u64, at: u64, length: u64) -> Result<(), TableError> {
        if !(self.settled..self.end).contains(&release) {
            return Ok(());
        }
        let row = &mut self.rows[task][((release - self.settled) / self.wanted[task].period) as usize];
        let start = at - release;
        match row.last_mut() {
            Some(last) if last.start + last.length == start => last.length += length,
            _ => {
                self.count += 1;
                if self.count > LARGEST_TABLE {
                    return Err(TableError::TooLarge);
                }
                row.push(Window { start, length });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(start: u64, period: u64, budget: u64, deadline: u64) -> Wanted {
        Wanted { start, period, budget, deadline }
    }

    /// Who executes at each ns, from the tables of all releases; `None` if two do.
    fn laid_out(table: &TimeTable, all: &[Wanted], from: u64, to: u64) -> Option<Vec<usize>> {
        let mut who = vec![usize::MAX; (to - from) as usize];
        for (i, w) in all.iter().enumerate() {
            for number in 0.. {
                let release = w.start + number * w.period;
                if release >= to {
                    break;
                }
                let row = table.windows(i, number);
                assert_eq!(row.iter().map(|w| w.length).sum::<u64>(), w.budget, "task {i}, release {number}");
                for window in row {
                    assert!(window.start + window.length <= w.deadline, "task {i}, release {number}: {window:?}");
                    for at in release + window.start..release + window.start + window.length {
                        if (from..to).contains(&at)
                            && std::mem::replace(&mut who[(at - from) as usize], i) != usize::MAX
                        {
                            return None;
                        }
                    }
                }
            }
        }
        Some(who)
    }

    #[test]
    fn windows_hold_the_budget_before_the_deadline_and_never_overlap() {
        let sets: [&[Wanted]; 4] = [
            &[wanted(0, 5, 2, 5), wanted(0, 7, 4, 7), wanted(0, 35, 1, 35)],
            &[wanted(3, 5, 2, 5), wanted(9, 7, 4, 7), wanted(50, 35, 1, 35)],
            &[wanted(1, 4, 1, 1), wanted(2, 4, 1, 2), wanted(0, 8, 4, 8)],
            &[wanted(7, 6, 3, 4), wanted(0, 9, 2, 9), wanted(100, 18, 1, 12)],
        ];
        for all in sets {
            let table = TimeTable::synthesise(all, &[]).unwrap_or_else(|e| panic!("{all:?}: {e:?}"));
            assert!(laid_out(&table, all, 0, 700).is_some(), "{all:?}");
        }
    }

    #[test]
    fn windows_keep_out_of_what_is_taken() {
        let all = [wanted(0, 10, 3, 10), wanted(2, 20, 5, 20)];
        // The second one is under way at the beginning of each cycle.
        let taken = [Taken { start: 2, cycle: 5, length: 1 }, Taken { start: 19, cycle: 20, length: 3 }];
        let table = TimeTable::synthesise(&all, &taken).unwrap();
        let who = laid_out(&table, &all, 0, 200).unwrap();
        for at in 40..200u64 {
            let closed = taken.iter().any(|t| (at - t.start) % t.cycle < t.length);
            assert!(!closed || who[at as usize] == usize::MAX, "task {} at {at}", who[at as usize]);
        }
    }

    #[test]
    fn who_is_late_is_named_with_what_is_missing() {
        let all = [wanted(0, 10, 2, 3), wanted(0, 10, 2, 3)];
        assert_eq!(TimeTable::synthesise(&all, &[]), Err(TableError::Late { task: 1, deadline: 3, missing: 1 }),);
        let all = [wanted(0, 2, 1, 2), wanted(0, 3, 2, 3)];
        assert_eq!(TimeTable::synthesise(&all, &[]), Err(TableError::Overload { excess: 1 }), "7/6 of a CPU");
    }

    #[test]
    fn an_overload_that_offsets_hide_for_many_cycles_is_refused() {
        // 25/24 of a CPU; simulated, the first job is late after some 150 ns, in the seventh cycle.
        let all = [wanted(13, 24, 1, 24), wanted(7, 12, 4, 11), wanted(15, 24, 16, 24)];
        assert_eq!(TimeTable::synthesise(&all, &[]), Err(TableError::Overload { excess: 1 }));
        let fits = [wanted(13, 24, 1, 24), wanted(7, 12, 4, 11), wanted(15, 24, 15, 24)];
        assert!(TimeTable::synthesise(&fits, &[]).is_ok());
        // What is taken twice counts once.
        let taken = [Taken { start: 3, cycle: 12, length: 1 }, Taken { start: 3, cycle: 24, length: 1 }];
        let excess = TimeTable::synthesise(&fits, &taken);
        assert_eq!(excess, Err(TableError::Overload { excess: 2 }));
    }

    #[test]
    fn what_is_too_long_is_refused_before_it_is_tried() {
        let long = [wanted(0, (1 << 31) - 1, 1, 1), wanted(0, 1 << 31, 1, 1)];
        assert_eq!(TimeTable::synthesise(&long, &[]), Err(TableError::LongCycle));
        let large = [wanted(0, 10, 1, 10), wanted(0, 1_000_003, 1, 10)];
        assert_eq!(TimeTable::synthesise(&large, &[]), Err(TableError::TooLarge));
    }

    #[test]
    fn overlaps_are_found_in_whatever_cycle_they_come() {
        let mut overlaps = 0;
        for (a_start, a_cycle, a_length) in [(0, 4, 1), (1, 6, 2), (5, 6, 3), (2, 10, 4), (9, 15, 6)] {
            for b_start in 0..12 {
                for (b_cycle, b_length) in [(4, 1), (6, 1), (9, 2), (15, 1), (7, 1)] {
                    let a = Taken { start: a_start, cycle: a_cycle, length: a_length };
                    let b = Taken { start: b_start, cycle: b_cycle, length: b_length };
                    let at = |t: &Taken, now: u64| (now + 600 * t.cycle - t.start) % t.cycle < t.length;
                    let found = (0..a_cycle * b_cycle).any(|now| at(&a, now) && at(&b, now));
                    assert_eq!(overlap(&a, &b), found, "{a:?} {b:?}");
                    overlaps += u32::from(found);
                }
            }
        }
        assert!(overlaps > 50 && overlaps < 290, "{overlaps} of 300 overlap");
    }
}
