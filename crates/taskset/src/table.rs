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
        let mut plan = Plan {
            wanted,
            closed: closed_times(taken, zero, settled + 2 * cycle),
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
