//! Trace files, version 3 (docs/traces.md):
//!
//! ```text
//! header       one line of JSON, ending in a line break
//! check        4 bytes: CRC-32 of the header, its line break included
//! records      each 32 bytes, little-endian, and 4 bytes: CRC-32 of all that stands before them
//! end          a record of kind 0 whose `a` is the number of records, with its check
//! ```
//!
//! Since each check is over all before it, a byte that was changed, left out or put in anywhere is
//! found at the first record that it concerns.

use std::io::{self, BufRead, Read, Write};

use crc32fast::Hasher;

use crate::header::{FORMAT, VERSION};
use crate::{Header, Record, TraceError};

/// A header beyond this is not one of ours: the recordings of a set have 4 Mi times together at
/// most, of up to 25 bytes each as JSON.
const LONGEST_HEADER: u64 = 128 << 20;
/// The kind of the last record of a file; no dispatcher makes it.
const END: u32 = 0;
const CHECK: usize = 4;
const FRAME: usize = Record::BYTES + CHECK;

/// One dispatcher's trace, whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Whose it is.
    pub header: Header,
    /// Oldest first.
    pub records: Vec<Record>,
}

impl Trace {
    /// Writes it all.
    ///
    /// # Errors
    /// The writer's own.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), TraceError> {
        let mut writer = TraceWriter::new(out, &self.header)?;
        for record in &self.records {
            writer.record(record)?;
        }
        writer.finish().map(drop)
    }

    /// Reads it all.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn read(input: &mut dyn BufRead) -> Result<Trace, TraceError> {
        let mut reader = TraceReader::new(input)?;
        let records = reader.by_ref().collect::<Result<_, _>>()?;
        Ok(Trace { header: reader.header, records })
    }
}

/// Writes a trace record by record.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    out: W,
    check: Hasher,
    count: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// The writer's own.
    pub fn new(mut out: W, header: &Header) -> Result<TraceWriter<W>, TraceError> {
        let mut line = serde_json::to_vec(header).map_err(|e| TraceError::Format(e.to_string()))?;
        line.push(b'\n');
        let mut check = Hasher::new();
        check.update(&line);
        out.write_all(&line)?;
        out.write_all(&check.clone().finalize().to_le_bytes())?;
        Ok(TraceWriter { out, check, count: 0 })
    }

    /// The next record.
    ///
    /// # Errors
    /// The writer's own.
    pub fn record(&mut self, record: &Record) -> Result<(), TraceError> {
        self.count += 1;
        self.frame(record)
    }

    /// Writes the end; a trace without it is taken for cut short.
    ///
    /// # Errors
    /// The writer's own.
    pub fn finish(mut self) -> Result<W, TraceError> {
        self.frame(&Record { a: self.count, kind: END, ..Record::default() })?;
        self.out.flush()?;
        Ok(self.out)
    }

    /// Hands everything so far to the system.
    ///
    /// # Errors
    /// The writer's own.
    pub fn flush(&mut self) -> Result<(), TraceError> {
        Ok(self.out.flush()?)
    }

    fn frame(&mut self, record: &Record) -> Result<(), TraceError> {
        let mut frame = [0; FRAME];
        frame[..Record::BYTES].copy_from_slice(&record.to_bytes());
        self.check.update(&frame[..Record::BYTES]);
        frame[Record::BYTES..].copy_from_slice(&self.check.clone().finalize().to_le_bytes());
        Ok(self.out.write_all(&frame)?)
    }
}

/// Reads a trace record by record: an iterator that ends after the last record or the first error.
#[derive(Debug)]
pub struct TraceReader<R: BufRead> {
    input: R,
    header: Header,
    check: Hasher,
    count: u64,
    over: bool,
}

impl<R: BufRead> TraceReader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn new(mut input: R) -> Result<TraceReader<R>, TraceError> {
        let mut line = Vec::new();
        (&mut input).take(LONGEST_HEADER).read_until(b'\n', &mut line)?;
        let ours = line.starts_with(format!("{{\"format\":\"{FORMAT}\"").as_bytes());
        let value: serde_json::Value = match serde_json::from_slice(&line) {
            Ok(value) => value,
            Err(_) if ours => return Err(TraceError::Header),
            Err(e) => return Err(TraceError::Format(format!("its first line is no header ({e})"))),
        };
        let format =
            value.get("format").and_then(|f| f.as_str()).unwrap_or("a file without \"format\"");
        let version = value.get("version").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if format != FORMAT {
            return Err(TraceError::Format(format!("its first line says: {format}")));
        }
        if version < u64::from(VERSION) {
            let what = format!(
                "it is of version {version}, this is version {VERSION}; record the run again"
            );
            return Err(TraceError::Format(what));
        }
        let mut check = Hasher::new();
        check.update(&line);
        let mut written = [0; CHECK];
        let read = input.read_exact(&mut written);
        read.map_err(|e| if is_end(&e) { TraceError::Short { number: 0 } } else { e.into() })?;
        if version > u64::from(VERSION) && written == check.clone().finalize().to_le_bytes() {
            return Err(TraceError::Format(format!(
                "it is of version {version}, this is version {VERSION}"
            )));
        }
        if written != check.clone().finalize().to_le_bytes() {
            return Err(TraceError::Header);
        }
        let header = serde_json::from_value(value);
        let header =
            header.map_err(|e| TraceError::Format(format!("its header is none of ours ({e})")))?;
        Ok(TraceReader { input, header, check, count: 0, over: false })
    }

    /// Whose it is.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn record(&mut self) -> Result<Option<Record>, TraceError> {
        let mut frame = [0; FRAME];
        let number = self.count;
        let read = self.input.read_exact(&mut frame);
        read.map_err(|e| if is_end(&e) { TraceError::Short { number } } else { e.into() })?;
        let mut bytes = [0; Record::BYTES];
        bytes.copy_from_slice(&frame[..Record::BYTES]);
        let record = Record::from_bytes(&bytes);
        self.check.update(&bytes);
        let changed = |what: String| TraceError::Changed { number, what };
        if frame[Record::BYTES..] != self.check.clone().finalize().to_le_bytes() {
            return Err(changed(record.to_string()));
        }
        if record.kind != END {
            self.count += 1;
            return Ok(Some(record));
        }
        if record.a != self.count {
            return Err(changed(format!(
                "the end says that there are {} records before it",
                record.a
            )));
        }
        if !self.input.fill_buf()?.is_empty() {
            return Err(TraceError::Format(format!(
                "something follows its end, after record {number}"
            )));
        }
        Ok(None)
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<Record, TraceError>;

    fn next(&mut self) -> Option<Result<Record, TraceError>> {
        if self.over {
            return None;
        }
        let record = self.record().transpose();
        self.over = !matches!(record, Some(Ok(_)));
        record
    }
}

fn is_end(e: &io::Error) -> bool {
    e.kind() == io::ErrorKind::UnexpectedEof
}
