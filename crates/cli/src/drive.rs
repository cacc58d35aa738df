//! One run of an admitted set: progress during the run, results at its end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_session::results::Results;
use punctual_session::{NamedEvent, RunOutcome, RunningSet};
use punctual_trace::TaskEnd;

use crate::program;
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
/// `observed` answers `punctual top`; `pause` stops this process once.
///
/// # Errors
/// The run could not continue, or not end as it should.
pub fn drive(
    mut running: RunningSet,
    first: Option<&str>,
    mut observed: Option<Observed>,
    pause: &AtomicBool,
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
        NamedEvent::Warning(text) => screen.warn(&format!("{}: {text}", program::name())),
        NamedEvent::Period { .. } | NamedEvent::Unreported { .. } | NamedEvent::Executed { .. } => {
        }
    };
    let polled = loop {
        match running.poll(&mut |event| observe(event, screen)) {
            Ok(true) => {
                if pause.swap(false, Relaxed) {
                    screen.clear();
                    running.pause_while(stop_this_process);
                }
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

fn refused(signal: i32) -> impl Fn(std::io::Error) -> Diagnostic {
    move |e| {
        Diagnostic::machine(
            format!("signal {signal} cannot be handled: {e}"),
            "report it with the output of punctual doctor",
        )
    }
}

/// Set by the handler of SIGTSTP (Ctrl-Z); never where this program was started with that signal
/// ignored.
pub fn pause_on_ctrl_z() -> Result<Arc<AtomicBool>, Diagnostic> {
    let pause = Arc::new(AtomicBool::new(false));
    // SAFETY: all zero is a value of it; nothing but it is written.
    let ignored = unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGTSTP, std::ptr::null(), &mut before);
        before.sa_sigaction == libc::SIG_IGN
    };
    if !ignored {
        signal_hook::flag::register(libc::SIGTSTP, pause.clone())
            .map_err(refused(libc::SIGTSTP))?;
    }
    Ok(pause)
}

/// The default effect of SIGTSTP: this process is stopped until SIGCONT. In a process group that no
/// shell could continue the kernel ignores it.
fn stop_this_process() {
    // SAFETY: all zero is a value of both; the pointers are valid. Until SIGCONT this thread
    // executes nothing more, so the handler is there again for the next signal.
    unsafe {
        let (mut default, mut ours): (libc::sigaction, libc::sigaction) =
            (std::mem::zeroed(), std::mem::zeroed());
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(libc::SIGTSTP, &default, &mut ours);
        libc::raise(libc::SIGTSTP);
        libc::sigaction(libc::SIGTSTP, &ours, std::ptr::null_mut());
    }
}

/// Set by the handler of a signal that ends the program.
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, Diagnostic> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT] {
        signal_hook::flag::register(signal, stop.clone()).map_err(refused(signal))?;
    }
    // A file that may grow no further is an error where it is written, and not our end in the
    // middle of a run.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).map_err(refused(libc::SIGXFSZ))?;
    Ok(stop)
}
