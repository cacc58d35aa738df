//! The files of `--trace`: one for each CPU.

use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use punctual_host_user::Finished;
use punctual_taskset::TaskSet;
use punctual_trace::{Header, Trace};

use punctual_diagnostic::Diagnostic;

/// Opened before anything runs, so that a bad path is found then.
pub fn open(path: &Path, set: &TaskSet) -> Result<Vec<(u32, File)>, Diagnostic> {
    let one = set.cpus.len() == 1;
    set.cpus
        .iter()
        .map(|&cpu| {
            let mut name = path.as_os_str().to_owned();
            if !one {
                name.push(format!(".cpu{cpu}"));
            }
            let file = File::create(&name).map_err(|e| {
                Diagnostic::usage(format!("--trace {}: {e}", name.to_string_lossy()), "name a file that can be written")
            })?;
            Ok((cpu, file))
        })
        .collect()
}

/// Those of the user host, which are in its dispatchers' rings until the run is over. What a reader should know of them.
pub fn write(files: Vec<(u32, File)>, set: &TaskSet, finished: &Finished) -> Result<Vec<String>, Diagnostic> {
    let mut notes = Vec::new();
    for (cpu, file) in files {
        let Some((_, dispatcher)) = finished.dispatchers.iter().find(|(c, _)| *c == cpu) else { continue };
        let end = dispatcher.record_count();
        let records: Vec<_> = (0..end).rev().map_while(|n| dispatcher.record(n)).collect();
        let first = end - records.len() as u64;
        if first > 0 {
            notes.push(format!(
                "the trace of CPU {cpu} has the newest {} of {end} records and cannot be replayed; --trace-records {} \
                 keeps all",
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
