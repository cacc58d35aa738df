//! A trace, read as moments.

use std::io::BufRead;

use punctual_trace::{kind, Header, TraceError, TraceReader};

use crate::decoder::Decoder;
use crate::places::Places;
use crate::Moment;

/// Reads a trace as moments: an iterator that ends after the last one, or after the first error,
/// before which all that could be read was returned.
///
/// Its memory is bounded by the set, and 65,536 records.
#[derive(Debug)]
pub struct Timeline<R: BufRead> {
    reader: TraceReader<R>,
    places: Places,
    decoder: Decoder,
    read: u64,
    at_end: bool,
    /// Returned after all moments before it.
    error: Option<TraceError>,
}

impl<R: BufRead> Timeline<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn new(input: R) -> Result<Timeline<R>, TraceError> {
        let reader = TraceReader::new(input)?;
        let decoder = Decoder::new(reader.header());
        Ok(Timeline {
            reader,
            places: Places::default(),
            decoder,
            read: 0,
            at_end: false,
            error: None,
        })
    }

    /// Whose trace it is.
    #[must_use]
    pub fn header(&self) -> &Header {
        self.reader.header()
    }

    /// How many records were read.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.read
    }

    /// Reads one record, and what waited for it.
    fn advance(&mut self) {
        match self.reader.next() {
            Some(Ok(record)) => {
                self.places.push(self.read, record);
                self.read += 1;
            }
            ended => {
                self.at_end = true;
                self.error = ended.and_then(Result::err);
            }
        }
        while let Some((number, record)) = self.places.pop(self.at_end) {
            // Charges before it are of the task that had the number then.
            if record.kind == kind::TASK_PLACE {
                self.decoder.line_up(&self.places);
                self.places.place(&record);
            }
            self.decoder.record(number, &record, &self.places);
        }
        if self.at_end {
            self.decoder.line_up(&self.places);
        }
    }
}

impl<R: BufRead> Iterator for Timeline<R> {
    type Item = Result<Moment, TraceError>;

    fn next(&mut self) -> Option<Result<Moment, TraceError>> {
        loop {
            if let Some(moment) = self.decoder.found.pop_front() {
                return Some(Ok(moment));
            }
            if self.at_end {
                return self.error.take().map(Err);
            }
            self.advance();
        }
    }
}
