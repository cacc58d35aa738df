//! One run of an admitted set: progress during the run, results at its end.

use std::sync::atomic::AtomicBool;
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_session::results::Results;
use punctual_session::{NamedEvent, RunOutcome, RunningSet};
use punctual_trace::TaskEnd;

use crate::screen::Screen;
use crate::top::Observed;

/// A run on one host.
pub struct Ran {
    pub results: Results,
    /// How the first task ended; `None` if the run ended before it.
    pub end: Option<TaskEnd>,
    /// Why the run was ended, if something failed.
    pub failure: Option<Diagnostic>,
}

/// Runs a set to its end, with progress on the screen. `first` is the name of its first task;
/// `observed` answers `punctual top`.
///
/// # Errors
/// The run could not continue, or not end as it should.
pub fn drive(
    mut running: RunningSet,
    first: Option<&str>,
    mut observed: Option<Observed>,
    screen: &mut Screen,
) -> Result<Ran, Diagnostic> {
    let mut end = None;
    let mut observe = |event: NamedEvent, screen: &mut Screen| match event {
        NamedEvent::Ended { task, how } => {
            screen.print_line(&format!("{task}: {how}"));
            if first == Some(&*task) {
                end = Some(how);
            }
        }
        NamedEvent::Warning(text) => screen.warn(&format!("punctual: {text}")),
        NamedEvent::Period { .. } | NamedEvent::Unreported { .. } | NamedEvent::Executed { .. } => {
        }
    };
    let polled = loop {
        match running.poll(&mut |event| observe(event, screen)) {
            Ok(true) => {
                screen.tick(|| running.results());
                observed.iter_mut().for_each(|observed| observed.serve(&mut running));
            }
            Ok(false) => break Ok(()),
            Err(e) => break Err(e),
        }
    };
    let outcome = running.finish(&mut |event| observe(event, screen));
    screen.clear();
    polled?;
    let RunOutcome { mut results, problems, failure } = outcome?;
    results.notes.extend(problems.iter().map(|p| format!("not restored: {p} (punctual clean)")));
    Ok(Ran { results, end, failure })
}

/// Set by the handler of a signal that ends the program.
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
    // A file that may grow no further is an error where it is written, and not our end in the
    // middle of a run.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).map_err(refused(libc::SIGXFSZ))?;
    Ok(stop)
}
