//! The one error of Punctual's crates: where it is, what is wrong, and what helps.
//!
//! A crate that only reads or writes plain data may have an error of its own (a damaged trace);
//! whatever a user can see is a [`Diagnostic`].

mod place;
mod printable;
mod snippet;

use std::error::Error;
use std::fmt;
use std::io;
use std::sync::Arc;

pub use place::{Place, Position};
pub use printable::is_printable;
pub use snippet::Snippet;

/// What kind of error it is. It decides the exit code of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The request is wrong: a bad file, an option out of its range, a missing program.
    Usage,
    /// The budgets do not fit on a CPU.
    NotAdmitted,
    /// The machine does not permit it: privileges, kernel, set-up, a CPU in use.
    Machine,
    /// The kernel ended the scheduler during the run.
    SchedulerEnded,
    /// A command that was asked for cannot be executed; `errno` is the reason.
    Command,
}

impl Kind {
    /// The exit code of `punctual`: 2, 3, 4 or 5.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Kind::Usage | Kind::Command => 2,
            Kind::NotAdmitted => 3,
            Kind::Machine => 4,
            Kind::SchedulerEnded => 5,
        }
    }
}

/// Its name in JSON: `usage`, `not_admitted`, `machine`, `scheduler_ended` or `command`.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Usage => "usage",
            Kind::NotAdmitted => "not_admitted",
            Kind::Machine => "machine",
            Kind::SchedulerEnded => "scheduler_ended",
            Kind::Command => "command",
        })
    }
}

/// One error, complete: nothing is left started or changed by what failed.
///
/// Prints as one line, `set.toml:7:10: task "servo": budget 2 ms is more than its period 1 ms;
/// make the budget at most the period`. [`Diagnostic::snippet`] shows the place in its text.
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// What kind of error it is.
    pub kind: Kind,
    /// What is wrong, with the names and numbers of this case: one phrase without a full stop.
    pub cause: String,
    /// What to do about it, as exactly as is known: one phrase without a full stop.
    pub help: String,
    /// The error number: the kernel's, when a system call was refused, or that of the C interface.
    pub errno: Option<i32>,
    located: Option<Box<Located>>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// A place, and the text that it is in.
#[derive(Debug, Clone)]
struct Located {
    place: Place,
    text: Option<Arc<str>>,
}

impl Diagnostic {
    fn new(kind: Kind, cause: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        let (cause, help) = (cause.into(), help.into());
        Diagnostic { kind, cause, help, errno: None, located: None, source: None }
    }

    /// A wrong request.
    #[must_use]
    pub fn usage(cause: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Kind::Usage, cause, help)
    }

    /// Budgets that do not fit.
    #[must_use]
    pub fn not_admitted(cause: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Kind::NotAdmitted, cause, help)
    }

    /// A machine that does not permit it.
    #[must_use]
    pub fn machine(cause: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Kind::Machine, cause, help)
    }

    /// A scheduler that the kernel ended.
    #[must_use]
    pub fn scheduler_ended(cause: impl Into<String>, help: impl Into<String>) -> Diagnostic {
        Diagnostic::new(Kind::SchedulerEnded, cause, help)
    }

    /// A command that cannot be executed, for which the kernel gives this error number.
    #[must_use]
    pub fn command(cause: impl Into<String>, help: impl Into<String>, errno: i32) -> Diagnostic {
        Diagnostic::new(Kind::Command, cause, help).with_errno(errno)
    }

    /// A system call that the kernel refused: `what` could not be done, because of `error`.
    #[must_use]
    pub fn refused(
        what: impl fmt::Display,
        error: impl Into<io::Error>,
        help: impl Into<String>,
    ) -> Diagnostic {
        let error = error.into();
        let errno = error.raw_os_error();
        Diagnostic { errno, ..Diagnostic::machine(format!("{what}: {error}"), help) }
            .from_source(error)
    }

    /// The same error, for which the kernel gave this error number.
    #[must_use]
    pub fn with_errno(self, errno: i32) -> Diagnostic {
        Diagnostic { errno: Some(errno), ..self }
    }

    /// The same error, at `place`.
    #[must_use]
    pub fn at(self, place: Place) -> Diagnostic {
        Diagnostic { located: Some(Box::new(Located { place, text: None })), ..self }
    }

    /// The same error, at `place` in `text`, which [`Diagnostic::snippet`] shows.
    #[must_use]
    pub fn in_text(self, place: Place, text: impl Into<Arc<str>>) -> Diagnostic {
        Diagnostic { located: Some(Box::new(Located { place, text: Some(text.into()) })), ..self }
    }

    /// The same error with the error that led to it.
    #[must_use]
    pub fn from_source(self, source: impl Error + Send + Sync + 'static) -> Diagnostic {
        Diagnostic { source: Some(Arc::new(source)), ..self }
    }

    /// The same error, of the task of this name.
    #[must_use]
    pub fn of_task(self, name: &str) -> Diagnostic {
        Diagnostic { cause: format!("task \"{name}\": {}", self.cause), ..self }
    }

    /// Where it is, if it is in a file or on the command line.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        self.located.as_ref().map(|located| &located.place)
    }

    /// The line that it is in, from 1, if it is in a text.
    #[must_use]
    pub fn line(&self) -> Option<u32> {
        Some(self.place()?.position?.line)
    }

    /// The text that its place is in.
    fn text(&self) -> Option<&str> {
        self.located.as_ref()?.text.as_deref()
    }

    /// The exit code of the command: that of its kind.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.kind.exit_code()
    }

    /// The same as a [`miette::Diagnostic`]: the cause, the line with its place underlined, and the
    /// help.
    #[must_use]
    pub fn snippet(self) -> Snippet {
        Snippet::new(self)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = self.place() {
            write!(f, "{place}: ")?;
        }
        write!(f, "{}; {}", self.cause, self.help)
    }
}

impl Error for Diagnostic {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// The same error, whatever led to it.
impl PartialEq for Diagnostic {
    fn eq(&self, other: &Diagnostic) -> bool {
        (self.kind, &self.cause, &self.help, self.errno, self.place())
            == (other.kind, &other.cause, &other.help, other.errno, other.place())
    }
}

impl Eq for Diagnostic {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_system_call_has_its_number_and_its_source() {
        let refused = Diagnostic::refused(
            "cannot lock memory",
            io::Error::from_raw_os_error(1),
            "run it as root",
        );
        assert_eq!((refused.exit_code(), refused.errno), (4, Some(1)));
        assert_eq!(
            refused.to_string(),
            "cannot lock memory: Operation not permitted (os error 1); run it as root"
        );
        assert!(refused.source().is_some_and(|source| source.is::<io::Error>()));
    }

    #[test]
    fn an_error_in_a_text_is_printed_with_its_place() {
        let place =
            Place { name: "set.toml".into(), position: Some(Position::of("a\nbc", &(3..4))) };
        let error = Diagnostic::usage("c is no key", "remove it").in_text(place, "a\nbc");
        assert_eq!(error.to_string(), "set.toml:2:2: c is no key; remove it");
        assert_eq!((error.line(), error.exit_code(), error.errno), (Some(2), 2, None));
    }
}
