//! Time tables: in which windows of a cycle each task executes (RED-Linux Table 1, "time driven").

use punctual_taskset::{TaskSpec, Window};

use crate::hyperperiod::lcm;
use crate::reserved_time::{merge, ReservedTime};
use crate::synthesis::Plan;
use crate::window_costs::{FoundWindows, HostWork};

/// Windows in one synthesised table at most.
pub const LARGEST_TABLE: usize = 1 << 16;

/// Windows that a set may specify in one group at most: each is compared with every other.
pub const MOST_WINDOWS: usize = 4_096;

/// A table's cycle is shorter than this, ns.
pub const LONGEST_CYCLE: u64 = 1 << 60;

/// How often a table is synthesised again with more room for what the host takes.
const ROUNDS: u32 = 32;

/// A periodic task for which windows are sought. Times are ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableTask {
    /// The first release.
    pub offset: u64,
    /// Time between releases, at least 1.
    pub period: u64,
    /// Execution time per release.
    pub budget: u64,
    /// Relative deadline, at most the period.
    pub deadline: u64,
}

impl From<&TaskSpec> for TableTask {
    fn from(task: &TaskSpec) -> TableTask {
        TableTask {
            offset: task.offset,
            period: task.period,
            budget: task.budget,
            deadline: task.deadline,
        }
    }
}

/// Why there is no table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableError {
    /// The least common multiple of all periods is [`LONGEST_CYCLE`] or more.
    LongCycle,
    /// It would have more than [`LARGEST_TABLE`] windows.
    TooLarge,
    /// A task cannot be completed by its deadline. Earliest deadline first is optimal on one CPU,
    /// so that no other table meets it either.
    Late {
        /// The task's index in the list.
        task: usize,
        /// The deadline, ns from the start of the cycle.
        deadline: u64,
        /// Execution time missing at the deadline, with what the host takes of it, ns.
        missing: u64,
    },
    /// The budgets and the reserved time are more than there is in each cycle of all periods.
    Overload {
        /// By how much, ns; at least 1.
        excess: u64,
    },
}

/// Windows for each release of each task; they repeat after the least common multiple of the
/// periods.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimeTable {
    windows: Vec<Window>,
    /// By task.
    rows: Vec<Rows>,
}

/// The rows of one task, one for each of its releases in a cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rows {
    /// First and past-the-end index in the table's windows.
    ranges: Vec<(u32, u32)>,
    /// Which row is that of the first release.
    first: u64,
}

impl TimeTable {
    /// The windows of a task's `number`th release, from 0; their starts count from the release.
    /// Empty for a task that is not in the table.
    #[must_use]
    pub fn windows(&self, task: usize, number: u64) -> &[Window] {
        let Some(rows) = self.rows.get(task).filter(|rows| !rows.ranges.is_empty()) else {
            return &[];
        };
        let n = rows.ranges.len() as u64;
        let (from, to) = rows.ranges[((rows.first % n + number % n) % n) as usize];
        &self.windows[from as usize..to as usize]
    }

    /// After how many releases a task's windows repeat; 0 for a task that is not in the table.
    #[must_use]
    pub fn rows(&self, task: usize) -> u64 {
        self.rows.get(task).map_or(0, |rows| rows.ranges.len() as u64)
    }

    /// How many windows a cycle has.
    pub(crate) fn count(&self) -> usize {
        self.windows.len()
    }

    /// The longest time, ns, from a release of a task to the end of its last window; `None` for a
    /// task without windows.
    pub(crate) fn response(&self, task: usize) -> Option<u64> {
        let last = (0..self.rows(task)).filter_map(|number| self.windows(task, number).last());
        last.map(|w| w.start + w.length).max()
    }

    /// Finds windows for all tasks, outside of the reserved time, by earliest deadline first. In
    /// its windows each task has its budget beside what the host takes.
    ///
    /// # Errors
    /// No table meets all deadlines, or it would be too long ([`LARGEST_TABLE`],
    /// [`LONGEST_CYCLE`]). With a host that takes time, another table might meet them.
    pub fn synthesise(
        tasks: &[TableTask],
        reserved: &[ReservedTime],
        host: &HostWork,
    ) -> Result<TimeTable, TableError> {
        let mut enlarged = tasks.to_vec();
        let mut late = TableError::TooLarge;
        for _ in 0..ROUNDS {
            let table = TimeTable::for_budgets(&enlarged, reserved)?;
            let Some((task, missing)) = table.enlarge(tasks, &mut enlarged, host) else {
                return Ok(table);
            };
            late = TableError::Late { task, deadline: tasks[task].deadline, missing };
        }
        Err(late)
    }

