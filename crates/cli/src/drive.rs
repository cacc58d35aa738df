//! One run of an admitted set: progress during the run, results at its end.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_session::results::Results;
use punctual_session::{NamedEvent, RunOutcome, RunningSet};
use punctual_trace::TaskEnd;

use crate::hangup::{Hangup, HangupMeaning};
use crate::live::LiveSet;
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

/// The signals of a run.
pub struct Signals {
    /// Ends it.
    pub stop: Arc<AtomicBool>,
    /// Stops this process once.
    pub pause: Arc<AtomicBool>,
    /// Reads the set's file again; `None`: SIGHUP ends the run.
    pub hangup: Option<Hangup>,
}

impl Signals {
    /// Handles them from here on.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn handle(reloads: bool) -> Result<Signals, Diagnostic> {
        let hangup = reloads.then(Hangup::handle).transpose()?;
        let stop = if reloads { stop_on(&ENDS) } else { stop_on_signals() }?;
        Ok(Signals { stop, pause: pause_on_ctrl_z()?, hangup })
    }

    /// Does what SIGHUP requests.
    fn follow_hangup(
        &self,
        live: &mut Option<&mut LiveSet<'_>>,
        running: &mut RunningSet,
        screen: &mut Screen,
    ) {
        match self.hangup.as_ref().and_then(Hangup::take) {
            None => {}
            Some(HangupMeaning::TerminalClosed) => self.stop.store(true, Relaxed),
            Some(HangupMeaning::Reload) => match live {
                Some(live) => {
                    let reloaded = live.reload(running);
                    screen.warn(&live.report(&reloaded));
                }
                None => screen.warn(
                    "punctual: not reloaded: the kernel's own policies run the set now; reload it \
                     while Punctual runs it",
                ),
            },
        }
    }
}

/// Runs a set to its end, with progress on the screen. `first` is the name of its first task;
/// `live` is the set if it can be changed; `observed` answers `punctual top`.
///
/// # Errors
/// The run could not continue, or not end as it should.
pub fn drive(
    mut running: RunningSet,
    first: Option<&str>,
    mut live: Option<&mut LiveSet<'_>>,
    mut observed: Option<Observed>,
    signals: &Signals,
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
        NamedEvent::PolicyStopped(stop) => {
            let after = match stop.fallback {
                Some(name) => format!("{name} has taken its place"),
                None => "no other one supports its tasks, which get no time".to_owned(),
            };
            screen.warn(&format!(
                "{}: the policy \"{}\" {}; {after}",
                program::name(),
                stop.policy,
                stop.cause
            ));
        }
        NamedEvent::Warning(text) => screen.warn(&format!("{}: {text}", program::name())),
        NamedEvent::Period { .. } | NamedEvent::Unreported { .. } | NamedEvent::Executed { .. } => {
        }
    };
    let polled = loop {
        match running.poll(&mut |event| observe(event, screen)) {
            Ok(true) => {
                if signals.pause.swap(false, Relaxed) {
                    screen.clear();
                    running.pause_while(stop_this_process);
                }
                screen.tick(|| running.results());
                signals.follow_hangup(&mut live, &mut running, screen);
                if let (Some(observed), Some(live)) = (&mut observed, &mut live) {
                    observed.serve(&mut running, live, screen);
                }
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

pub fn refused(signal: i32) -> impl Fn(std::io::Error) -> Diagnostic {
    move |e| {
        Diagnostic::machine(
            format!("signal {signal} cannot be handled: {e}"),
            "report it with the output of punctual doctor",
        )
    }
}

/// Whether this program was started with that signal ignored.
pub fn is_ignored(signal: i32) -> bool {
    // SAFETY: all zero is a value of it; nothing but it is written.
    unsafe {
        let mut before: libc::sigaction = std::mem::zeroed();
        libc::sigaction(signal, std::ptr::null(), &mut before);
        before.sa_sigaction == libc::SIG_IGN
    }
}

/// Set by the handler of SIGTSTP (Ctrl-Z); never where this program was started with that signal
/// ignored.
pub fn pause_on_ctrl_z() -> Result<Arc<AtomicBool>, Diagnostic> {
    let pause = Arc::new(AtomicBool::new(false));
    if !is_ignored(libc::SIGTSTP) {
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

/// Signals that always end the program.
const ENDS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGQUIT];

/// Set by the handler of a signal that ends the program; by that of SIGHUP, unless the program was
/// started with SIGHUP ignored (nohup).
pub fn stop_on_signals() -> Result<Arc<AtomicBool>, Diagnostic> {
    let stop = stop_on(&ENDS)?;
    if !is_ignored(libc::SIGHUP) {
        signal_hook::flag::register(libc::SIGHUP, stop.clone()).map_err(refused(libc::SIGHUP))?;
    }
    Ok(stop)
}

fn stop_on(signals: &[i32]) -> Result<Arc<AtomicBool>, Diagnostic> {
    let stop = Arc::new(AtomicBool::new(false));
    for &signal in signals {
        signal_hook::flag::register(signal, stop.clone()).map_err(refused(signal))?;
    }
    // A file that may grow no further is an error where it is written, and not our end in the
    // middle of a run.
    signal_hook::flag::register(libc::SIGXFSZ, Arc::default()).map_err(refused(libc::SIGXFSZ))?;
    Ok(stop)
}
