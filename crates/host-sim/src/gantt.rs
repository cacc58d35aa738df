//! A schedule drawn in text, for small sets.
//!
//! ```text
//!        0         10        20 ms
//! servo  |##...|##...|##...|##...|
//! ```

use punctual_analysis::gcd;
use punctual_taskset::{fmt_ns, Arrival, Body, ServerSpec, Spin, Step, TaskSet};
use punctual_trace::{Period, NEVER};

use crate::{Interval, Watcher};

/// The most tasks that are drawn.
const TASKS: usize = 32;
/// The most lines of time, one below the other.
const BLOCKS: u64 = 6;
/// Where finer columns are possible: this many lines of time at most.
const EXACT_BLOCKS: u64 = 3;

/// Draws the schedule of a set from time 0 on. A [`Watcher`](crate::Watcher) passes on what
/// happens.
pub struct Gantt {
    names: Vec<String>,
    /// ns in one column.
    cell: u64,
    columns: usize,
    /// Drawn until, ns.
    end: u64,
    /// The run continues after the drawing.
    more: bool,
    /// Not drawn at all.
    left_out: usize,
    /// By task: what each column shows.
    rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Copy, Default)]
struct Cell {
    /// Executed on a budget, and in the ordinary class, ns.
    ran: u64,
    background: u64,
    released: bool,
    /// Released, and not done yet.
    pending: bool,
    missed: bool,
}

impl Gantt {
    /// For a run of a set until `end`, ns, on a terminal with so many columns.
    pub fn new(set: &TaskSet, end: u64, width: usize) -> Gantt {
        let names: Vec<String> = set.tasks.iter().take(TASKS).map(|t| t.name.clone()).collect();
        let longest = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
        let columns = width.saturating_sub(longest + 3).clamp(20, 400) / 10 * 10;
        let cell = cell_of(set, end, columns as u64);
        let drawn = end.min(cell.saturating_mul(columns as u64).saturating_mul(BLOCKS));
        let cells = usize::try_from(drawn.div_ceil(cell)).unwrap_or(0);
        Gantt {
            rows: vec![vec![Cell::default(); cells]; names.len()],
            left_out: set.tasks.len() - names.len(),
            names,
            cell,
            columns,
            end: drawn,
            more: drawn < end,
        }
    }

    /// The drawing, ending in a line break.
    pub fn draw(&self) -> String {
        let cells = self.rows.first().map_or(0, Vec::len);
        let longest = self.names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
        let mut out = String::new();
        for from in (0..cells).step_by(self.columns) {
            let to = (from + self.columns).min(cells);
            out += &format!("{:longest$}  {}\n", "", self.ruler(from, to));
            for (name, row) in self.names.iter().zip(&self.rows) {
                let line: String = row[from..to].iter().map(|cell| self.sign(cell)).collect();
                out += &format!("{name:longest$}  {}\n", line.trim_end());
            }
            out.push('\n');
        }
        out += &format!(
            "one column is {}: # executes (+ part of it), @ executes from its release on, ",
            fmt_ns(self.cell)
        );
        out += "| released,\n. waits, ! missed, - executes in the ordinary class\n";
        if self.more {
            out += &format!("drawn until {}, the run continued\n", fmt_ns(self.end));
        }
        if self.left_out > 0 {
            out += &format!("{} more tasks are not drawn\n", self.left_out);
        }
        out
    }

    fn sign(&self, cell: &Cell) -> char {
        match cell {
            Cell { missed: true, .. } => '!',
            Cell { released: true, ran: 0, .. } => '|',
            Cell { released: true, .. } => '@',
            Cell { ran, .. } if *ran * 2 >= self.cell => '#',
            Cell { ran, .. } if *ran > 0 => '+',
            Cell { background, .. } if *background > 0 => '-',
            Cell { pending: true, .. } => '.',
            _ => ' ',
        }
    }

    /// Times above the columns, as many as there is room for.
    fn ruler(&self, from: usize, to: usize) -> String {
        let mut line = String::new();
        let mut free = 0;
        for column in (from..to).step_by(10) {
            let at = fmt_ns(column as u64 * self.cell);
            let place = column - from;
            if place >= free {
                line += &" ".repeat(place - line.chars().count());
                line += &at;
                free = place + at.chars().count() + 1;
            }
        }
        line
    }

