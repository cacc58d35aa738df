//! A whole task set, from start to end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use punctual_process::{CommandSpec, Output};
use punctual_taskset::{Body, Overrun, TaskSet};
use punctual_trace::Told;
use punctual_workload::{Spinner, Work};

use crate::host::{Finished, Host, HostOptions, STACK};
use crate::overrun_signal;
use punctual_diagnostic::Diagnostic;
use punctual_sys::clock;

/// From handing over to the first release, ns: every task is taken in by then.
const LEAD: u64 = 5_000_000;
const HOUSEKEEPING: Duration = Duration::from_millis(25);

/// How to run a set.
pub struct RunOptions<'a> {
    /// Becomes true when it shall end early.
    pub stop: &'a AtomicBool,
    /// How long from the first release, ns; `None`: until all tasks have ended.
    pub duration: Option<u64>,
    /// For those who are refused because of us.
    pub owner: String,
    /// Trace records kept per CPU: a power of two.
    pub records: u32,
    /// Whether commands get our standard input (only sensible with a single one).
    pub stdin: bool,
    /// Where commands' output goes.
    pub output: Output,
}

/// How a run went.
pub struct RunOutcome {
    /// What the engines leave.
    pub finished: Finished,
    /// From the first release to the end, ns.
    pub ran: u64,
    /// When it ended, CLOCK_MONOTONIC ns.
    pub ended: u64,
    /// What people should know.
    pub notes: Vec<String>,
    /// It was stopped early.
    pub interrupted: bool,
}

/// Runs a set on the user host; `sink` hears everything as it becomes known, `tick` some forty
/// times a second.
///
/// # Errors
/// Before anything has started: see [`Host::start`] and the `add` calls. Nothing is left behind.
pub fn run(
    set: &TaskSet,
    options: &RunOptions<'_>,
    sink: &mut dyn FnMut(Told),
    tick: &mut dyn FnMut(&Host),
) -> Result<RunOutcome, Diagnostic> {
    let mut host = Host::start(&HostOptions {
        set: set.clone(),
        room: 0,
        owner: options.owner.clone(),
        records: options.records,
    })?;
    let mut spinner = None;
    for (index, spec) in set.tasks.iter().enumerate() {
        let index = index as u32;
        match &spec.body {
            Body::Spin(_) | Body::Steps(_) => {
                let spinner = *spinner.get_or_insert_with(Spinner::calibrate);
                if spec.overrun == Overrun::Signal {
                    overrun_signal::survive().map_err(|e| {
                        Diagnostic::machine(format!("SIGXCPU cannot be handled: {e}"), "use another overrun policy")
                    })?;
                }
                if let Some(work) = Work::of(&spec.body) {
                    synthetic(&mut host, index, spec, work, spinner)?;
                }
            }
            Body::Command(argv) => {
                let mut command = CommandSpec::new(argv.iter().map(String::as_str), spec.cpu);
                command.streams = options.output.streams(options.stdin);
                host.add_command(index, spec, command)?;
            }
            Body::Pid(pid) => host.adopt(index, spec, *pid)?,
        }
    }
    let origin = clock::monotonic_ns() + LEAD;
    host.begin(origin)?;
    let end = options.duration.map(|d| origin.saturating_add(d));
    let mut alive = set.tasks.len();
    let mut interrupted = false;
    while alive > 0 && end.is_none_or(|end| clock::monotonic_ns() < end) {
        if options.stop.load(Relaxed) {
            interrupted = true;
            break;
        }
        let left = end.map_or(HOUSEKEEPING, |e| Duration::from_nanos(e.saturating_sub(clock::monotonic_ns())));
        std::thread::sleep(HOUSEKEEPING.min(left));
        host.housekeep(&mut |told| {
            if matches!(told, Told::Ended(..)) {
                alive = alive.saturating_sub(1);
            }
            sink(told);
        });
        tick(&host);
    }
    let ended = clock::monotonic_ns();
    let ran = ended.saturating_sub(origin);
    let notes = host.notes().to_vec();
    let finished = host.finish(sink);
    Ok(RunOutcome { finished, ran, ended, notes, interrupted })
}

fn synthetic(
    host: &mut Host,
    index: u32,
    spec: &punctual_taskset::TaskSpec,
    mut work: Work,
    spinner: Spinner,
) -> Result<(), Diagnostic> {
    host.add_thread(index, spec, STACK, move |task| loop {
        if !work.run_job(&spinner, task.over()) {
            return;
        }
        if task.wait_period().is_none() {
            return;
        }
    })
}
