//! Trace files: one line of JSON that says whose trace it is, then the records.

use std::io::{self, BufRead, Read, Write};

use serde::{Deserialize, Serialize};

use crate::Record;

const FORMAT: &str = "punctual-trace";
/// A header beyond this is not one of ours.
const LONGEST_HEADER: u64 = 1 << 20;

/// Whose trace it is. The dispatcher's limits are needed to replay it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Always `punctual-trace`.
    pub format: String,
    /// Of this format; 1.
    pub version: u32,
    /// Who recorded: `user`, `kernel`, `sim`.
    pub host: String,
    /// The CPU of the dispatcher.
    pub cpu: u32,
    /// The policy's name.
    pub policy: String,
    /// Names of the tasks, by index in their set.
    pub tasks: Vec<String>,
    /// The dispatcher's limit of jobs.
    pub jobs: u32,
    /// The dispatcher's limit of events.
    pub events: u32,
    /// Number of the first record here; those before were overwritten in the ring.
    pub first: u64,
    /// How many records follow.
    pub count: u64,
}

impl Header {
    /// A header of this version; `first` and `count` are set by [`Trace::write`]'s caller.
    pub fn new(host: &str, cpu: u32, policy: &str, tasks: Vec<String>) -> Header {
        Header {
            format: FORMAT.to_owned(),
            version: 1,
            host: host.to_owned(),
            cpu,
            policy: policy.to_owned(),
            tasks,
            jobs: 0,
            events: 0,
            first: 0,
            count: 0,
        }
    }
}

/// One dispatcher's trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// Whose it is.
    pub header: Header,
    /// Oldest first.
    pub records: Vec<Record>,
}

/// Why a file is no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// It could not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It is not a trace, or one of another version, or cut short.
    #[error("not a trace that this version reads: {0}")]
    Format(String),
}

impl Trace {
    /// Writes it all.
    ///
    /// # Errors
    /// The writer's own.
    pub fn write(&self, out: &mut dyn Write) -> Result<(), TraceError> {
        let header = Header { count: self.records.len() as u64, ..self.header.clone() };
        let line = serde_json::to_string(&header).map_err(|e| TraceError::Format(e.to_string()))?;
        writeln!(out, "{line}")?;
        for record in &self.records {
            out.write_all(&record.to_bytes())?;
        }
        Ok(out.flush()?)
    }

    /// Reads one.
    ///
    /// # Errors
    /// See [`TraceError`].
    pub fn read(mut input: &mut dyn BufRead) -> Result<Trace, TraceError> {
        let mut line = String::new();
        let read = (&mut input).take(LONGEST_HEADER).read_line(&mut line);
        read.map_err(|e| TraceError::Format(format!("its first line is no text ({e})")))?;
        let header: Header = serde_json::from_str(&line)
            .map_err(|e| TraceError::Format(format!("its first line is no header ({e})")))?;
        if header.format != FORMAT || header.version != 1 {
            return Err(TraceError::Format(format!("{} {}", header.format, header.version)));
        }
        let mut records = Vec::new();
        let mut bytes = [0; Record::BYTES];
        for n in 0..header.count {
            input
                .read_exact(&mut bytes)
                .map_err(|_| TraceError::Format(format!("cut short at record {n} of {}", header.count)))?;
            records.push(Record::from_bytes(&bytes));
        }
        if !input.fill_buf()?.is_empty() {
            return Err(TraceError::Format("something follows its last record".to_owned()));
        }
        Ok(Trace { header, records })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Trace {
        let records =
            (0..100u64).map(|i| Record { time: i << 40, a: !i, b: i * i, small: 7, kind: 64 + i as u32 }).collect();
        let mut header = Header::new("user", 1, "edf", vec!["servo".to_owned()]);
        header.count = 100;
        Trace { header, records }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes).expect("memory takes it");
        assert_eq!(Trace::read(&mut &bytes[..]).expect("it is whole"), sample());
    }

    #[test]
    fn a_file_that_was_cut_or_grew_or_is_no_trace_is_refused() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes).expect("memory takes it");
        let refused = |bytes: &[u8]| Trace::read(&mut &bytes[..]).expect_err("refused").to_string();
        assert!(refused(&bytes[..bytes.len() - 1]).contains("cut short at record 99"));
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(refused(&longer).contains("follows"));
        assert!(refused(b"\xff\xfe\n").contains("first line"));
        assert!(refused(b"{}\n").contains("first line"));
    }
}