    fn columns_of(&self, from: u64, to: u64) -> std::ops::Range<usize> {
        let to = to.min(self.end);
        if from >= to {
            return 0..0;
        }
        (from / self.cell) as usize..to.div_ceil(self.cell) as usize
    }
}

impl Watcher for Gantt {
    fn period(&mut self, p: &Period) {
        if p.release >= self.end || p.task as usize >= self.rows.len() {
            return;
        }
        let over = if p.completed == NEVER { p.deadline } else { p.completed };
        let waits = self.columns_of(p.release, over);
        let deadline = self.columns_of(p.deadline.saturating_sub(1), p.deadline);
        let released = (p.release / self.cell) as usize;
        let row = &mut self.rows[p.task as usize];
        row[waits].iter_mut().for_each(|cell| cell.pending = true);
        row[released].released = true;
        if p.miss {
            row[deadline].iter_mut().for_each(|cell| cell.missed = true);
        }
    }

    fn executed(&mut self, s: &Interval) {
        if s.task as usize >= self.rows.len() {
            return;
        }
        for column in self.columns_of(s.from, s.to) {
            let begin = column as u64 * self.cell;
            let ran = s.to.min(begin + self.cell) - s.from.max(begin);
            let cell = &mut self.rows[s.task as usize][column];
            *if s.background { &mut cell.background } else { &mut cell.ran } += ran;
        }
    }
}

/// ns in one column: such that nothing begins or ends within one, if the whole run then fits into
/// a few lines; else 1, 2 or 5 times a power of ten, for one line of the whole run, or for its
/// beginning if a period would have fewer than four columns.
fn cell_of(set: &TaskSet, end: u64, columns: u64) -> u64 {
    let exact = times(set).fold(0, gcd);
    if exact > 0 && end / exact <= columns * EXACT_BLOCKS {
        return exact;
    }
    let shortest = set.tasks.iter().map(|t| t.period).min().unwrap_or(u64::MAX);
    let (mut cell, mut power) = (1u64, 1u64);
    loop {
        for step in [1, 2, 5] {
            let next = power.saturating_mul(step);
            if next > shortest / 4 {
                return cell;
            }
            cell = next;
            if end / cell <= columns {
                return cell;
            }
        }
        power = power.saturating_mul(10);
    }
}

/// All times of a set from which those of its schedule follow; none if some are random.
fn times(set: &TaskSet) -> impl Iterator<Item = u64> + '_ {
    let spins = |spin: &Spin| match spin {
        Spin::For(ns) => vec![*ns],
        Spin::Forever => Vec::new(),
        Spin::Recorded(all) => all.clone(),
        Spin::Uniform { .. } | Spin::Histogram { .. } => vec![1],
    };
    let tasks = set.tasks.iter().flat_map(move |t| {
        let mut all = vec![t.period, t.deadline, t.offset, t.budget];
        match &t.body {
            Body::Spin(spin) => all.extend(spins(spin)),
            Body::Steps(steps) => all.extend(steps.iter().flat_map(|step| match step {
                Step::Spin(spin) => spins(spin),
                Step::Sleep(ns) => vec![*ns],
            })),
            Body::Command(_) | Body::Pid(_) => {}
        }
        match &t.arrival {
            Arrival::Periodic => {}
            Arrival::List(at) => all.extend(at),
            Arrival::Sporadic { .. } | Arrival::Aperiodic { .. } => all.push(1),
        }
        all
    });
    let groups = set.groups.iter().flat_map(|g| match &g.server {
        ServerSpec::Periodic { period, budget, deadline, offset: start, .. } => {
            vec![*period, *budget, *deadline, *start]
        }
        ServerSpec::Windows { cycle, windows } => {
            windows.iter().flat_map(|w| [w.start, w.length]).chain([*cycle]).collect()
        }
    });
    let budgets = set.budget_groups.iter().flat_map(|b| [b.period, b.budget]);
    tasks.chain(groups).chain(budgets)
}
