//! punctuald, driven by a session.

use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_host_service::ServiceHost;
use punctual_process::CommandSpec;
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::TaskSet;
use punctual_trace::RunEvent;

use crate::driver::{as_declared, Driver, Execution, HostOutcome};
use crate::traces::Traces;
use crate::RunOptions;

pub(crate) struct ServiceDriver(ServiceHost);

impl ServiceDriver {
    pub fn start(
        set: &TaskSet,
        options: &RunOptions,
        executions: &[Execution],
        traces: &Traces,
    ) -> Result<ServiceDriver, Diagnostic> {
        as_declared(executions)?;
        if !traces.0.is_empty() {
            return Err(Diagnostic::usage(
                "the service writes no traces of its clients",
                "leave out the trace, or use another host",
            ));
        }
        let RunOptions { stdin, output, .. } = options;
        let host = ServiceHost::start(set, |argv| {
            let mut command = CommandSpec::new(argv.iter().map(String::as_str));
            command.streams = output.streams(*stdin);
            command
        })?;
        Ok(ServiceDriver(host))
    }
}

impl Driver for ServiceDriver {
    fn origin(&self) -> u64 {
        self.0.started()
    }

    fn now(&self) -> u64 {
        monotonic_ns()
    }

    fn poll(&mut self, wait: Duration, sink: &mut dyn FnMut(RunEvent)) -> Result<bool, Diagnostic> {
        std::thread::sleep(wait);
        self.0.poll(sink).map(|()| false)
    }

    fn stop_task(&mut self, index: u32) -> Result<(), Diagnostic> {
        self.0.stop_task(index)
    }

    fn change_budget(&mut self, index: u32, budget: u64) -> Result<(), Diagnostic> {
        self.0.change_budget(index, budget)
    }

    fn finish(self: Box<Self>, sink: &mut dyn FnMut(RunEvent)) -> Result<HostOutcome, Diagnostic> {
        let outcome = self.0.finish(sink);
        Ok(HostOutcome {
            ended: outcome.ended,
            unreported: outcome.dropped,
            problems: outcome.problems,
            ..HostOutcome::default()
        })
    }
}
