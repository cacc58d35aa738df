//! The user host, driven by a session.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use punctual_diagnostic::Diagnostic;
use punctual_host_user::{EngineCost, EngineReading, Host, HostOptions};
use punctual_process::{CommandSpec, Output};
use punctual_program_jobs::{Attribute, GroupJobs, JobEvents, TaskJobs};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::{next_release, DomainId, TaskChange, TaskSet, TaskSpec};
use punctual_trace::{RunEvent, TaskEnd};

use crate::driver::{Driver, Execution, HostFigures, HostOutcome};
use crate::results::DispatcherStats;
use crate::suspension::TaskSuspension;
use crate::task_thread::{call, of_another_host, TaskThread, ThreadEntry};
use crate::traces::Traces;
use crate::RunOptions;

/// From handing over to the first release, ns: every task is registered by then.
const LEAD: u64 = 20_000_000;

pub(crate) struct UserDriver {
    host: Host,
    origin: u64,
    stdin: bool,
    output: Output,
    threads: Vec<Thread>,
}

/// A task that is a thread of this program.
struct Thread {
    task: u32,
    name: String,
    how: Arc<OnceLock<TaskEnd>>,
    /// Its end was reported.
    reported: bool,
}

impl UserDriver {
    pub fn start(
        set: &TaskSet,
        options: RunOptions,
        executions: Vec<Execution>,
        traces: &Traces,
    ) -> Result<UserDriver, Diagnostic> {
        let host = Host::start(&HostOptions {
            set: set.clone(),
            room: options.room,
            program_groups: options.program_groups,
            owner: options.owner,
            traces: traces.0.clone(),
            records: options.trace_records,
            confine: options.confine,
        })?;
        let RunOptions { stdin, output, .. } = options;
        let mut driver = UserDriver { host, origin: 0, stdin, output, threads: Vec::new() };
        for (index, (spec, execution)) in set.tasks.iter().zip(executions).enumerate() {
            driver.register(index as u32, spec, execution)?;
        }
        driver.origin = monotonic_ns() + if set.tasks.is_empty() { 0 } else { LEAD };
        driver.host.begin(driver.origin)?;
        Ok(driver)
    }

    fn register(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        execution: Execution,
    ) -> Result<(), Diagnostic> {
        match execution {
            Execution::AsDeclared => self.host.add_spec(index, spec, self.stdin, self.output),
            Execution::Command(argv) => {
                self.host.add_command(index, spec, CommandSpec::new(argv)).map(drop)
            }
            Execution::AdoptedThread { pid, tid, page } => {
                self.host.adopt_thread(index, spec, (pid, tid), page.as_ref())
            }
            Execution::OwnThread(_) => {
                let cause = "on the user host a thread of this program enters its task by itself";
                Err(Diagnostic::usage(cause, "have it enter, or use the kernel host")
                    .of_task(&spec.name))
            }
            Execution::Entered(entry) => match &*entry {
                ThreadEntry::User(entry) => self.host.add_entered(index, spec, entry),
                ThreadEntry::Service(_) => Err(of_another_host(spec)),
            },
            Execution::Thread { stack, body } => {
                let how = Arc::new(OnceLock::new());
                let name = spec.name.clone();
                self.threads.push(Thread { task: index, name, how: how.clone(), reported: false });
                let end = ThreadEnd(how);
                self.host.add_thread(index, spec, stack, move |task| {
                    let _ = end.0.set(call(body, TaskThread::User(task)));
                })
            }
        }
    }
}

impl Driver for UserDriver {
    fn origin(&self) -> u64 {
        self.origin
    }

    fn now(&self) -> u64 {
        monotonic_ns()
    }

    fn poll(&mut self, wait: Duration, sink: &mut dyn FnMut(RunEvent)) -> Result<bool, Diagnostic> {
        std::thread::sleep(wait);
        let UserDriver { host, threads, .. } = self;
        host.housekeep(&mut |event| sink(with_end(event, threads)));
        Ok(host.has_failed())
    }

    fn add(
        &mut self,
        index: u32,
        spec: &TaskSpec,
        execution: Execution,
        first: Option<u64>,
    ) -> Result<(), Diagnostic> {
        self.register(index, spec, execution)?;
        let now = monotonic_ns();
        // Offsets are from the run's start, and no negative ones.
        let on_grid = |first| next_release(first, spec.period, now.max(self.origin));
        self.host.begin(first.map_or(now + LEAD, on_grid))
    }

    fn stop_task(&mut self, index: u32) -> Result<(), Diagnostic> {
        self.host.stop_task(index)
    }

    fn change(&mut self, index: u32, change: &TaskChange) -> Result<(), Diagnostic> {
        self.host.change(index, change)
    }

