//! How far a long calculation is, on standard error.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// The first progress is shown after this, and elsewhere than on a terminal all others too.
const PATIENCE: Duration = Duration::from_secs(2);
const REDRAWN: Duration = Duration::from_millis(200);

/// A line that is rewritten on a terminal, and a line each two
/// seconds elsewhere.
pub struct Progress {
    quiet: bool,
    terminal: bool,
    begun: Instant,
    shown: Option<Instant>,
    /// Virtual time, ns; `None` when it is not known.
    end: Option<u64>,
}

impl Progress {
    pub fn new(quiet: bool, end: Option<u64>) -> Progress {
        Progress {
            quiet,
            terminal: std::io::stderr().is_terminal(),
            begun: Instant::now(),
            shown: None,
            end,
        }
    }

    /// Shows it when it is time to: virtual time, ns, and what else there is to say.
    pub fn tick(&mut self, now: u64, what: &dyn std::fmt::Display) {
        let seconds = |ns: u64| format!("{}.{} s", ns / 1_000_000_000, ns / 100_000_000 % 10);
        let end = self.end;
        self.line(&|| match end {
            Some(end) => {
                let percent = u128::from(now) * 100 / u128::from(end.max(1));
                format!("{} of {} ({percent} %): {what}", seconds(now), seconds(end))
            }
            None => format!("{}: {what}", seconds(now)),
        });
    }

    /// The same for work that is counted.
    pub fn count(&mut self, done: u64, what: &dyn std::fmt::Display) {
        self.line(&|| format!("{done} {what}"));
    }

    /// Shows a line when it is time to.
    pub fn line(&mut self, line: &dyn Fn() -> String) {
        let since = self.shown.unwrap_or(self.begun).elapsed();
        let every = if self.terminal && self.shown.is_some() { REDRAWN } else { PATIENCE };
        if self.quiet || since < every {
            return;
        }
        self.shown = Some(Instant::now());
        let line = line();
        let mut out = std::io::stderr();
        // A terminal that is gone is no reason to stop.
        let _ = if self.terminal { write!(out, "\r\x1b[K{line}") } else { writeln!(out, "{line}") };
        let _ = out.flush();
    }

    /// Takes away what stands there.
    pub fn clear(&mut self) {
        if self.terminal && self.shown.is_some() {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
