//! Figures of a schedule, task by task.

use hdrhistogram::Histogram;
use punctual_trace::NEVER;

use crate::{Moment, What};

/// Figures of the moments that were added. Times are ns.
#[derive(Debug, Default)]
pub struct Stats {
    /// By place in the set, as far as the trace has tasks.
    pub tasks: Vec<TaskStats>,
    /// Records that the run has lost.
    pub lost: u64,
}

/// Figures of one task.
#[derive(Debug)]
pub struct TaskStats {
    /// Periods that were reported; the last release may have none.
    pub releases: u64,
    /// Deadlines that were missed.
    pub misses: u64,
    /// Periods in which it used up its budget, or reached its finish, before it was done.
    pub overruns: u64,
    /// Execution time, on budgets and in the background.
    pub executed: u64,
    /// How often it stopped before its job ended or it waited, and executed again.
    pub preemptions: u64,
    /// The longest time from a release to its completion, exact; 0 without completions.
    pub worst_response: u64,
    /// Times from releases to completions, each to three significant digits.
    responses: Histogram<u64>,
    /// When it stopped last.
    stopped: Option<u64>,
    /// When a job of its ended, or it was blocked: the latest, and the first since it stopped.
    ended: u64,
    ended_since: Option<u64>,
}

impl TaskStats {
    fn new() -> TaskStats {
        let responses = Histogram::new(3).expect("three digits are within its range");
        let (releases, misses, overruns, executed, preemptions, worst_response) =
            Default::default();
        let (stopped, ended, ended_since) = Default::default();
        TaskStats {
            releases,
            misses,
            overruns,
            executed,
            preemptions,
            worst_response,
            responses,
            stopped,
            ended,
            ended_since,
        }
    }

    /// Completions that were reported.
    #[must_use]
    pub fn completed(&self) -> u64 {
        self.responses.len()
    }

    /// So many percent of the completions took at most so long; `None` without completions.
    #[must_use]
    pub fn response(&self, percent: u8) -> Option<u64> {
        let value = self.responses.value_at_percentile(f64::from(percent));
        (self.completed() > 0).then_some(value.min(self.worst_response))
    }

    fn executes(&mut self, from: u64, to: u64) {
        self.executed += to - from;
        // An end during this execution is recorded before the execution is.
        let ended = self.ended_since.is_some_and(|ended| ended <= from);
        self.preemptions += u64::from(!ended && self.stopped.is_some_and(|stopped| stopped < from));
        self.stopped = Some(to);
        self.ended_since = (self.ended >= to).then_some(self.ended);
    }
}

impl Stats {
    /// Takes the next moment.
    pub fn add(&mut self, moment: &Moment) {
        if let What::LostRecords { count } = moment.what {
            self.lost = self.lost.saturating_add(count);
            // What happened between is not known.
            self.tasks.iter_mut().for_each(|task| task.stopped = None);
        }
        let Some(task) = moment.what.task() else { return };
        let at = task as usize;
        if self.tasks.len() <= at {
            self.tasks.resize_with(at + 1, TaskStats::new);
        }
        let task = &mut self.tasks[at];
        match moment.what {
            What::Executed { from, .. } => task.executes(from, moment.at),
            What::JobEnded { .. } | What::Blocked { .. } | What::Gone { .. } => {
                task.ended = moment.at;
                task.ended_since = task.ended_since.or(Some(moment.at));
            }
            What::Period(period) => {
                task.releases += 1;
                task.misses += u64::from(period.miss);
                task.overruns += u64::from(period.overrun);
                if period.completed != NEVER {
                    let response = period.completed.saturating_sub(period.release);
                    // It resizes itself, so that nothing is out of its range.
                    let _ = task.responses.record(response);
                    task.worst_response = task.worst_response.max(response);
                }
            }
            _ => {}
        }
    }
}
