//! The kernel host, driven by a session.

use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_host_kernel::{AddedProgram, KernelHost, Options, Outcome};
use punctual_program_jobs::{Attribute, GroupJobs, JobEvents, TaskJobs};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::{Body, TaskChange, TaskSet, TaskSpec};
use punctual_trace::RunEvent;

use crate::driver::{as_declared, Driver, Execution, HostFigures, HostOutcome};
use crate::results::KernelDispatcherStats;
use crate::suspension::TaskSuspension;
use crate::traces::Traces;
use crate::RunOptions;

pub(crate) struct KernelDriver(KernelHost);

impl KernelDriver {
    pub fn start(
        set: &TaskSet,
        options: RunOptions,
        executions: &[Execution],
        traces: &Traces,
    ) -> Result<KernelDriver, Diagnostic> {
        as_declared(executions)?;
        let RunOptions { owner, stdin, output, room, program_groups, loaded, .. } = options;
        let traces = traces.0.clone();
        let options = Options { owner, traces, stdin, output, room, program_groups, loaded };
        KernelHost::start(set, options).map(KernelDriver)
    }
}

impl Driver for KernelDriver {
    fn origin(&self) -> u64 {
        self.0.origin()
    }

    fn now(&self) -> u64 {
        monotonic_ns()
    }

    fn poll(&mut self, wait: Duration, sink: &mut dyn FnMut(RunEvent)) -> Result<bool, Diagnostic> {
        Ok(self.0.poll(wait, sink))
    }

    fn add(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        execution: Execution,
        first: Option<u64>,
    ) -> Result<(), Diagnostic> {
        let program = match (execution, &spec.body) {
            (Execution::Command(argv), _) => AddedProgram::Command(argv),
            (Execution::AdoptedThread { pid, tid, page }, _) => {
                AddedProgram::Thread { pid, tid, page }
            }
            (Execution::OwnThread(tid), _) => AddedProgram::OwnThread(tid),
            (Execution::AsDeclared, Body::Pid(pid)) => AddedProgram::Process(*pid),
            (Execution::AsDeclared, Body::Command(argv)) => {
                AddedProgram::Command(argv.iter().map(Into::into).collect())
            }
            _ => {
                let cause = "a set inside the kernel takes further processes and commands only";
                let help = "declare it before the start, or use the user host";
                return Err(Diagnostic::usage(cause, help).of_task(&spec.name));
            }
        };
        self.0.add(index as usize, spec, program, first)
    }

    fn stop_task(&mut self, index: u32) -> Result<(), Diagnostic> {
        self.0.stop_task(index as usize);
        Ok(())
    }

    fn change(&mut self, index: u32, change: &TaskChange) -> Result<(), Diagnostic> {
        self.0.change(index as usize, change)
    }

    fn suspension(&self, index: u32) -> Result<TaskSuspension, Diagnostic> {
        self.0.check_suspension(index as usize).map(|()| TaskSuspension::Run)
    }

    fn suspend(&mut self, index: u32, on: bool) -> Result<(), Diagnostic> {
        match on {
            true => self.0.suspend(index as usize),
            false => self.0.resume(index as usize),
        }
    }

    fn task_jobs(&mut self, index: u32) -> Result<TaskJobs, Diagnostic> {
        self.0.task_jobs(index as usize)
    }

    fn job_events(&mut self) -> Result<JobEvents, Diagnostic> {
        self.0.job_events()
    }

    fn group_jobs(&mut self, group: Option<usize>) -> Result<GroupJobs, Diagnostic> {
        self.0.group_jobs(group)
    }

    fn order_jobs(&mut self, group: Option<usize>, by: &[Attribute]) -> Result<(), Diagnostic> {
        self.0.order_jobs(group, by)
    }

    fn figures(&self) -> HostFigures {
        HostFigures { notes: self.0.notes().to_vec(), ..HostFigures::default() }
    }

    fn swap_policies(&mut self, to: &TaskSet) -> Result<u64, Diagnostic> {
        self.0.swap_policies(to)
    }

    fn lend(&mut self, index: u32, to: Option<u32>) -> Result<(), Diagnostic> {
        self.0.lend(index as usize, to.map(|to| to as usize))
    }

    fn finish(self: Box<Self>, sink: &mut dyn FnMut(RunEvent)) -> Result<HostOutcome, Diagnostic> {
        let Outcome { ended, events, lateness, notes, exit } = self.0.finish(sink)?;
        let kernel_dispatcher = lateness.map(|l| KernelDispatcherStats {
            events,
            releases: l.releases,
            release_latency_p50_ns: l.p50,
            release_latency_p99_ns: l.p99,
            release_latency_max_ns: l.max,
        });
        let figures = HostFigures { kernel_dispatcher, notes, ..HostFigures::default() };
        Ok(HostOutcome { ended, figures, failure: exit, ..HostOutcome::default() })
    }
}
