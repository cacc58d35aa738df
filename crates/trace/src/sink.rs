//! The trace of one dispatcher, written while its set runs.
//!
//! ```text
//! host: records, in order ──┐
//! session: periods ─────────┴──> TraceSink ──> file: header first, then all of it in order
//! ```
//!
//! The trace observes and controls nothing: a file that cannot be written ends the trace, not the
//! run, and is reported by [`TraceSink::finish`].

use std::io::{self, BufWriter, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Header, Limits, Period, Record, TraceError, TraceWriter};

type Output = BufWriter<Box<dyn Write + Send>>;

/// Where a host and its session put the trace of one dispatcher; clones are the same trace.
///
/// Its memory is bounded: a buffer of a few KB. Its calls may wait for the file, so that a
/// real-time thread never makes them.
#[derive(Clone)]
pub struct TraceSink(Arc<Mutex<Stream>>);

struct Stream {
    header: Header,
    /// Until the header is written.
    output: Option<Output>,
    /// From the header to the end, or to the first error.
    writer: Option<TraceWriter<Output>>,
    error: Option<TraceError>,
    lost: u64,
}

impl Stream {
    fn write(&mut self, write: impl FnOnce(&mut TraceWriter<Output>) -> Result<(), TraceError>) {
        if let Some(Err(error)) = self.writer.as_mut().map(write) {
            self.writer = None;
            self.error = Some(error);
        }
    }
}

impl TraceSink {
    /// A trace with this header, whose limits are those of [`begin`](TraceSink::begin).
    pub fn new(output: impl Write + Send + 'static, header: Header) -> TraceSink {
        let output: Output = BufWriter::new(Box::new(output));
        let stream = Stream { header, output: Some(output), writer: None, error: None, lost: 0 };
        TraceSink(Arc::new(Mutex::new(stream)))
    }

    /// The CPU that its header names.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        self.stream().header.cpu
    }

    /// A panic within a call leaves the trace as it was after some record.
    fn stream(&self) -> MutexGuard<'_, Stream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the header: the dispatcher was made with these limits. Nothing is written before.
    pub fn begin(&self, limits: Limits) {
        let stream = &mut *self.stream();
        stream.header.limits = limits;
        let Some(output) = stream.output.take() else { return };
        match TraceWriter::new(output, &stream.header) {
            Ok(writer) => stream.writer = Some(writer),
            Err(error) => stream.error = Some(error),
        }
    }

    /// Writes records that follow those before.
    pub fn records(&self, records: &[Record]) {
        let mut stream = self.stream();
        stream.lost += records.iter().filter_map(Record::lost_before).sum::<u64>();
        stream.write(|writer| records.iter().try_for_each(|record| writer.record(record)));
    }

    /// So many records are missing here.
    pub fn lost(&self, count: u64) {
        if count > 0 {
            self.records(&[Record::lost(count)]);
        }
    }

    /// Writes a period.
    pub fn period(&self, period: &Period) {
        self.records(&period.to_records());
    }

    /// Hands everything so far to the system: after SIGKILL it is in the file.
    pub fn flush(&self) {
        self.stream().write(TraceWriter::flush);
    }

    /// Writes the end. The number of records that are missing.
    ///
    /// # Errors
    /// The first that the output had.
    pub fn finish(&self) -> Result<u64, TraceError> {
        let mut stream = self.stream();
        match (stream.error.take(), stream.writer.take()) {
            (Some(error), _) => Err(error),
            (None, Some(writer)) => writer.finish().map(|_| stream.lost),
            (None, None) => Ok(stream.lost),
        }
    }
}

/// An output in memory; clones are the same bytes.
#[derive(Clone, Default)]
pub struct TraceBuffer(Arc<Mutex<Vec<u8>>>);

impl TraceBuffer {
    /// What was written so far.
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for TraceBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
