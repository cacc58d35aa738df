//! The misses of a trace, each with its window, shares and cause.

use punctual_diagnostic::Diagnostic;
use punctual_taskset::{ServerKind, TaskSet};
use punctual_trace::{Header, JobEnd, Period, Trace, NEVER};

use crate::cause::{find, Cause, Facts};
use crate::history::History;
use crate::window::{demand, Activity, Window};

/// A part of a window. Times are ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Start.
    pub from_ns: u64,
    /// End.
    pub to_ns: u64,
    /// What it was used for.
    pub what: Activity,
}

/// All of a window that one activity took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// What it was used for.
    pub what: Activity,
    /// How long in all, ns.
    pub ns: u64,
}

/// Why one deadline was missed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The period.
    pub period: Period,
    /// When its work was done, ns; `None` if it never was, as far as the trace goes.
    pub done_ns: Option<u64>,
    /// From release to deadline, in order and without a hole.
    pub spans: Vec<Span>,
    /// The same by activity, the longest first: they add up to the window, to the nanosecond.
    pub shares: Vec<Share>,
    /// The main cause.
    pub cause: Cause,
}

impl Explanation {
    /// Deadline to the end of its work, ns; `None` if it was never done.
    #[must_use]
    pub fn late_ns(&self) -> Option<u64> {
        self.done_ns.map(|done| done.saturating_sub(self.period.deadline))
    }
}

/// A trace that was read for explanations.
pub struct Explainer {
    header: Header,
    set: TaskSet,
    history: History,
    lost: u64,
}

impl Explainer {
    /// Reads all of a trace once; memory grows with its records.
    ///
    /// # Errors
    /// Its header has no set, or one that this version does not read; or it was cut to some tasks.
    pub fn new(trace: &Trace) -> Result<Explainer, Diagnostic> {
        if trace.header.set.is_empty() {
            let help = "record the run with `punctual run --trace` or `punctual sim --trace`";
            return Err(Diagnostic::usage(
                "the trace has no task set: nothing says what was promised",
                help,
            ));
        }
        if trace.header.cut.as_ref().is_some_and(|cut| !cut.tasks.is_empty()) {
            return Err(Diagnostic::usage(
                "the trace was cut to some of its tasks: nothing says what the others did",
                "use the trace that it was cut from, or cut it without --task",
            ));
        }
        let set = TaskSet::parse_recorded(&trace.header.set, "the trace's set")?;
        let history = History::read(trace, &set);
        Ok(Explainer { header: trace.header.clone(), set, history, lost: trace.lost() })
    }

    /// The trace's header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The set that ran.
    #[must_use]
    pub fn set(&self) -> &TaskSet {
        &self.set
    }

    /// How many records are missing in the trace.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The periods of a task, by its place in the set; in order of release.
    #[must_use]
    pub fn periods(&self, task: u32) -> &[Period] {
        self.history.tasks.get(task as usize).map_or(&[], |t| &t.periods)
    }

    /// How many periods of a task the trace has whole: to their deadline, or to a miss.
    #[must_use]
    pub fn whole_periods(&self, task: u32) -> u64 {
        let whole = |p: &&Period| p.miss || p.deadline <= self.history.end;
        self.periods(task).iter().filter(whole).count() as u64
    }

    /// Explains all misses: those that were never done first, then the latest.
    #[must_use]
    pub fn misses(&self) -> Vec<Explanation> {
        let periods = self.history.tasks.iter().flat_map(|task| &task.periods);
        let mut all: Vec<Explanation> =
            periods.filter(|p| p.miss).map(|p| self.explain(p)).collect();
        all.sort_by_key(|e| {
            (std::cmp::Reverse(e.late_ns().unwrap_or(u64::MAX)), e.period.release, e.period.task)
        });
        all
    }

    /// Why the deadline of this period, one of [`periods`](Explainer::periods), was missed.
    #[must_use]
    pub fn explain(&self, period: &Period) -> Explanation {
        let window = Window::new(&self.set, &self.history, period, self.header.host == "user");
        let spans = window.spans();
        let shares = shares(&spans);
        let facts = self.facts(&window, &shares);
        let cause = find(&self.set, &shares, &facts);
        Explanation { period: *period, done_ns: self.done(&window), spans, shares, cause }
    }

    /// When the work of a window was done, ns.
    fn done(&self, window: &Window<'_>) -> Option<u64> {
        if window.period.completed != NEVER {
            return Some(window.period.completed);
        }
        match window.carried_until() {
            u64::MAX => None,
            carried => window.task().done_after(carried.max(window.period.release), 0),
        }
    }

    fn facts(&self, window: &Window<'_>, shares: &[Share]) -> Facts {
        let (period, task) = (window.period, window.task());
        let begun = window.carried_until().max(period.release);
        let executed = period_share(shares, Activity::Executed);
        let spec = &self.set.tasks[period.task as usize];
        let measured = self.done(window).map(|done| task.executed(begun, done));
        let demand = measured.or_else(|| demand(&spec.body));
        // Work of earlier releases that is still to be done at the deadline.
        let carried_on = match window.carried_until() {
            u64::MAX => 1,
            until => task.executed(period.deadline.min(until), until),
        };
        let lacking = demand.unwrap_or(spec.budget).saturating_sub(executed).max(1);
        let given = task.released.get(&period.number).map_or(period.assigned, |r| r.budget);
        Facts {
            domain: spec.domain,
            window: period.deadline - period.release,
            lacking: lacking.saturating_add(carried_on),
            demand,
            budget: spec.budget,
            given,
            exhausted: period.end == JobEnd::Exhausted,
            adapted: spec.server == Some(ServerKind::Adaptive) && period.assigned < spec.budget,
            cut: period.unused,
            woken_late: period.woken_late,
        }
    }
}

/// The shares of a window, the longest first.
fn shares(spans: &[Span]) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::new();
    for span in spans {
        let ns = span.to_ns - span.from_ns;
        match shares.iter_mut().find(|share| share.what == span.what) {
            Some(share) => share.ns += ns,
            None => shares.push(Share { what: span.what, ns }),
        }
    }
    shares.sort_by_key(|share| (std::cmp::Reverse(share.ns), share.what));
    shares
}

/// What one activity took, ns.
fn period_share(shares: &[Share], what: Activity) -> u64 {
    shares.iter().find(|share| share.what == what).map_or(0, |share| share.ns)
}
