//! Reads a domain's records, for the results and the trace. Never the allocators' business, whose
//! budget is small.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::Duration;

use punctual_dispatcher::Limits;
use punctual_sys::clock::monotonic_ns;

use crate::diagnostics::wrong_cpu;
use crate::domain::DomainEvent;
use crate::members;
use crate::programs::Programs;
use crate::ring::{Records, Rings};
use punctual_diagnostic::Diagnostic;

/// Between two polls for the results.
pub(crate) const POLL_PERIOD: Duration = Duration::from_millis(25);

/// Some 25 ms of a domain's records.
pub(crate) struct RecordBatch {
    /// All that was recorded until then is here, CLOCK_MONOTONIC ns.
    pub looked: u64,
    pub records: Records,
    /// Times that jobs were held back to leave others their share, so far.
    pub throttled: u64,
    /// Times that the timer could not be armed, so far.
    pub arm_failures: u64,
}

/// One domain's, on the domain's CPU.
pub(crate) struct Reader<'a>(Rings<'a>);

impl<'a> Reader<'a> {
    pub fn new(programs: &'a Programs, domain: u32, limits: Limits) -> Reader<'a> {
        Reader(Rings::new(programs, domain, limits))
    }

    /// What is new.
    ///
    /// # Errors
    /// The kernel's.
    pub fn gather(&mut self) -> Result<RecordBatch, Diagnostic> {
        let looked = monotonic_ns();
        self.0.poll().map_err(wrong_cpu)?;
        let (throttled, arm_failures) = (self.0.throttled(), self.0.arm_failures());
        Ok(RecordBatch { looked, records: self.0.records(), throttled, arm_failures })
    }
}

/// What a thread of its own is made with.
pub(crate) struct Config {
    pub domain: u32,
    pub cpu: u32,
    pub programs: Arc<Programs>,
    pub limits: Limits,
}

/// Beside an allocator: reads until `running` is dropped, and once more then.
pub(crate) fn run(config: Config, running: &Receiver<()>, events: &Sender<(u32, DomainEvent)>) {
    let domain = config.domain;
    let last =
        live(config, running, events).map_or_else(DomainEvent::Failed, |()| DomainEvent::Stopped);
    // A receiver that is gone has ended the run.
    drop(events.send((domain, last)));
}

fn live(
    config: Config,
    running: &Receiver<()>,
    events: &Sender<(u32, DomainEvent)>,
) -> Result<(), Diagnostic> {
    members::pin(config.cpu)?;
    let mut reader = Reader::new(&config.programs, config.domain, config.limits);
    loop {
        let stop = !matches!(running.recv_timeout(POLL_PERIOD), Err(RecvTimeoutError::Timeout));
        let received = events.send((config.domain, DomainEvent::Records(reader.gather()?))).is_ok();
        if stop || !received {
            return Ok(());
        }
    }
}
