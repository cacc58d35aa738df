//! The kernel's own policies, driven by a session.

use std::time::Duration;

use punctual_baseline::{start, Baseline, BaselineHost, BaselineStart};
use punctual_diagnostic::Diagnostic;
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::TaskSet;
use punctual_trace::RunEvent;

use crate::driver::{as_declared, Driver, Execution, HostFigures, HostOutcome};
use crate::RunOptions;

pub use punctual_baseline::Unsupported;

pub(crate) struct BaselineDriver(Box<BaselineHost>);

impl BaselineDriver {
    /// The inner error: the kernel's policies, or this machine, cannot run the set; nothing ran.
    pub fn start(
        set: &TaskSet,
        baseline: Baseline,
        options: &RunOptions,
        executions: &[Execution],
    ) -> Result<Result<BaselineDriver, Unsupported>, Diagnostic> {
        as_declared(executions)?;
        let RunOptions { stop, unpinned, .. } = options;
        let duration = set.duration.unwrap_or(0);
        let options =
            punctual_baseline::Options { duration, stop: stop.clone(), unpinned: *unpinned };
        Ok(match start(set, baseline, &options)? {
            BaselineStart::Running(host) => Ok(BaselineDriver(host)),
            BaselineStart::NotPossible(refusal) => Err(refusal),
        })
    }
}

impl Driver for BaselineDriver {
    fn origin(&self) -> u64 {
        self.0.started()
    }

    fn now(&self) -> u64 {
        monotonic_ns()
    }

    /// Waits for 10 ms: the records are read so often.
    fn poll(&mut self, _: Duration, sink: &mut dyn FnMut(RunEvent)) -> Result<bool, Diagnostic> {
        Ok(self.0.poll(&mut |period| sink(period.into())))
    }

    fn finish(
        mut self: Box<Self>,
        sink: &mut dyn FnMut(RunEvent),
    ) -> Result<HostOutcome, Diagnostic> {
        // The watchdogs end the run at its end, or when `stop` is set; then the observers report
        // the rest.
        while !self.0.poll(&mut |period| sink(period.into())) {}
        let run = self.0.finish();
        let figures = HostFigures { notes: run.notes, ..HostFigures::default() };
        Ok(HostOutcome {
            ended: run.ended,
            figures,
            unreported: run.lost,
            ..HostOutcome::default()
        })
    }
}
