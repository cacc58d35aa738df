//! When each task executed, and what of that time nothing accounts for.

use punctual_trace::{kind, Record};

/// One task executed from `from` to `to`, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Execution {
    /// Place in the set.
    pub task: u32,
    pub from: u64,
    pub to: u64,
    /// In the ordinary class, on no budget.
    pub background: bool,
}

/// Reads executions from the records, in the order of their starts once finished.
///
/// As `Trace::intervals`, but shorter by what a host measured as not executed (`STOPPED`'s `a`):
/// the kernel host leaves out interrupts and stolen time.
pub(crate) struct Executions {
    /// Known by charges: the user host.
    by_charges: bool,
    running: Vec<(u32, u64, u64, bool)>,
    charged: (u64, Vec<(u32, u64)>),
    found: Vec<Execution>,
}

impl Executions {
    pub fn new(by_charges: bool) -> Executions {
        Executions { by_charges, running: Vec::new(), charged: (0, Vec::new()), found: Vec::new() }
    }

    /// `task`: the place in the set of the record's task.
    pub fn record(&mut self, r: &Record, task: Option<u32>) {
        match (r.kind, task) {
            (kind::RUNNING, Some(task)) => self.running.push((task, r.a, r.time, r.b != 0)),
            (kind::STOPPED, Some(task)) => {
                let thread = self
                    .running
                    .iter()
                    .position(|&(other, thread, ..)| (other, thread) == (task, r.b));
                if let Some((_, _, from, background)) =
                    thread.map(|at| self.running.swap_remove(at))
                {
                    let to = r.time.min(from.saturating_add(r.a));
                    self.add(Execution { task, from, to, background });
                }
            }
            // What executes at the other end of the gap is not known.
            (kind::LOST_RECORDS, _) => {
                self.line_up();
                self.running.clear();
            }
            (kind::CHARGE_TASK, Some(task)) if self.by_charges => {
                if self.charged.0 != r.time {
                    self.line_up();
                }
                self.charged.0 = r.time;
                self.charged.1.push((task, r.a));
            }
            _ => {}
        }
    }

    pub fn finish(mut self) -> Vec<Execution> {
        self.line_up();
        self.found.sort_by_key(|e| e.from);
        self.found
    }

    fn add(&mut self, execution: Execution) {
        if execution.from < execution.to {
            self.found.push(execution);
        }
    }

    /// Charges of one event, which begin with the best: they end at the event.
    fn line_up(&mut self) {
        let (to, charges) = std::mem::take(&mut self.charged);
        let all: u64 = charges.iter().map(|&(_, ns)| ns).sum();
        let mut from = to.saturating_sub(all);
        for (task, ns) in charges {
            self.add(Execution { task, from, to: from + ns, background: false });
            from += ns;
        }
    }
}
