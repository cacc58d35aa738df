//! What `--json` prints, for every subcommand: one object, on standard output, whether it went well
//! or not.

use punctual_diagnostic::Diagnostic;
use punctual_session::results::Results;
use serde::{Deserialize, Serialize};

/// The schema of the document. Its number rises when a field changes its meaning or goes; new
/// fields may come without.
pub const SCHEMA: &str = "punctual/2";

/// The result of a subcommand, and how it ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Envelope<T> {
    /// Always `punctual/2`.
    pub schema: String,
    /// The subcommand by its words, such as `run` or `measure latency`; `punctual` where none was
    /// recognised.
    pub command: String,
    /// The version of Punctual.
    pub version: String,
    /// Whether the verdict is good: `run`, `sim`: all deadlines met and all budgets kept, or the
    /// replay is the same; `check`: the set fits; `doctor`: no obstacle; `measure`: all that was
    /// asked for was measured, and all that is required is kept; `trace why`: no deadline was
    /// missed; `clean`: nothing is left behind.
    pub ok: bool,
    /// The same in one sentence.
    pub verdict: String,
    /// The exit code, which with `run ... -- COMMAND` is the command's.
    pub exit_code: u8,
    /// What was found; `null` if nothing was done.
    pub result: Option<T>,
    /// Why it failed; `null` if it did not.
    pub error: Option<ErrorInfo>,
}

/// The result of `punctual run --json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunResult {
    /// The run itself.
    #[serde(flatten)]
    pub run: Results,
    /// The same set under the kernel's own policies (`--compare`), in the order asked for.
    pub baselines: Vec<Results>,
}

/// An error: where it is, what is wrong, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorInfo {
    /// `usage`: a bad file or option; `not_admitted`: it does not fit; `machine`: the machine does
    /// not permit it; `scheduler_ended`: the kernel ended the scheduler during the run; `command`:
    /// a command that cannot be executed.
    pub kind: String,
    /// Where it is; `null` if it is in no file.
    pub place: Option<ErrorPlace>,
    /// What is wrong.
    pub cause: String,
    /// What helps.
    pub help: String,
    /// The kernel's error number, where a system call failed.
    pub errno: Option<i32>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorPlace {
    /// The file, as it was named.
    pub name: String,
    /// Line, from 1; `null` for the file as a whole.
    pub line: Option<u32>,
    /// Column in characters, from 1; `null` for the file as a whole.
    pub column: Option<u32>,
}

impl From<&Diagnostic> for ErrorInfo {
    fn from(error: &Diagnostic) -> ErrorInfo {
        ErrorInfo {
            kind: error.kind.to_string(),
            place: error.place().map(|place| ErrorPlace {
                name: place.name.clone(),
                line: place.position.map(|at| at.line),
                column: place.position.map(|at| at.column),
            }),
            cause: error.cause.clone(),
            help: error.help.clone(),
            errno: error.errno,
        }
    }
}
