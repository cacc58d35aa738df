//! Tasks that come, change and go while the set runs.

use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::{Duration, Instant};

use punctual_diagnostic::Diagnostic;
use punctual_program_jobs::takes_jobs;
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::{next_release, TaskChange, TaskSpec};

use super::suspension::end_suspension;
use super::{AddedProgram, KernelHost, LEAD, PATIENCE};
use crate::diagnostics::{not_done_here, OTHERS};
use crate::domain::{Command, NewTask};
use crate::limits;

/// How long a new task may wait for the threads of an earlier one, whose number it gets. They leave
/// as ordinary threads, of which a job leaves at least 5 % of the CPU.
const NUMBER_IS_FREE: Duration = Duration::from_secs(1);

impl KernelHost {
    /// Adds a task as number `index`, which is none of the set's and was none before. Its first
    /// release is at `first` (CLOCK_MONOTONIC, ns) or, if that has passed, whole periods later;
    /// without it some 20 ms from now. Admission is the caller's.
    ///
    /// # Errors
    /// No room, a program or process that is not there, one that cannot be a task on that CPU, a
    /// policy that needs more than the run was started with. Nothing is changed then.
    pub fn add(
        &mut self,
        index: usize,
        spec: &TaskSpec,
        program: AddedProgram,
        first: Option<u64>,
    ) -> Result<(), Diagnostic> {
        let of_task = |e: Diagnostic| e.of_task(&spec.name);
        limits::waits(spec, self.set.duration)?;
        let domain = spec.domain.0;
        let cpu = self.set.domain(spec.domain).only_cpu()?;
        let Some(tasks) = &mut self.tasks else { return Err(not_done_here("the run has ended")) };
        tasks.add(index, (spec, program), (cpu, &self.locks), self.output).map_err(of_task)?;
        let takes_jobs = takes_jobs(&self.set, spec);
        let Some(joining) = tasks.joining(index, spec, takes_jobs) else { return Ok(()) };
        self.state.add(index, spec);
        let of_domain = self.domains[domain as usize].jobs.as_ref();
        let requests =
            of_domain.and_then(|of| self.jobs.task((&self.set, index), spec, &of.doorbell));
        let (answer, answers) = channel();
        let now = monotonic_ns();
        let origin = first.map_or(now + LEAD, |first| next_release(first, spec.period, now));
        let until = Instant::now() + NUMBER_IS_FREE;
        let new = NewTask { joining, spec: spec.clone(), origin, until, requests, answer };
        self.send(domain, Command::Add(Box::new(new)));
        let added = answers.recv_timeout(PATIENCE).unwrap_or_else(|e| {
            if e == RecvTimeoutError::Timeout {
                self.send(domain, Command::Retire(index));
            }
            let help = "try again when its CPU has time for ordinary threads";
            Err(Diagnostic::machine("the kernel host does not answer", help))
        });
        let Some(tasks) = &mut self.tasks else { return Ok(()) };
        match added {
            Ok(()) => tasks.open(),
            Err(_) => {
                tasks.kill(index);
                tasks.remove(index);
                self.state.remove(index);
                self.jobs.remove(index);
            }
        }
        added.map_err(of_task)
    }

    /// Requests the end of a task: a command is killed, with its process group; the threads of what
    /// was adopted are ordinary ones again.
    pub fn stop_task(&mut self, index: usize) {
        // Otherwise it has ended already.
        let Some(domain) = self.state.domain_of(index) else { return };
        if let Some(tasks) = &self.tasks {
            tasks.kill(index);
        }
        self.stopped.insert(index);
        self.send(domain, Command::Retire(index));
        end_suspension(&mut self.suspended, &mut self.state, index);
    }

    /// Gives a task other parameters from its next release on. Admission is the caller's, and that
    /// its policy is one of the dispatcher's reservations (`edf`, `rm`, `dm`, `fp`).
    ///
    /// # Errors
    /// A period that is too long for this host; another one for a thread that learns of its
    /// releases by a page.
    pub fn change(&mut self, index: usize, change: &TaskChange) -> Result<(), Diagnostic> {
        let Some(spec) = self.state.spec(index) else { return Ok(()) };
        let (mut changed, domain) = (spec.clone(), spec.domain.0);
        change.apply(&mut changed);
        limits::waits(&changed, self.set.duration)?;
        let has_page = self.tasks.as_ref().is_some_and(|tasks| tasks.has_page(index));
        if has_page && changed.period != spec.period {
            let cause = "a thread that waits for its releases keeps its period inside the kernel";
            return Err(Diagnostic::usage(cause, OTHERS).of_task(&spec.name));
        }
        self.state.change(index, change);
        self.send(domain, Command::Change(index, *change));
        Ok(())
    }
}
