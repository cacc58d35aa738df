//! Synthesis of a time table: earliest deadline first, simulated on an otherwise idle CPU.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use punctual_taskset::Window;

use crate::time_table::{TableError, TableTask, LARGEST_TABLE};

/// A schedule in the making. Times are ns from the first release that it simulates.
pub(crate) struct Plan<'a> {
    tasks: &'a [TableTask],
    /// Reserved intervals as (start, end), in order and disjoint.
    closed: Vec<(u64, u64)>,
    /// By task, then by release: its windows.
    pub(crate) rows: Vec<Vec<Vec<Window>>>,
    /// How many windows all rows have.
    count: usize,
    /// Releases from here on, and before `end`, make the table.
    settled: u64,
    end: u64,
}

/// A job that is not completed: deadline, task, release, remaining execution time.
type Pending = Reverse<(u64, usize, u64, u64)>;

impl<'a> Plan<'a> {
    /// An empty schedule, whose table has one cycle from `settled` on.
    pub(crate) fn new(
        tasks: &'a [TableTask],
        closed: Vec<(u64, u64)>,
        settled: u64,
        cycle: u64,
    ) -> Plan<'a> {
        let rows = tasks.iter().map(|t| vec![Vec::new(); (cycle / t.period) as usize]).collect();
        Plan { tasks, closed, rows, count: 0, settled, end: settled + cycle }
    }

    /// Fills all rows. `zero`: where the schedule begins, in ns after the start of the run.
    ///
    /// # Errors
    /// A job is late, or there are too many windows.
    pub(crate) fn fill(&mut self, zero: u64) -> Result<(), TableError> {
        let mut releases: BinaryHeap<Reverse<(u64, usize)>> = self
            .tasks
            .iter()
            .enumerate()
            .map(|(i, t)| Reverse((t.offset % t.period - zero, i)))
            .collect();
        let mut ready: BinaryHeap<Pending> = BinaryHeap::new();
        let mut closed = 0;
        let mut now = 0;
        // Jobs of the table that are not completed.
        let mut pending: usize = self.rows.iter().map(Vec::len).sum();
        while pending > 0 {
            while let Some(&Reverse((at, i))) = releases.peek().filter(|r| r.0 .0 <= now) {
                releases.pop();
                let t = &self.tasks[i];
                releases.push(Reverse((at + t.period, i)));
                ready.push(Reverse((at + t.deadline, i, at, t.budget)));
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
            self.add_window(i, release, now, until - now)?;
            let left = left - (until - now);
            if left > 0 {
                ready.push(Reverse((deadline, i, release, left)));
            } else if (self.settled..self.end).contains(&release) {
                pending -= 1;
            }
            now = until;
        }
        Ok(())
    }

    /// Adds a window, or extends the last one of its release.
    fn add_window(
        &mut self,
        task: usize,
        release: u64,
        at: u64,
        length: u64,
    ) -> Result<(), TableError> {
        if !(self.settled..self.end).contains(&release) {
            return Ok(());
        }
        let row =
            &mut self.rows[task][((release - self.settled) / self.tasks[task].period) as usize];
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
    use crate::reserved_time::ReservedTime;
    use crate::time_table::{TableError, TableTask, TimeTable};
    use crate::window_costs::HostWork;

    fn synthesise(tasks: &[TableTask], reserved: &[ReservedTime]) -> Result<TimeTable, TableError> {
        TimeTable::synthesise(tasks, reserved, &HostWork::default())
    }

    fn task(offset: u64, period: u64, budget: u64, deadline: u64) -> TableTask {
        TableTask { offset, period, budget, deadline }
    }

    /// Which task executes at each ns, from the tables of all releases; `None` where two do.
    fn laid_out(table: &TimeTable, all: &[TableTask], from: u64, to: u64) -> Option<Vec<usize>> {
        let mut tasks = vec![usize::MAX; (to - from) as usize];
        for (i, w) in all.iter().enumerate() {
            for number in 0.. {
                let release = w.offset + number * w.period;
                if release >= to {
                    break;
                }
                let row = table.windows(i, number);
                assert_eq!(
                    row.iter().map(|w| w.length).sum::<u64>(),
                    w.budget,
                    "task {i}, release {number}"
                );
                for window in row {
                    assert!(
                        window.start + window.length <= w.deadline,
                        "task {i}, release {number}: {window:?}"
                    );
                    for at in release + window.start..release + window.start + window.length {
                        if (from..to).contains(&at)
                            && std::mem::replace(&mut tasks[(at - from) as usize], i) != usize::MAX
                        {
                            return None;
                        }
                    }
                }
            }
        }
        Some(tasks)
    }

    #[test]
    fn windows_hold_the_budget_before_the_deadline_and_never_overlap() {
        let sets: [&[TableTask]; 4] = [
            &[task(0, 5, 2, 5), task(0, 7, 4, 7), task(0, 35, 1, 35)],
            &[task(3, 5, 2, 5), task(9, 7, 4, 7), task(50, 35, 1, 35)],
            &[task(1, 4, 1, 1), task(2, 4, 1, 2), task(0, 8, 4, 8)],
            &[task(7, 6, 3, 4), task(0, 9, 2, 9), task(100, 18, 1, 12)],
        ];
        for all in sets {
            let table = synthesise(all, &[]).unwrap_or_else(|e| panic!("{all:?}: {e:?}"));
            assert!(laid_out(&table, all, 0, 700).is_some(), "{all:?}");
        }
    }

    #[test]
    fn windows_keep_out_of_reserved_time() {
        let all = [task(0, 10, 3, 10), task(2, 20, 5, 20)];
        // The second one is under way at the beginning of each cycle.
        let reserved = [
            ReservedTime { start: 2, cycle: 5, length: 1 },
            ReservedTime { start: 19, cycle: 20, length: 3 },
        ];
        let table = synthesise(&all, &reserved).unwrap();
        let tasks = laid_out(&table, &all, 0, 200).unwrap();
        for at in 40..200u64 {
            let closed = reserved.iter().any(|t| (at - t.start) % t.cycle < t.length);
            assert!(
                !closed || tasks[at as usize] == usize::MAX,
                "task {} at {at}",
                tasks[at as usize]
            );
        }
    }

    #[test]
    fn a_late_task_is_named_with_the_missing_time() {
        let all = [task(0, 10, 2, 3), task(0, 10, 2, 3)];
        assert_eq!(
            synthesise(&all, &[]),
            Err(TableError::Late { task: 1, deadline: 3, missing: 1 }),
        );
        let all = [task(0, 2, 1, 2), task(0, 3, 2, 3)];
        assert_eq!(synthesise(&all, &[]), Err(TableError::Overload { excess: 1 }), "7/6 of a CPU");
    }

    #[test]
    fn an_overload_that_offsets_hide_for_many_cycles_is_refused() {
        // 25/24 of a CPU; simulated, the first job is late after some 150 ns, in the seventh cycle.
        let all = [task(13, 24, 1, 24), task(7, 12, 4, 11), task(15, 24, 16, 24)];
        assert_eq!(synthesise(&all, &[]), Err(TableError::Overload { excess: 1 }));
        let fits = [task(13, 24, 1, 24), task(7, 12, 4, 11), task(15, 24, 15, 24)];
        assert!(synthesise(&fits, &[]).is_ok());
        // Time that is reserved twice counts once.
        let reserved = [
            ReservedTime { start: 3, cycle: 12, length: 1 },
            ReservedTime { start: 3, cycle: 24, length: 1 },
        ];
        let excess = synthesise(&fits, &reserved);
        assert_eq!(excess, Err(TableError::Overload { excess: 2 }));
    }

    #[test]
    fn tables_that_are_too_long_are_refused_before_the_synthesis() {
        let long = [task(0, (1 << 31) - 1, 1, 1), task(0, 1 << 31, 1, 1)];
        assert_eq!(synthesise(&long, &[]), Err(TableError::LongCycle));
        let large = [task(0, 10, 1, 10), task(0, 1_000_003, 1, 10)];
        assert_eq!(synthesise(&large, &[]), Err(TableError::TooLarge));
    }
}