    fn suspension(&self, index: u32) -> Result<TaskSuspension, Diagnostic> {
        self.host.suspension(index).map(TaskSuspension::User)
    }

    fn task_jobs(&mut self, index: u32) -> Result<TaskJobs, Diagnostic> {
        self.host.task_jobs(index)
    }

    fn job_events(&mut self) -> Result<JobEvents, Diagnostic> {
        self.host.job_events()
    }

    fn group_jobs(&mut self, group: Option<usize>) -> Result<GroupJobs, Diagnostic> {
        self.host.group_jobs(group)
    }

    fn order_jobs(&mut self, group: Option<usize>, by: &[Attribute]) -> Result<(), Diagnostic> {
        self.host.order_jobs(group, by)
    }

    fn swap_policies(&mut self, to: &TaskSet) -> Result<u64, Diagnostic> {
        self.host.swap_policies(to)
    }

    fn prepare_entry(&self, domain: DomainId) -> Result<ThreadEntry, Diagnostic> {
        self.host.prepare_entry(domain).map(ThreadEntry::User)
    }

    fn pause(&mut self) {
        self.host.pause();
    }

    fn resume(&mut self) {
        self.host.resume();
    }

    fn figures(&self) -> HostFigures {
        let dispatcher = dispatcher_stats(&self.host.readings());
        HostFigures { dispatcher, notes: self.host.notes().to_vec(), ..HostFigures::default() }
    }

    fn finish(self: Box<Self>, sink: &mut dyn FnMut(RunEvent)) -> Result<HostOutcome, Diagnostic> {
        let UserDriver { host, mut threads, .. } = *self;
        let ended = monotonic_ns();
        let notes = host.notes().to_vec();
        let finished = host.finish(&mut |event| sink(with_end(event, &mut threads)));
        for thread in threads.iter().filter(|t| !t.reported) {
            let how = thread.how.get().cloned();
            how.into_iter().for_each(|how| sink(RunEvent::Ended { task: thread.task, how }));
        }
        let mut problems = finished.problems;
        for Thread { name, .. } in threads.iter().filter(|t| t.how.get().is_none()) {
            problems.push(format!(
                "task {name:?} has not returned a second after the end; its thread continues in \
                 the ordinary class"
            ));
        }
        let dispatcher = dispatcher_stats(&finished.readings);
        let figures = HostFigures { dispatcher, notes, ..HostFigures::default() };
        Ok(HostOutcome {
            ended,
            figures,
            problems,
            failure: finished.failure,
            ..HostOutcome::default()
        })
    }
}

/// The host reports only the end of a thread.
fn with_end(event: RunEvent, threads: &mut Vec<Thread>) -> RunEvent {
    let RunEvent::Ended { task, how } = event else { return event };
    let Some(place) = threads.iter().position(|t| t.task == task) else {
        return RunEvent::Ended { task, how };
    };
    let thread = &mut threads[place];
    thread.reported = true;
    let Some(how) = thread.how.get().cloned() else { return RunEvent::Ended { task, how } };
    // It is not asked about again.
    threads.swap_remove(place);
    RunEvent::Ended { task, how }
}

/// Where a thread stores how it ended.
struct ThreadEnd(Arc<OnceLock<TaskEnd>>);

impl Drop for ThreadEnd {
    /// If nothing is stored yet, the run was over before the first release.
    fn drop(&mut self) {
        let _ = self.0.set(TaskEnd::NeverReleased);
    }
}

/// All dispatcher threads together: sums, and the worst of each.
fn dispatcher_stats(costs: &[EngineCost]) -> Option<DispatcherStats> {
    let events: u64 = costs.iter().map(|c| c.reading.events).sum();
    let handling: u64 = costs.iter().map(|c| c.reading.handler_mean * c.reading.events).sum();
    let most = |get: fn(&EngineReading) -> u64| costs.iter().map(|c| get(&c.reading)).max();
    Some(DispatcherStats {
        events,
        handler_mean_ns: handling / events.max(1),
        handler_max_ns: most(|r| r.handler_max)?,
        wakeup_latency_p50_ns: most(|r| r.late_p50)?,
        wakeup_latency_p99_ns: most(|r| r.late_p99)?,
        wakeup_latency_max_ns: most(|r| r.late_max)?,
        freezer_waits: costs.iter().map(|c| c.reading.freezer_waits).sum(),
        freezer_wait_max_ns: most(|r| r.freezer_wait_max)?,
        stopped_ns: most(|r| r.stopped)?,
        cpu_ns: costs.iter().map(|c| c.cpu_time).sum(),
    })
}
