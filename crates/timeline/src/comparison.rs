//! How two traces differ: figures of each task side by side, and where their schedules part.
//!
//! ```text
//! Timeline ──> Side ──┐
//! Timeline ──> Side ──┴──> Comparison (over the time that both have)
//! ```
//!
//! Nothing is compared record by record: two hosts, kernels or policies record different things of
//! the same set. Whether two versions decide the same is a matter of `scripts/same-decisions`.

mod figures;
mod parting;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use punctual_trace::{Header, Period, NEVER};

use crate::{Moment, What};

pub use figures::{Figures, Percentiles};
pub use parting::Parting;

/// What is compared of one trace. Its memory grows with its periods and executions.
#[derive(Debug, Default)]
pub struct Side {
    /// By name.
    tasks: BTreeMap<String, Vec<Period>>,
    names: Vec<String>,
    /// By places in the set.
    executions: Vec<(u64, u64, u32)>,
    /// The part of its run that the trace has.
    part: (u64, u64),
    /// The last time of the trace.
    ended: u64,
    /// Records that the run has lost.
    pub lost: u64,
}

/// Two traces compared, with the times of the first. All times are ns.
#[derive(Debug)]
pub struct Comparison {
    /// The tasks of the first, then those that only the second has.
    pub tasks: Vec<TaskComparison>,
    /// How much time was compared: what both traces have. 0: they have none in common.
    pub compared: u64,
    /// Periods that one has and that are not within this time.
    pub left_out: [u64; 2],
    /// Where the schedules part for longer than the tolerance first.
    pub parting: Option<Parting>,
    /// For how long other tasks executed, in all partings together.
    pub apart: u64,
    /// Differences of times up to this are none.
    pub tolerance: u64,
}

/// One task in both traces; `None` in one that does not have it.
#[derive(Debug)]
pub struct TaskComparison {
    /// Its name.
    pub name: String,
    /// Its figures in each trace.
    pub figures: [Option<Figures>; 2],
}

impl TaskComparison {
    /// Whether both traces have it, with the same counts, and times that are at most `tolerance`,
    /// ns, apart.
    #[must_use]
    pub fn is_same(&self, tolerance: u64) -> bool {
        match &self.figures {
            [Some(a), Some(b)] => a.is_same(b, tolerance),
            _ => false,
        }
    }
}

impl Side {
    /// What a trace with this header has so far: nothing.
    #[must_use]
    pub fn new(header: &Header) -> Side {
        let tasks = header.tasks.iter().map(|name| (name.clone(), Vec::new())).collect();
        let part = header.cut.as_ref().map_or((0, u64::MAX), |cut| (cut.from, cut.to));
        Side { names: header.tasks.clone(), tasks, part, ..Side::default() }
    }

    /// Takes the next moment.
    pub fn add(&mut self, moment: &Moment) {
        self.ended = self.ended.max(moment.at);
        match moment.what {
            What::Period(period) => {
                let name = self.name(period.task);
                self.tasks.entry(name).or_default().push(period);
            }
            // The user host does not see execution in the ordinary class.
            What::Executed { task, from, background: false } => {
                self.executions.push((from, moment.at, task));
            }
            What::LostRecords { count } => self.lost = self.lost.saturating_add(count),
            _ => {}
        }
    }

    fn name(&self, place: u32) -> String {
        let name = self.names.get(place as usize);
        name.cloned().unwrap_or_else(|| format!("task {place}"))
    }

    /// From the first release to the deadline of the last one, ns, as far as a part has both.
    /// Longer deadlines of other tasks do not count: what is released meanwhile is not reported
    /// any more.
    fn span(&self) -> Option<(u64, u64)> {
        let periods = || self.tasks.values().flatten().filter(|p| self.is_over(p));
        let from = periods().map(|p| p.release).min()?;
        let last = periods().max_by_key(|p| (p.release, Reverse(p.deadline)))?;
        let to = if last.deadline == NEVER { last.release + 1 } else { last.deadline };
        Some((from.max(self.part.0), to.min(self.part.1)))
    }

