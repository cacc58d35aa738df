//! The trace of a simulated run, written while it runs: the dispatcher's ring never overflows.

use std::io::Write;

use punctual_dispatcher::Dispatcher;
use punctual_trace::{Header, TraceWriter};

use crate::error;
use punctual_diagnostic::Diagnostic;

/// Where a CPU's trace goes.
pub(crate) struct Recorder {
    writer: TraceWriter<Box<dyn Write + Send>>,
    written: u64,
}

impl Recorder {
    pub(crate) fn new(out: Box<dyn Write + Send>, header: &Header) -> Result<Recorder, Diagnostic> {
        Ok(Recorder { writer: TraceWriter::new(out, header).map_err(error::trace)?, written: 0 })
    }

    /// Writes what the ring has and the trace has not.
    pub(crate) fn drain(&mut self, dispatcher: &Dispatcher) -> Result<(), Diagnostic> {
        let count = dispatcher.record_count();
        while self.written < count {
            let Some(record) = dispatcher.record(self.written) else {
                return Err(error::trace("more happened at one instant than the dispatcher's ring holds"));
            };
            self.writer.record(&record).map_err(error::trace)?;
            self.written += 1;
        }
        Ok(())
    }

    /// Writes the rest and the trace's end.
    pub(crate) fn finish(mut self, dispatcher: &Dispatcher) -> Result<(), Diagnostic> {
        self.drain(dispatcher)?;
        self.writer.finish().map(drop).map_err(error::trace)
    }
}
