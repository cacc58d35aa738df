//! The trace of a simulated run, written while it runs: the dispatcher's ring never overflows.

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::Dispatcher;
use punctual_trace::{PolicyStop, Record, TraceSink};

/// From a CPU's engine to its trace.
pub(crate) struct Recorder {
    sink: TraceSink,
    /// Records of the dispatcher that were read.
    read: u64,
    /// The task that executed last, until its stop is recorded.
    running: Option<Running>,
    /// The changes of one instant.
    batch: Vec<Record>,
}

/// One task's execution, without a break. Times are ns.
struct Running {
    task: u32,
    background: bool,
    from: u64,
    to: u64,
}

impl Recorder {
    pub(crate) fn new(sink: TraceSink) -> Recorder {
        Recorder { sink, read: 0, running: None, batch: Vec::new() }
    }

    /// A task of the dispatcher executed. In order of time, and before the records of the instant
    /// `to` are drained.
    pub(crate) fn executed(&mut self, task: u32, background: bool, from: u64, to: u64) {
        match &mut self.running {
            Some(r) if (r.task, r.background, r.to) == (task, background, from) => r.to = to,
            _ => {
                self.stopped();
                self.batch.push(Record::running(from, task, 0, background));
                self.running = Some(Running { task, background, from, to });
            }
        }
    }

    /// No task executed since the last instant, or none will.
    pub(crate) fn stopped(&mut self) {
        if let Some(Running { task, from, to, .. }) = self.running.take() {
            self.batch.push(Record::stopped(to, task, 0, to - from));
        }
    }

    /// A group has another policy from now on.
    pub(crate) fn policy(&mut self, now: u64, group: u32, name: &str) {
        self.batch.push(Record::policy(now, group, name));
    }

    /// A group has another policy, because its own was stopped.
    pub(crate) fn policy_stopped(&mut self, stop: &PolicyStop) {
        self.batch.push(Record::policy_stopped(stop));
    }

    /// Writes what is new.
    pub(crate) fn drain(&mut self, dispatcher: &Dispatcher) -> Result<(), Diagnostic> {
        let count = dispatcher.record_count();
        while self.read < count {
            let Some(record) = dispatcher.record(self.read) else {
                let cause = "more happened at one instant than the dispatcher's ring holds";
                return Err(Diagnostic::usage(cause, "simulate it without a trace"));
            };
            self.batch.push(record);
            self.read += 1;
        }
        self.sink.records(&self.batch);
        self.batch.clear();
        Ok(())
    }
}
