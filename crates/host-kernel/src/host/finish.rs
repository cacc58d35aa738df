//! The end of a run: domains stop, the scheduler is detached, what was started is ended.

use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_diagnostic::{Diagnostic, Kind};
use punctual_policies::stuck_policy;
use punctual_sys::clock::monotonic_ns;
use punctual_trace::RunEvent;

use super::{silent, Domain, KernelHost, Outcome, Reading, PATIENCE};
use crate::domain::{Command, DomainEvent};
use crate::exit_reason;
use crate::reader::POLL_PERIOD;
use crate::tasks::Tasks;

/// Longest time after which the kernel reports how it ended the scheduler.
const END_KNOWN: Duration = Duration::from_secs(10);

/// How long threads may take to end beside a policy that does not return.
const OTHERS_END: Duration = Duration::from_secs(1);

impl KernelHost {
    /// The end of the run.
    ///
    /// # Errors
    /// Something failed, and not because the kernel ended the scheduler.
    pub fn finish(mut self, sink: &mut dyn FnMut(RunEvent)) -> Result<Outcome, Diagnostic> {
        let ended = monotonic_ns();
        if self.failure.is_none() {
            self.failure = self.stop(sink).err();
        }
        let stuck = stuck_policy().map(|stuck| stuck.diagnostic());
        let failure = self.failure.take().filter(|_| stuck.is_none());
        let exit = self.exit_by_kernel(failure.as_ref());
        if exit.is_some() && failure.is_some() {
            // Domains that can still read their rings report what was recorded until the end.
            drop(self.stop(sink));
        }
        self.end();
        if let (Some(e), None) = (failure, &exit) {
            return Err(e);
        }
        let (events, lateness, notes) = self.state.finish(sink);
        Ok(Outcome { ended, events, lateness, notes, exit: exit.or(stuck) })
    }

    /// Why the kernel ended the scheduler, if it did. That is the cause of other failures then, and
    /// may be known a moment after them: a CPU that goes offline first takes our threads to another
    /// one.
    pub(super) fn exit_by_kernel(&self, failure: Option<&Diagnostic>) -> Option<Diagnostic> {
        let limit = Instant::now() + END_KNOWN;
        let mut exit = self.scheduler.ended();
        while exit.is_none()
            && failure.is_some_and(|e| e.kind == Kind::Machine)
            && Instant::now() < limit
        {
            std::thread::sleep(Duration::from_millis(10));
            exit = self.scheduler.ended();
        }
        exit.map(|exit| exit_reason::explain(&exit))
    }

    /// Each domain looks once more; then its reader, which finds all that came of it.
    fn stop(&mut self, sink: &mut dyn FnMut(RunEvent)) -> Result<(), Diagnostic> {
        for domain in &self.domains {
            domain.send(Command::Stop);
        }
        let domains = self.domains.len();
        // One that a policy of the program keeps does not stop.
        self.await_stopped(|| domains - usize::from(stuck_policy().is_some()), sink)?;
        let readers =
            self.readers.drain(..).map(|r| (drop(r.running), r.thread).1).collect::<Vec<_>>();
        let all = self.await_stopped(|| readers.len(), sink);
        readers.into_iter().for_each(|thread| drop(thread.join()));
        all
    }

    /// Receives until so many threads have sent their last message, also after one of them has
    /// failed.
    fn await_stopped(
        &mut self,
        threads: impl Fn() -> usize,
        sink: &mut dyn FnMut(RunEvent),
    ) -> Result<(), Diagnostic> {
        let limit = Instant::now() + PATIENCE;
        let (mut stopped, mut failure) = (0, Ok(()));
        while stopped < threads() {
            let Some(events) = &self.events else { return failure };
            match events.recv_timeout(POLL_PERIOD) {
                Ok((_, DomainEvent::Stopped)) => stopped += 1,
                Ok((_, DomainEvent::Failed(e))) => {
                    (stopped, failure) = (stopped + 1, failure.and(Err(e)))
                }
                Ok((domain, event)) => self.handle(domain, event, sink)?,
                Err(RecvTimeoutError::Timeout) if Instant::now() < limit => {}
                Err(_) => return failure.and_then(|()| Err(silent("it does not stop"))),
            }
        }
        failure
    }

    /// Ends everything, in this order: commands, the domains' threads, the scheduler, its timers,
    /// all other processes.
    fn end(&mut self) {
        self.tasks.iter().for_each(Tasks::end);
        self.events = None;
        self.end_jobs();
        for Domain { commands, thread, jobs, .. } in self.domains.drain(..) {
            drop(commands);
            jobs.iter().for_each(|jobs| jobs.doorbell.ring());
            join(thread);
        }
        for Reading { running, thread } in self.readers.drain(..) {
            drop(running);
            join(thread);
        }
        self.scheduler.detach();
        self.timers.clear();
        for left in self.tasks.take().map(Tasks::finish).unwrap_or_default() {
            self.state.note(left);
        }
        drop(self.memory.take());
    }
}

/// Waits for a thread, but not for one that a policy of the program keeps.
fn join(thread: JoinHandle<()>) {
    let limit = Instant::now() + OTHERS_END;
    while stuck_policy().is_some() && !thread.is_finished() {
        if Instant::now() > limit {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(thread.join());
}

impl Drop for KernelHost {
    fn drop(&mut self) {
        self.end();
    }
}
