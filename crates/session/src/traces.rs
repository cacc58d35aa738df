//! The files of a trace: one for each CPU.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use punctual_diagnostic::Diagnostic;
use punctual_host_user::Dispatcher;
use punctual_taskset::TaskSet;
use punctual_trace::{Header, Trace};

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

    pub(crate) fn into_files(self) -> Vec<(u32, File)> {
        self.0
    }

    /// Writes those of the user host, which are in its dispatchers' rings until the run is over.
    /// What a reader should know of them.
    pub(crate) fn write(self, set: &TaskSet, dispatchers: &[(u32, Dispatcher)]) -> Result<Vec<String>, Diagnostic> {
        let mut notes = Vec::new();
        for (cpu, file) in self.0 {
            let Some((_, dispatcher)) = dispatchers.iter().find(|(c, _)| *c == cpu) else { continue };
            let end = dispatcher.record_count();
            let records: Vec<_> = (0..end).rev().map_while(|n| dispatcher.record(n)).collect();
            let first = end - records.len() as u64;
            if first > 0 {
                notes.push(format!(
                    "the trace of CPU {cpu} has the newest {} of {end} records and cannot be replayed; --trace-records \
                     {} keeps all",
                    records.len(),
                    end.next_power_of_two()
                ));
            }
            let names = set.tasks.iter().map(|t| t.name.clone()).collect();
            let limits = dispatcher.limits().into();
            let header = Header::new("user", cpu, &set.policy.name, names, limits);
            let header = Header { first, set: set.to_toml(), ..header };
            let trace = Trace { header, records: records.into_iter().rev().collect() };
            trace.write(&mut BufWriter::new(file)).map_err(|e| {
                Diagnostic::machine(format!("the trace cannot be written: {e}"), "free some room, or name another file")
            })?;
        }
        Ok(notes)
    }
}
