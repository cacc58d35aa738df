//! The side of the observer: finds running sets, and asks one.

use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use punctual_diagnostic::Diagnostic;

use punctual_session::results::PolicyChange;

use crate::protocol::{Query, Reply, Snapshot, VERSION};

/// How long a running set may take to answer: it answers between two polls, some 40 times a second.
const PATIENCE: Duration = Duration::from_secs(5);

/// A connection to one running set.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    /// The process that runs the set.
    pub pid: u32,
}

/// Processes in `directory` that run a set, by their numbers. Removes the sockets of killed ones.
#[must_use]
pub fn running(directory: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut pids: Vec<u32> = entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.strip_suffix(".sock")?.parse().ok()?;
            match UnixStream::connect(entry.path()) {
                Ok(_) => return Some(pid),
                Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
                    drop(std::fs::remove_file(entry.path()))
                }
                Err(_) => {}
            }
            None
        })
        .collect();
    pids.sort_unstable();
    pids
}

impl Client {
    /// Connects to the set that `pid` runs or, without it, to the only one.
    ///
    /// # Errors
    /// No set runs, `pid` runs none, or several do and none is named; the set does not answer.
    pub fn connect(directory: &Path, pid: Option<u32>) -> Result<Client, Diagnostic> {
        let pids = running(directory);
        let pid = match (pid, &pids[..]) {
            (Some(pid), _) if pids.contains(&pid) => pid,
            (Some(pid), _) => {
                let help = match pids.is_empty() {
                    true => "start one with punctual run".to_owned(),
                    false => format!("these do: {}", list(&pids)),
                };
                return Err(Diagnostic::usage(format!("process {pid} runs no set of yours"), help));
            }
            (None, &[pid]) => pid,
            (None, []) => {
                return Err(Diagnostic::usage(
                    "no set of yours runs",
                    "start one with punctual run, or be its user",
                ))
            }
            (None, _) => {
                let cause = format!("{} sets run: processes {}", pids.len(), list(&pids));
                return Err(Diagnostic::usage(cause, format!("name one, such as {}", pids[0])));
            }
        };
        let failed = |e| {
            Diagnostic::refused(
                format!("process {pid} cannot be asked"),
                e,
                "see whether it still runs",
            )
        };
        let stream = UnixStream::connect(directory.join(format!("{pid}.sock"))).map_err(failed)?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed)?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed)?;
        Ok(Client { stream: BufReader::new(stream), pid })
    }

    /// The figures so far; `None` when the run has ended.
    ///
    /// # Errors
    /// The set does not answer, or speaks another version.
    pub fn snapshot(&mut self) -> Result<Option<Snapshot>, Diagnostic> {
        match self.ask(&Query::Snapshot)? {
            Some(Reply::Snapshot(snapshot)) if snapshot.version == VERSION => Ok(Some(*snapshot)),
            Some(Reply::Refused { cause, help }) => Err(Diagnostic::usage(cause, help)),
            Some(_) => Err(self.foreign()),
            None => Ok(None),
        }
    }

    /// Gives a task another budget, ns, from its next release on.
    ///
    /// # Errors
    /// The set refuses it: why.
    pub fn change_budget(&mut self, place: usize, budget_ns: u64) -> Result<(), Diagnostic> {
        match self.ask(&Query::ChangeBudget { place, budget_ns })? {
            Some(Reply::Changed) => Ok(()),
            Some(Reply::Refused { cause, help }) => Err(Diagnostic::usage(cause, help)),
            Some(_) => Err(self.foreign()),
            None => Err(Diagnostic::usage("the run has ended", "start it again")),
        }
    }

    /// Has the run read its set's file again: the policies that were swapped.
    ///
    /// # Errors
    /// The run refuses it, or does not answer: why.
    pub fn reload(&mut self) -> Result<Vec<PolicyChange>, Diagnostic> {
        match self.ask(&Query::Reload)? {
            Some(Reply::Reloaded(changes)) => Ok(changes),
            Some(Reply::Refused { cause, help }) => Err(Diagnostic::usage(cause, help)),
            Some(_) => Err(self.foreign()),
            None => Err(Diagnostic::usage("the run has ended", "start it again")),
        }
    }

    fn ask(&mut self, request: &Query) -> Result<Option<Reply>, Diagnostic> {
        let failed = {
            let pid = self.pid;
            move |e| {
                Diagnostic::refused(
                    format!("process {pid} does not answer"),
                    e,
                    "see whether it is stopped",
                )
            }
        };
        let mut line = serde_json::to_vec(request).unwrap_or_default();
        line.push(b'\n');
        if self.stream.get_mut().write_all(&line).is_err() {
            return Ok(None);
        }
        let mut reply = String::new();
        match self.stream.read_line(&mut reply) {
            Ok(0) => Ok(None),
            Ok(_) => serde_json::from_str(&reply).map(Some).map_err(|_| self.foreign()),
            Err(e) if e.kind() == ErrorKind::ConnectionReset => Ok(None),
            Err(e) => Err(failed(e)),
        }
    }

    fn foreign(&self) -> Diagnostic {
        Diagnostic::usage(
            format!("process {} is of another version of Punctual", self.pid),
            "use the punctual top that belongs to it",
        )
    }
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
