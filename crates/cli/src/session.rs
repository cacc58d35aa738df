//! A run as people see it, whichever host carries it out: progress while it goes on, results at its end.

use std::cell::{Cell, RefCell};
use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use punctual_process::Output;
use punctual_report::{Collector, Host, LoadResult, Results, Run as About};
use punctual_taskset::{Body, TaskSet};
use punctual_trace::{TaskEnd, Told};
use punctual_workload::Hog;

use crate::args::{OutputArg, Run};
use crate::screen::Screen;
use punctual_diagnostic::Diagnostic;

/// The background process ends by itself after this, ns, should its parent be lost.
const LOAD_LIFE: u64 = 3_600_000_000_000;

pub struct Session<'a> {
    set: &'a TaskSet,
    collector: RefCell<Collector>,
    screen: RefCell<Screen>,
    load: Option<Hog>,
    /// How the first task ended, if it has.
    end: Cell<Option<TaskEnd>>,
    /// Whether commands get our standard input.
    pub stdin: bool,
    /// Where commands' output goes.
    pub output: Output,
    /// For those who are refused because of us.
    pub owner: String,
}

impl<'a> Session<'a> {
    /// Starts the background process of `--load`.
    pub fn begin(args: &Run, set: &'a TaskSet, host: Host, overload: bool) -> Result<Session<'a>, Diagnostic> {
        let about = About { overload, ..About::new(host, &set.policy.name, &set.cpus) };
        let commands = set.tasks.iter().any(|t| matches!(t.body, Body::Command(_)));
        Ok(Session {
            set,
            collector: RefCell::new(Collector::for_set(about, set)),
            // With a command that writes where we do, a table could not be redrawn.
            screen: RefCell::new(Screen::new(args.quiet, !commands)),
            load: args.load.then(|| load(set.cpus[0])).transpose()?,
            stdin: args.file.is_none() && commands,
            end: Cell::new(None),
            output: match args.output {
                Some(OutputArg::Null) => Output::Nowhere,
                Some(OutputArg::Stderr) => Output::StandardError,
                None if args.json => Output::StandardError,
                Some(OutputArg::Inherit) | None => Output::Inherit,
            },
            owner: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" "),
        })
    }

    /// What the host tells.
    pub fn hear(&self, told: Told) {
        match told {
            Told::Period(period) => self.collector.borrow_mut().record(&period),
            Told::Unreported { task, count } => self.collector.borrow_mut().record_unreported(task, count),
            Told::Ended(index, how) => {
                if index == 0 {
                    self.end.set(Some(how));
                }
                let name = self.set.tasks.get(index as usize).map_or("?", |t| t.name.as_str());
                self.screen.borrow_mut().print_line(&format!("{name}: {how}"));
            }
            Told::Warning(text) => self.screen.borrow_mut().warn(&format!("punctual: {text}")),
        }
    }

    /// Shows how it goes; to be called some times a second.
    pub fn tick(&self) {
        self.screen.borrow_mut().tick(|| self.collector.borrow().snapshot());
    }

    /// The host is done, with or without success.
    pub fn clear(&self) {
        self.screen.borrow_mut().clear();
    }

    /// How the first task ended; `None` if the run ended before it.
    pub fn end(&self) -> Option<TaskEnd> {
        self.end.get()
    }

    /// What came of it: it ran for so long, ns, and ended at that time, CLOCK_MONOTONIC ns.
    pub fn results(self, ran: u64, ended: u64, interrupted: bool, notes: Vec<String>) -> Results {
        let load = self.load.map(Hog::stop);
        let mut results = self.collector.into_inner().results(ran, ended, interrupted, notes);
        results.load = load.map(|l| LoadResult { share_ppm: l.share_ppm() });
        results
    }
}

/// Set when somebody wants it to end.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, Diagnostic> {
    let refused = |signal: i32| {
        move |e| {
            Diagnostic::machine(
                format!("signal {signal} cannot be handled: {e}"),
                "report it with the output of punctual doctor",
            )
        }
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        signal_hook::flag::register(signal, stop.clone()).map_err(refused(signal))?;
    }
    // A file that may grow no further is an error where it is written, and not our end in the middle of a run.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).map_err(refused(libc::SIGXFSZ))?;
    Ok(stop)
}

fn load(cpu: u32) -> Result<Hog, Diagnostic> {
    Hog::start(cpu, LOAD_LIFE).map_err(|e| {
        Diagnostic::refused(format!("cannot start the background process on CPU {cpu}"), e, "run without --load")
    })
}
