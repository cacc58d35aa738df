//! SIGHUP to a run: its set's file is read again, or the terminal is gone.

use std::fs::File;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;

use crate::drive::{is_ignored, refused};

/// The controlling terminal, of a process that has one.
const TERMINAL: &str = "/dev/tty";

/// SIGHUP, as it comes to this process. Signals that come before one is taken count as one.
pub struct Hangup {
    received: Arc<AtomicBool>,
    /// The process had a controlling terminal when it started.
    terminal: bool,
}

/// What a SIGHUP means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HangupMeaning {
    /// The controlling terminal was closed.
    TerminalClosed,
    /// A reload is requested.
    Reload,
}

impl Hangup {
    /// Handles SIGHUP from here on. A process that was started with SIGHUP ignored (nohup) never
    /// gets one.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn handle() -> Result<Hangup, Diagnostic> {
        let received = Arc::new(AtomicBool::new(false));
        if !is_ignored(libc::SIGHUP) {
            signal_hook::flag::register(libc::SIGHUP, received.clone())
                .map_err(refused(libc::SIGHUP))?;
        }
        Ok(Hangup { received, terminal: has_terminal() })
    }

    /// What the signals mean that came since the last call; `None` without any.
    ///
    /// Before the kernel or a shell sends SIGHUP for a terminal that is closed, the kernel takes
    /// the terminal from all processes of the session.
    pub fn take(&self) -> Option<HangupMeaning> {
        self.received.swap(false, Relaxed).then(|| match self.terminal && !has_terminal() {
            true => HangupMeaning::TerminalClosed,
            false => HangupMeaning::Reload,
        })
    }
}

fn has_terminal() -> bool {
    File::open(TERMINAL).is_ok()
}

/// Whether a set's file can be read again: a pipe cannot.
pub fn is_read_again(file: &Path) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file())
}
