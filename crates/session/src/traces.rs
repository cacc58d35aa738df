//! The traces of a run: one for each CPU, from the files to their ends.

use std::fs::File;
use std::path::Path;

use punctual_diagnostic::Diagnostic;
use punctual_taskset::TaskSet;
use punctual_trace::{Header, TraceError, TraceLimits, TraceSink};

use crate::HostKind;

/// Files for the traces of a set's CPUs.
#[derive(Debug)]
pub struct TraceFiles(Vec<(u32, File)>);

impl TraceFiles {
    /// Creates `path`; for a set of several CPUs one file for each, with `.cpuN` appended. Before
    /// anything runs, so that a bad path is found then.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub fn create(path: &Path, set: &TaskSet) -> Result<TraceFiles, Diagnostic> {
        let one = set.cpus.len() == 1;
        let create = |&cpu: &u32| {
            let mut name = path.as_os_str().to_owned();
            if !one {
                name.push(format!(".cpu{cpu}"));
            }
            let file = File::create(&name).map_err(|e| {
                let cause = format!("the trace {}: {e}", name.to_string_lossy());
                Diagnostic::usage(cause, "name a file that can be written")
            })?;
            Ok((cpu, file))
        };
        set.cpus.iter().map(create).collect::<Result<_, _>>().map(TraceFiles)
    }
}

/// Those of a run, by CPU. Its host writes records, and the session the periods that it reports.
#[derive(Clone, Default)]
pub(crate) struct Traces(pub(crate) Vec<(u32, TraceSink)>);

impl Traces {
    pub fn new(files: Option<TraceFiles>, host: HostKind, set: &TaskSet) -> Traces {
        let host = match host {
            HostKind::Kernel => "kernel",
            HostKind::Sim => "sim",
            _ => "user",
        };
        let sink = |(cpu, file)| {
            let names = set.tasks.iter().map(|t| t.name.clone()).collect();
            let header = Header::new(host, cpu, &set.policy.name, names, TraceLimits::default());
            (cpu, TraceSink::new(file, Header { set: set.to_toml(), ..header }))
        };
        Traces(files.into_iter().flat_map(|files| files.0).map(sink).collect())
    }

    /// The trace of a CPU.
    pub fn of(&self, cpu: u32) -> Option<TraceSink> {
        self.0.iter().find(|(of, _)| *of == cpu).map(|(_, sink)| sink.clone())
    }

    /// Hands everything so far to the system, for the case that this process is killed.
    pub fn flush(&self) {
        self.0.iter().for_each(|(_, sink)| sink.flush());
    }

    /// Writes the ends. What a reader should know of the traces.
    pub fn finish(self, host: HostKind) -> Result<Vec<String>, Diagnostic> {
        let mut notes = Vec::new();
        for (cpu, sink) in self.0 {
            let lost = sink.finish().map_err(not_written)?;
            if lost > 0 {
                let help = if host == HostKind::User { "; a larger --trace-records loses fewer" } else { "" };
                notes.push(format!(
                    "the trace of CPU {cpu} lacks {lost} records and is replayed up to the first of them{help}"
                ));
            }
        }
        Ok(notes)
    }
}

fn not_written(e: TraceError) -> Diagnostic {
    Diagnostic::machine(format!("the trace cannot be written: {e}"), "free some room, or name another file")
}
