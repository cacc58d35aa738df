//! Tasks as a task-set file describes them: synthetic execution, commands, running processes.

use punctual_diagnostic::Diagnostic;
use punctual_process::{CommandSpec, Output};
use punctual_taskset::{Body, Overrun, TaskSpec};
use punctual_workload::{Spinner, Work};

use crate::host::{Host, STACK};
use crate::overrun_signal;

impl Host {
    /// Adds task number `index` with what its `spec` executes. `stdin`: a command gets our standard
    /// input, which is only sensible for a single one; `output` is where its output goes.
    ///
    /// # Errors
    /// As [`add_thread`](Host::add_thread), [`add_command`](Host::add_command) and
    /// [`adopt`](Host::adopt).
    pub fn add_spec(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        stdin: bool,
        output: Output,
    ) -> Result<(), Diagnostic> {
        match &spec.body {
            Body::Spin(_) | Body::Steps(_) => self.add_synthetic(index, spec),
            Body::Command(argv) => {
                let mut command = CommandSpec::new(argv.iter().map(String::as_str));
                command.streams = output.streams(stdin);
                self.add_command(index, spec, command).map(drop)
            }
            Body::Pid(pid) => self.adopt(index, spec, *pid),
        }
    }

    fn add_synthetic(&mut self, index: u32, spec: &TaskSpec) -> Result<(), Diagnostic> {
        let Some(mut work) = Work::of(&spec.body) else { return Ok(()) };
        let spinner = *self.spinner.get_or_insert_with(Spinner::calibrate);
        if spec.overrun == Overrun::Signal {
            overrun_signal::survive().map_err(|e| {
                Diagnostic::machine(
                    format!("SIGXCPU cannot be handled: {e}"),
                    "use another overrun policy",
                )
            })?;
        }
        self.add_thread(index, spec, STACK, move |task| loop {
            if !work.run_job(&spinner, task.over()) {
                return;
            }
            if task.wait_period().is_none() {
                return;
            }
        })
    }
}
