//! punctuald, driven by a session.

use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_host_service::{accepts_options, ReservedProgram, ServiceHost};
use punctual_process::{CommandSpec, Output};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::{Body, DomainId, TaskChange, TaskSet, TaskSpec};
use punctual_trace::RunEvent;

use crate::driver::{Driver, Execution, HostOutcome};
use crate::suspension::TaskSuspension;
use crate::task_thread::{call, of_another_host, TaskThread, ThreadBody, ThreadEntry};
use crate::traces::Traces;
use crate::RunOptions;

pub(crate) struct ServiceDriver {
    host: ServiceHost,
    started: u64,
    stdin: bool,
    output: Output,
}

impl ServiceDriver {
    pub fn start(
        set: &TaskSet,
        options: &RunOptions,
        executions: Vec<Execution>,
        traces: &Traces,
    ) -> Result<ServiceDriver, Diagnostic> {
        accepts_options(false, !traces.0.is_empty())?;
        let RunOptions { stdin, output, .. } = *options;
        let host = ServiceHost::start(set)?;
        let mut driver = ServiceDriver { host, started: 0, stdin, output };
        let (mut programs, mut threads) = (Vec::new(), Vec::new());
        for ((spec, execution), index) in set.tasks.iter().zip(executions).zip(0..) {
            match execution {
                Execution::Thread { .. } | Execution::Entered(_) => {
                    threads.push((index, spec, execution));
                }
                program => programs.push((index, spec, driver.program(spec, program)?)),
            }
        }
        driver.host.add_programs(programs)?;
        for (index, spec, thread) in threads {
            driver.reserve(index, spec, thread)?;
        }
        driver.host.begin();
        driver.started = monotonic_ns();
        Ok(driver)
    }

    fn reserve(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        execution: Execution,
    ) -> Result<(), Diagnostic> {
        match execution {
            Execution::Thread { stack, body } => self.add_thread(index, spec, stack, body),
            Execution::Entered(entry) => match &*entry {
                ThreadEntry::Service(entry) => self.host.add_entered(index, spec, entry),
                ThreadEntry::User(_) => Err(of_another_host(spec)),
            },
            program => {
                let program = self.program(spec, program)?;
                self.host.add_programs(vec![(index, spec, program)])
            }
        }
    }

    fn add_thread(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        stack: usize,
        body: ThreadBody,
    ) -> Result<(), Diagnostic> {
        self.host.add_thread(index, spec, stack, move |thread| {
            let how = call(body, TaskThread::Service(&thread));
            thread.end_with(how);
        })
    }

    fn program(
        &self,
        spec: &TaskSpec,
        execution: Execution,
    ) -> Result<ReservedProgram, Diagnostic> {
        let refused = |cause: &str, help: &str| {
            Err(Diagnostic::usage(cause.to_owned(), help).of_task(&spec.name))
        };
        let mut command = match (execution, &spec.body) {
            (Execution::Command(argv), _) => CommandSpec::new(argv),
            (Execution::AdoptedThread { page: None, pid, tid }, _) => {
                return Ok(ReservedProgram::ThreadOf { pid, tid })
            }
            (Execution::AsDeclared, Body::Command(argv)) => CommandSpec::new(argv),
            (Execution::AsDeclared, Body::Pid(pid)) => return Ok(ReservedProgram::Process(*pid)),
            (Execution::AsDeclared, Body::Spin(_) | Body::Steps(_)) => {
                return refused("it is synthetic", "use another host, or give it a command")
            }
            _ => return refused("the service makes its pages itself", "use the user host"),
        };
        command.streams = self.output.streams(self.stdin);
        Ok(ReservedProgram::Command(command))
    }
}

impl Driver for ServiceDriver {
    fn origin(&self) -> u64 {
        self.started
    }

    fn now(&self) -> u64 {
        monotonic_ns()
    }

    fn poll(&mut self, wait: Duration, sink: &mut dyn FnMut(RunEvent)) -> Result<bool, Diagnostic> {
        std::thread::sleep(wait);
        self.host.poll(sink).map(|()| false)
    }

    fn add(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        execution: Execution,
        first: Option<u64>,
    ) -> Result<(), Diagnostic> {
        if first.is_some() {
            let cause = "the service sets the time of the first release";
            return Err(Diagnostic::usage(cause, "leave it out").of_task(&spec.name));
        }
        self.reserve(index, spec, execution)?;
        self.host.begin();
        Ok(())
    }

    fn stop_task(&mut self, index: u32) -> Result<(), Diagnostic> {
        self.host.stop_task(index)
    }

    fn change(&mut self, index: u32, change: &TaskChange) -> Result<(), Diagnostic> {
        self.host.change(index, change)
    }

    fn suspension(&self, index: u32) -> Result<TaskSuspension, Diagnostic> {
        self.host.suspension(index).map(TaskSuspension::Service)
    }

    fn prepare_entry(&self, _: DomainId) -> Result<ThreadEntry, Diagnostic> {
        Ok(ThreadEntry::Service(self.host.prepare_entry()))
    }

    fn finish(self: Box<Self>, sink: &mut dyn FnMut(RunEvent)) -> Result<HostOutcome, Diagnostic> {
        let outcome = self.host.finish(sink);
        Ok(HostOutcome {
            ended: outcome.ended,
            unreported: outcome.dropped,
            problems: outcome.problems,
            ..HostOutcome::default()
        })
    }
}