    /// Enlarges the budget of each task that lacks time in its windows because of the host; the
    /// last such task, and how much it lacks, ns.
    fn enlarge(
        &self,
        tasks: &[TableTask],
        enlarged: &mut [TableTask],
        host: &HostWork,
    ) -> Option<(usize, u64)> {
        if host.is_none() {
            return None;
        }
        let found = self.found(tasks);
        let mut rooms: Vec<Vec<u64>> =
            (0..tasks.len()).map(|task| vec![0; self.rows(task) as usize]).collect();
        for (task, number, at, length) in self.intervals(tasks) {
            let taken = host.within((at, found.cycle(), length), &found);
            rooms[task][number as usize] += length - taken;
        }
        let mut last = None;
        for (task, rooms) in rooms.iter().enumerate() {
            let least = rooms.iter().min().copied().unwrap_or(0);
            let missing = tasks[task].budget.saturating_sub(least);
            if missing > 0 {
                enlarged[task].budget = enlarged[task].budget.saturating_add(missing);
                last = Some((task, missing));
            }
        }
        last
    }

    /// Where its windows lie; `tasks` are those that it was synthesised for.
    pub(crate) fn found(&self, tasks: &[TableTask]) -> FoundWindows {
        let cycle = tasks.first().map_or(1, |task| task.period * self.rows(0));
        FoundWindows::new(cycle, self.intervals(tasks).map(|(_, _, at, length)| (at, length)))
    }

    /// Its windows; `tasks` are those that it was synthesised for.
    pub(crate) fn times<'a>(
        &'a self,
        tasks: &'a [TableTask],
    ) -> impl Iterator<Item = ReservedTime> + 'a {
        let cycle = tasks.first().map_or(1, |task| task.period * self.rows(0));
        self.intervals(tasks).map(move |(_, _, start, length)| ReservedTime {
            start,
            cycle,
            length,
        })
    }

    /// All windows of a cycle: task, release, start from the beginning of the run, length.
    fn intervals<'a>(
        &'a self,
        tasks: &'a [TableTask],
    ) -> impl Iterator<Item = (usize, u64, u64, u64)> + 'a {
        tasks.iter().enumerate().flat_map(move |(n, task)| {
            (0..self.rows(n)).flat_map(move |number| {
                let release = task.offset + number * task.period;
                let windows = self.windows(n, number).iter();
                windows.map(move |w| (n, number, release + w.start, w.length))
            })
        })
    }

    /// As [`synthesise`](TimeTable::synthesise), for a host that takes nothing.
    fn for_budgets(
        tasks: &[TableTask],
        reserved: &[ReservedTime],
    ) -> Result<TimeTable, TableError> {
        let cycle = cycle_of(tasks, reserved)?;
        let releases: u64 = tasks.iter().map(|t| cycle / t.period).sum();
        let intervals: u64 = reserved.iter().map(|r| cycle / r.cycle).sum();
        if releases > LARGEST_TABLE as u64 || intervals > LARGEST_TABLE as u64 {
            return Err(TableError::TooLarge);
        }
        // With equal offsets the schedule repeats from the first cycle on, otherwise from the
        // third: what is carried from one cycle into the next is then constant (Leung and Merrill
        // 1980).
        let zero = tasks.first().map_or(0, |t| t.offset % t.period);
        let synchronous = tasks.iter().all(|t| t.offset % t.period == zero);
        let (zero, settled) = if synchronous { (zero, 0) } else { (0, 2 * cycle) };
        let closed = merge(reserved, zero, settled + 2 * cycle);
        // Checked first: with offsets a small excess makes a job late only after many cycles.
        let shut = closed.iter().map(|c| c.1.min(settled + cycle).saturating_sub(c.0.max(settled)));
        let budgets = tasks.iter().map(|t| u128::from(cycle / t.period) * u128::from(t.budget));
        let needed = budgets.sum::<u128>() + shut.map(u128::from).sum::<u128>();
        if needed > u128::from(cycle) {
            let excess = u64::try_from(needed - u128::from(cycle)).unwrap_or(u64::MAX);
            return Err(TableError::Overload { excess });
        }
        let mut plan = Plan::new(tasks, closed, settled, cycle);
        plan.fill(zero)?;
        let mut table = TimeTable::default();
        for (rows, task) in plan.rows.iter().zip(tasks) {
            table.add(rows, task.offset / task.period);
        }
        Ok(table)
    }

    /// Adds the next task.
    fn add(&mut self, rows: &[Vec<Window>], first: u64) {
        let mut ranges = Vec::with_capacity(rows.len());
        for row in rows {
            let from = self.windows.len() as u32;
            self.windows.extend_from_slice(row);
            ranges.push((from, self.windows.len() as u32));
        }
        self.rows.push(Rows { ranges, first });
    }
}

fn cycle_of(tasks: &[TableTask], reserved: &[ReservedTime]) -> Result<u64, TableError> {
    let mut periods = tasks.iter().map(|t| t.period).chain(reserved.iter().map(|r| r.cycle));
    let cycle =
        periods.try_fold(1, |cycle, period| lcm(cycle, period).filter(|&c| c < LONGEST_CYCLE));
    cycle.ok_or(TableError::LongCycle)
}
