//! How an admitted set runs.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use punctual_host_kernel::LoadedScheduler;
use punctual_process::Output;
use punctual_program_jobs::ProgramGroups;

use crate::TraceFiles;

/// How an admitted set runs.
#[derive(Debug)]
pub struct RunOptions {
    /// Ends the run early once it is true.
    pub stop: Arc<AtomicBool>,
    /// Names this run to other dispatchers that are refused its CPU: a command line, for example.
    pub owner: String,
    /// Where the trace goes, if one is wanted.
    pub traces: Option<TraceFiles>,
    /// Trace records of each CPU that may wait for their file, on the user host: 32 bytes each.
    pub trace_records: u32,
    /// Whether commands get our standard input (only sensible with a single one).
    pub stdin: bool,
    /// Where commands' output goes.
    pub output: Output,
    /// A CPU-bound background process runs beside, on the set's first CPU.
    pub load: bool,
    /// The user host keeps its CPUs from idling.
    pub no_idle: bool,
    /// The users of adopted processes are not trusted to leave them in their cgroups, on the user
    /// host ([`punctual_host_user::HostOptions::confine`]).
    pub confine: bool,
    /// Tasks per CPU that may be added while the set runs, on the user host and the kernel host.
    pub room: u32,
    /// Groups of each CPU that the program replenishes by its own jobs, on the user host.
    pub program_groups: ProgramGroups,
    /// The kernel host's scheduler, loaded ahead.
    pub loaded: Option<LoadedScheduler>,
    /// The figures of tasks that have ended are dropped: for a program that adds tasks without end.
    pub forget_ended: bool,
    /// Under SCHED_DEADLINE: tasks are not bound to their CPUs.
    pub unpinned: bool,
    /// What to call the run where several stand side by side, if not by its host's name.
    pub label: Option<String>,
    /// For the results, before the host's own notes: why it is this host, for example.
    pub notes: Vec<String>,
    /// Whether [`NamedEvent::Executed`](crate::NamedEvent::Executed) is reported (simulator).
    pub intervals: bool,
}

impl Default for RunOptions {
    fn default() -> RunOptions {
        RunOptions {
            stop: Arc::default(),
            owner: std::env::args_os()
                .map(|a| a.to_string_lossy().into_owned())
                .collect::<Vec<_>>()
                .join(" "),
            traces: None,
            trace_records: 1 << 16,
            stdin: false,
            output: Output::Inherit,
            load: false,
            no_idle: false,
            confine: false,
            room: 0,
            program_groups: ProgramGroups::default(),
            loaded: None,
            forget_ended: false,
            unpinned: false,
            label: None,
            notes: Vec::new(),
            intervals: false,
        }
    }
}
