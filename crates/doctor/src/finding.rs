//! A finding, and how one is written.

use serde::{Deserialize, Serialize};

/// How much a finding matters; the order is the order of the table, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The user host cannot work until it is removed.
    Obstacle,
    /// It works, but guarantees suffer.
    Warning,
    /// It could not be read; `cause` is the reason.
    Unknown,
    /// Worth knowing, or an improvement that can be had.
    #[serde(rename = "note")]
    Info,
    /// As it should be.
    Good,
}

/// A reading, verbatim, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evidence {
    /// A path, or `syscall` and its name.
    pub from: String,
    /// Its content (of a long file, the part that matters).
    pub read: String,
}

impl Evidence {
    /// What `read` was found at `from`.
    pub fn new(from: impl Into<String>, read: impl Into<String>) -> Self {
        Evidence { from: from.into(), read: read.into() }
    }
}

/// One thing about this machine that matters to real time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// Stable, kebab-case; docs/doctor.md explains each.
    pub id: String,
    /// For people.
    pub title: String,
    /// How much it matters.
    pub verdict: Severity,
    /// The readings, verbatim, with their places.
    pub value: Vec<Evidence>,
    /// Why it is so; empty if good.
    pub cause: String,
    /// Its effect on programs here.
    pub effect: String,
    /// Commands for a root shell on Debian, to be run in this order; a line that begins with `#` is
    /// not a command.
    pub help: Vec<String>,
}

/// A finding whose verdict is still open.
#[derive(Clone, Debug)]
pub struct Draft(Finding);

impl Finding {
    /// Begins a finding; one of [`Draft`]'s verdicts ends it.
    pub fn about(id: &str, title: &str) -> Draft {
        Draft(Finding {
            id: id.into(),
            title: title.into(),
            verdict: Severity::Unknown,
            value: Vec::new(),
            cause: String::new(),
            effect: String::new(),
            help: Vec::new(),
        })
    }
}

/// The verdicts with a cause, an effect, and commands that help.
macro_rules! verdicts {
    ($($(#[$doc:meta])* $name:ident $verdict:ident)*) => {$(
        $(#[$doc])*
        pub fn $name<C: Into<String>>(
            self,
            cause: impl Into<String>,
            effect: impl Into<String>,
            help: impl IntoIterator<Item = C>,
        ) -> Finding {
            self.close(Severity::$verdict, cause, effect, help)
        }
    )*};
}

impl Draft {
    /// Adds what was read.
    pub fn saw(mut self, reading: &Evidence) -> Self {
        self.0.value.push(reading.clone());
        self
    }

    /// As it should be, and what that means.
    pub fn good(self, effect: impl Into<String>) -> Finding {
        self.close(Severity::Good, "", effect, Vec::<String>::new())
    }

    /// Adds what was read, where it could be.
    pub(crate) fn saw_any<E>(self, reading: &Result<Evidence, E>) -> Self {
        reading.iter().fold(self, Draft::saw)
    }

    verdicts! {
        /// Worth knowing.
        note Info
        /// Guarantees suffer.
        warning Warning
        /// The user host cannot work.
        obstacle Obstacle
        /// Not readable, and why; `effect` is what is at stake, `help` makes it readable.
        unknown Unknown
    }

    fn close<C: Into<String>>(
        mut self,
        verdict: Severity,
        cause: impl Into<String>,
        effect: impl Into<String>,
        help: impl IntoIterator<Item = C>,
    ) -> Finding {
        self.0.verdict = verdict;
        self.0.cause = cause.into();
        self.0.effect = effect.into();
        self.0.help = help.into_iter().map(Into::into).collect();
        self.0
    }
}

/// For findings without a help.
pub(crate) const NO_HELP: [&str; 0] = [];
