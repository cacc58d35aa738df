//! One error for whatever went wrong: cause, cure, exit code.

use miette::{GraphicalReportHandler, GraphicalTheme};
use punctual_taskset::TaskSetError;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Exit codes are a contract (design, 5). There is one more, 5, in the kernel host's own errors: its scheduler was ended
/// while it ran, by the kernel or by somebody else.
pub const MISSED: u8 = 1;
pub const USAGE: u8 = 2;
pub const NOT_ADMITTED: u8 = 3;
pub const MACHINE: u8 = 4;
pub const INTERRUPTED: u8 = 130;

/// Why a command could not do what it was asked for.
pub struct Failure {
    pub cause: String,
    pub cure: String,
    pub code: u8,
    set: Option<Box<TaskSetError>>,
}

impl Failure {
    pub fn new(code: u8, cause: impl Into<String>, cure: impl Into<String>) -> Failure {
        Failure { cause: cause.into(), cure: cure.into(), code, set: None }
    }

    /// The member `error` of a document.
    pub fn document(&self) -> serde_json::Value {
        serde_json::json!({ "cause": self.cause, "cure": self.cure, "exit_code": self.code })
    }

    /// Prints it, once, and gives the exit code.
    pub fn report(self, json: bool) -> ExitCode {
        let code = self.code;
        if json {
            let document = serde_json::json!({ "version": 1, "error": self.document() });
            say(&mut std::io::stdout(), &format!("{document:#}"));
        } else if let Some(set) = self.set.filter(|s| s.line().is_some()) {
            let theme = if std::io::stderr().is_terminal() {
                GraphicalTheme::unicode()
            } else {
                GraphicalTheme::unicode_nocolor()
            };
            let mut text = String::new();
            let handler = GraphicalReportHandler::new_themed(theme).with_width(100);
            match handler.render_report(&mut text, &set.clone().snippet()) {
                Ok(()) => say(&mut std::io::stderr(), text.trim_end()),
                Err(_) => say(&mut std::io::stderr(), &format!("punctual: {set}")),
            }
        } else {
            say(&mut std::io::stderr(), &format!("punctual: {}\n  cure: {}", self.cause, self.cure));
        }
        ExitCode::from(code)
    }
}

/// A line for a reader who may have gone (`| head -1`): that is no failure of ours.
pub fn say(to: &mut dyn Write, line: &str) {
    let _ = writeln!(to, "{line}");
    let _ = to.flush();
}

/// The results, on standard output. A reader who has gone is no failure; anything else is, for then
/// nobody has them.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(
            MACHINE,
            format!("the results cannot be written: {e}"),
            "free some room, or write them elsewhere",
        )),
        _ => Ok(()),
    }
}

impl From<TaskSetError> for Failure {
    fn from(e: TaskSetError) -> Failure {
        Failure {
            cause: format!("{}: {}", e.place, e.cause),
            cure: e.cure.clone(),
            code: USAGE,
            set: Some(Box::new(e)),
        }
    }
}

impl From<punctual_host_user::HostError> for Failure {
    fn from(e: punctual_host_user::HostError) -> Failure {
        Failure::new(u8::try_from(e.exit_code).unwrap_or(MACHINE), e.cause, e.cure)
    }
}

impl From<punctual_host_kernel::RunError> for Failure {
    fn from(e: punctual_host_kernel::RunError) -> Failure {
        Failure::new(e.exit_code, e.cause, e.cure)
    }
}

impl From<punctual_peers::PeerError> for Failure {
    fn from(e: punctual_peers::PeerError) -> Failure {
        use punctual_peers::PeerError;
        let (code, cure) = match &e {
            PeerError::Command { .. } => (USAGE, "name a program that is there and can be executed"),
            PeerError::Start { .. } => (MACHINE, "see punctual doctor"),
            PeerError::Cpu(_) => (MACHINE, "choose a CPU that is online and ours (taskset -p $$)"),
            PeerError::Slow(_) => (MACHINE, "compare when the machine has less to do"),
        };
        Failure::new(code, e.to_string(), cure)
    }
}
