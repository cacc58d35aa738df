//! The traces of a run: one for each domain, from the files to their ends.

use std::fs::File;
use std::path::Path;

use punctual_diagnostic::Diagnostic;
use punctual_taskset::{DomainId, TaskSet};
use punctual_trace::{Header, Limits, TraceError, TraceSink};

use crate::HostKind;

/// Files for the traces of a set's domains.
#[derive(Debug)]
pub struct TraceFiles(Vec<(DomainId, File)>);

impl TraceFiles {
    /// Creates `path`; for a set of several domains one file for each, with `.cpuN` of its first
    /// CPU appended. Before anything runs, so that a bad path is found then.
    ///
    /// # Errors
    /// A file that cannot be created.
    pub fn create(path: &Path, set: &TaskSet) -> Result<TraceFiles, Diagnostic> {
        let one = set.domains.len() == 1;
        let create = |domain: DomainId| {
            let mut name = path.as_os_str().to_owned();
            if !one {
                name.push(format!(".cpu{}", set.domain(domain).cpus[0]));
            }
            let file = File::create(&name).map_err(|e| {
                let cause = format!("the trace {}: {e}", name.to_string_lossy());
                Diagnostic::usage(cause, "name a file that can be written")
            })?;
            Ok((domain, file))
        };
        set.domain_ids().map(create).collect::<Result<_, _>>().map(TraceFiles)
    }
}

/// Those of a run, by domain. Its host writes records, and the session the periods that it reports.
#[derive(Clone, Default)]
pub(crate) struct Traces(pub(crate) Vec<(DomainId, TraceSink)>);

impl Traces {
    pub fn new(files: Option<TraceFiles>, host: HostKind, set: &TaskSet) -> Traces {
        let host = match host {
            HostKind::Kernel => "kernel",
            HostKind::Sim => "sim",
            _ => "user",
        };
        let sink = |(domain, file): (DomainId, File)| {
            let cpu = set.domain(domain).cpus[0];
            let names = set.tasks.iter().map(|t| t.name.clone()).collect();
            let header = Header::new(host, cpu, &set.policy.name, names, Limits::default());
            (domain, TraceSink::new(file, Header { set: set.to_toml(), ..header }))
        };
        Traces(files.into_iter().flat_map(|files| files.0).map(sink).collect())
    }

    /// The trace of a domain.
    pub fn of(&self, domain: DomainId) -> Option<TraceSink> {
        self.0.iter().find(|(of, _)| *of == domain).map(|(_, sink)| sink.clone())
    }

    /// Hands everything so far to the system, for the case that this process is killed.
    pub fn flush(&self) {
        self.0.iter().for_each(|(_, sink)| sink.flush());
    }

    /// Writes the ends. What a reader should know of the traces.
    pub fn finish(self, host: HostKind) -> Result<Vec<String>, Diagnostic> {
        let mut notes = Vec::new();
        for (_, sink) in self.0 {
            let cpu = sink.cpu();
            let lost = sink.finish().map_err(not_written)?;
            if lost > 0 {
                let help = if host == HostKind::User {
                    "; a larger --trace-records loses fewer"
                } else {
                    ""
                };
                notes.push(format!(
                    "the trace of CPU {cpu} lacks {lost} records and is replayed up to the first \
                     of them{help}"
                ));
            }
        }
        Ok(notes)
    }
}

fn not_written(e: TraceError) -> Diagnostic {
    Diagnostic::machine(
        format!("the trace cannot be written: {e}"),
        "free some room, or name another file",
    )
}
