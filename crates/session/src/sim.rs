//! The simulator, driven by a session.

use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_diagnostic::Diagnostic;
use punctual_host_sim::{Simulation, Watcher};
use punctual_taskset::{fmt_ns, Body, Costs, TaskSet, TaskSpec};
use punctual_trace::{Interval, Period, PolicyStop, RunEvent};

use crate::driver::{as_declared, Driver, Execution, HostFigures, HostOutcome};
use crate::traces::Traces;
use crate::RunOptions;

pub(crate) struct SimDriver {
    simulation: Simulation,
    set: Arc<TaskSet>,
    costs: Costs,
    /// Virtual time at which it ends, ns.
    end: u64,
    intervals: bool,
}

impl SimDriver {
    pub fn start(
        set: Arc<TaskSet>,
        costs: Costs,
        options: RunOptions,
        executions: &[Execution],
        traces: &Traces,
    ) -> Result<SimDriver, Diagnostic> {
        as_declared(executions)?;
        let Some(end) = set.duration else {
            let cause = "a simulation needs an end, and the set has no duration";
            return Err(Diagnostic::usage(cause, "give it one, such as 10s"));
        };
        let host_options =
            punctual_host_sim::Options { costs, traces: traces.0.clone(), ..Default::default() };
        let simulation = Simulation::new(&set, host_options)?;
        Ok(SimDriver { simulation, set, costs, end, intervals: options.intervals })
    }
}

/// Passes on what happens, until it is time to return.
struct Observing<'a> {
    sink: &'a mut dyn FnMut(RunEvent),
    intervals: bool,
    until: Option<Instant>,
}

impl Watcher for Observing<'_> {
    fn period(&mut self, period: &Period) {
        (self.sink)((*period).into());
    }

    fn executed(&mut self, interval: &Interval) {
        if self.intervals {
            (self.sink)(RunEvent::Executed { task: interval.task, interval: *interval });
        }
    }

    fn policy_stopped(&mut self, stop: &PolicyStop) {
        (self.sink)(RunEvent::PolicyStopped(*stop));
    }

    fn proceeds(&mut self, _: u64) -> bool {
        self.until.is_none_or(|until| Instant::now() < until)
    }
}

impl Driver for SimDriver {
    fn origin(&self) -> u64 {
        0
    }

    fn now(&self) -> u64 {
        self.simulation.now()
    }

    /// Simulates for as long as it may wait.
    fn poll(&mut self, wait: Duration, sink: &mut dyn FnMut(RunEvent)) -> Result<bool, Diagnostic> {
        let mut observing =
            Observing { sink, intervals: self.intervals, until: Some(Instant::now() + wait) };
        self.simulation.advance(self.end, &mut observing)
    }

    fn finish(self: Box<Self>, sink: &mut dyn FnMut(RunEvent)) -> Result<HostOutcome, Diagnostic> {
        let SimDriver { simulation, set, costs, end, intervals } = *self;
        let outcome = simulation.finish(end, &mut Observing { sink, intervals, until: None })?;
        let notes = notes(&set, &costs, outcome.count.overhead);
        let figures = HostFigures { notes, ..HostFigures::default() };
        Ok(HostOutcome { ended: outcome.reached, figures, ..HostOutcome::default() })
    }
}

/// What a reader should know of how it was simulated; the host took `taken` ns for itself.
fn notes(set: &TaskSet, costs: &Costs, taken: u64) -> Vec<String> {
    let mut notes = Vec::new();
    let programs = |t: &&TaskSpec| matches!(t.body, Body::Command(_) | Body::Pid(_));
    let names: Vec<&str> = set.tasks.iter().filter(programs).map(|t| t.name.as_str()).collect();
    if !names.is_empty() {
        let are = if names.len() == 1 {
            "is simulated as a program that wants"
        } else {
            "are simulated as programs that want"
        };
        notes.push(format!("{} {are} all of every budget: nothing is started", names.join(", ")));
    }
    if !costs.is_free() {
        notes.push(format!("the host's own work: {costs}; {} in all, on no budget", fmt_ns(taken)));
    }
    notes
}
