//! A domain's trace, written while it runs: all of it, from the first record on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom};

use punctual_taskset::TaskSet;
use punctual_trace::{Header, TraceError, TraceWriter};

use crate::limits::Part;
use crate::ring::Records;
use punctual_diagnostic::Diagnostic;

/// Whole once [`TraceFile::finish`] was called.
pub(crate) struct TraceFile {
    file: File,
    header: Header,
    /// Always there but within a call.
    writer: Option<TraceWriter<BufWriter<File>>>,
}

impl TraceFile {
    /// Writes the header.
    ///
    /// # Errors
    /// The file's.
    pub fn new(file: File, header: Header) -> Result<TraceFile, TraceError> {
        let writer = TraceWriter::new(BufWriter::new(file.try_clone()?), &header)?;
        Ok(TraceFile { file, header, writer: Some(writer) })
    }

    /// Records that follow those before. Where some are lost it begins anew: what cannot be replayed is not kept.
    ///
    /// # Errors
    /// The file's.
    pub fn records(&mut self, records: &Records) -> Result<(), TraceError> {
        if records.lost > 0 {
            // Written out first, or it would be later.
            self.writer.take().map(TraceWriter::finish).transpose()?;
            self.file.set_len(0)?;
            self.file.seek(SeekFrom::Start(0))?;
            self.header.first = records.first;
            self.writer = Some(TraceWriter::new(BufWriter::new(self.file.try_clone()?), &self.header)?);
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        records.records.iter().try_for_each(|r| writer.record(r))
    }

    /// Writes the end; the number of the first record in it.
    ///
    /// # Errors
    /// The file's.
    pub fn finish(self) -> Result<u64, TraceError> {
        self.writer.map(TraceWriter::finish).transpose()?;
        Ok(self.header.first)
    }
}

/// Those that are wanted, by domain.
#[derive(Default)]
pub(crate) struct Traces(BTreeMap<u32, TraceFile>);

impl Traces {
    /// One for each CPU for which there is a file.
    pub fn new(set: &TaskSet, parts: &[Part], files: Vec<(u32, File)>) -> Result<Traces, Diagnostic> {
        let mut traces = BTreeMap::new();
        for (cpu, file) in files {
            let Some((domain, part)) = parts.iter().enumerate().find(|(_, p)| p.cpu == cpu) else { continue };
            let names = set.tasks.iter().map(|t| t.name.clone()).collect();
            let header = Header::new("kernel", cpu, &set.policy.name, names, part.limits.into());
            let header = Header { set: set.to_toml(), ..header };
            traces.insert(domain as u32, TraceFile::new(file, header).map_err(unwritten)?);
        }
        Ok(Traces(traces))
    }

    /// Records of a domain that follow those before.
    pub fn records(&mut self, domain: u32, records: &Records) -> Result<(), Diagnostic> {
        self.0.get_mut(&domain).map_or(Ok(()), |trace| trace.records(records).map_err(unwritten))
    }

    /// Writes their ends; what a reader should know.
    pub fn finish(self) -> Result<Vec<String>, Diagnostic> {
        let mut notes = Vec::new();
        for trace in self.0.into_values() {
            let cpu = trace.header.cpu;
            if trace.finish().map_err(unwritten)? > 0 {
                notes.push(format!("the trace of CPU {cpu} has lost its beginning and cannot be replayed"));
            }
        }
        Ok(notes)
    }
}

fn unwritten(e: TraceError) -> Diagnostic {
    Diagnostic::machine(format!("the trace cannot be written: {e}"), "free some room, or name another file")
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_trace::{Record, Trace, TraceLimits};

    fn limits() -> TraceLimits {
        punctual_dispatcher::Limits::for_tasks(1).into()
    }

    fn some(first: u64, lost: u64, count: u64) -> Records {
        let records = (first..first + count).map(|n| Record { time: n, kind: 12, ..Record::default() }).collect();
        Records { first, lost, records }
    }

    /// What is read back: number of the first record, and the records' times.
    fn written(name: &str, parts: &[Records]) -> (u64, Vec<u64>) {
        let path = std::env::temp_dir().join(format!("punctual-{name}-{}", std::process::id()));
        let mut trace =
            TraceFile::new(File::create(&path).expect("room"), Header::new("kernel", 0, "rm", Vec::new(), limits()))
                .expect("room");
        parts.iter().for_each(|p| trace.records(p).expect("room"));
        let first = trace.finish().expect("room");
        let file = File::open(&path).expect("just written");
        let read = Trace::read(&mut std::io::BufReader::new(file)).expect("it is whole");
        drop(std::fs::remove_file(&path));
        assert_eq!(read.header.first, first);
        (first, read.records.iter().map(|r| r.time).collect())
    }

    #[test]
    fn all_records_are_there_in_order() {
        assert_eq!(written("whole", &[some(0, 0, 3), some(3, 0, 2)]), (0, vec![0, 1, 2, 3, 4]));
    }

    #[test]
    fn after_a_gap_it_begins_anew_and_says_where() {
        assert_eq!(written("gap", &[some(0, 0, 30), some(40, 10, 2), some(42, 0, 1)]), (40, vec![40, 41, 42]));
    }
}