    /// Of one that the end of the run cut off, nothing is known.
    fn is_over(&self, period: &Period) -> bool {
        period.miss || period.deadline <= self.ended || self.part.1 != u64::MAX
    }

    /// Its periods within this time, ns.
    fn within(&self, name: &str, (from, to): (u64, u64)) -> Option<Vec<&Period>> {
        let within = |p: &&Period| p.release >= from && p.release < to && self.is_over(p);
        Some(self.tasks.get(name)?.iter().filter(within).collect())
    }
}

/// How far the clock of the second trace is ahead: by the first release that both have, else by
/// their first releases.
fn clock_difference(a: &Side, b: &Side) -> i64 {
    let pairs = a.tasks.iter().filter_map(|(name, periods)| {
        let others = b.tasks.get(name)?;
        let (first, other) = (periods.first()?, others.first()?);
        let number = first.number.max(other.number);
        let of =
            |periods: &[Period]| periods.iter().find(|p| p.number == number).map(|p| p.release);
        Some((of(periods)?, of(others)?))
    });
    let starts = || Some((a.span()?.0, b.span()?.0));
    let pair = pairs.min().or_else(starts).unwrap_or((0, 0));
    pair.1.wrapping_sub(pair.0) as i64
}

impl Comparison {
    /// Compares two traces, aligned by a release that both have. Differences of times up to
    /// `tolerance`, ns, are none.
    #[must_use]
    pub fn new(a: &Side, b: &Side, tolerance: u64) -> Comparison {
        let ahead = clock_difference(a, b);
        let to_a = |at: u64| at.wrapping_sub(ahead as u64);
        let both = a.span().zip(b.span()).map(|(a, b)| {
            let (from, to) = (a.0.max(to_a(b.0)), a.1.min(to_a(b.1)));
            (from, to.max(from))
        });
        let (from, to) = both.unwrap_or((0, 0));
        let to_b = |at: u64| at.wrapping_add(ahead as u64);
        let spans = [(from, to), (to_b(from), to_b(to))];
        let over = |side: &Side| {
            let periods = side.tasks.values().flatten();
            periods.filter(|p| side.is_over(p)).count()
        };
        let mut left_out = [a, b].map(over);
        let names = a.names.iter().chain(b.names.iter().filter(|name| !a.names.contains(name)));
        let more = a
            .tasks
            .keys()
            .chain(b.tasks.keys())
            .filter(|name| !a.names.contains(name) && !b.names.contains(name));
        let mut more: Vec<&String> = more.collect();
        more.sort_unstable();
        more.dedup();
        let tasks = names.chain(more).map(|name| {
            let mut periods = [a.within(name, spans[0]), b.within(name, spans[1])];
            drop_last_of_longer(&mut periods);
            for (left, periods) in left_out.iter_mut().zip(&periods) {
                *left -= periods.as_ref().map_or(0, Vec::len);
            }
            let figures = periods.map(|periods| periods.map(|periods| Figures::of(&periods)));
            TaskComparison { name: name.clone(), figures }
        });
        let tasks: Vec<TaskComparison> = tasks.collect();
        let partings = parting::sweep(a, b, ahead, (from, to), tolerance);
        Comparison {
            tasks,
            compared: to - from,
            left_out: left_out.map(|n| n as u64),
            apart: partings.apart,
            parting: partings.first,
            tolerance,
        }
    }

    /// Whether nothing is different but times within the tolerance.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.parting.is_none() && self.tasks.iter().all(|task| task.is_same(self.tolerance))
    }
}

/// The last release of a run may be reported or not, as its end comes.
fn drop_last_of_longer(periods: &mut [Option<Vec<&Period>>; 2]) {
    let [Some(a), Some(b)] = periods else { return };
    let (longer, shorter) = if a.len() > b.len() { (a, b) } else { (b, a) };
    let follows = |last: &&Period| shorter.last().is_some_and(|p| p.number + 1 == last.number);
    if longer.len() == shorter.len() + 1 && longer.last().is_some_and(follows) {
        longer.pop();
    }
}
