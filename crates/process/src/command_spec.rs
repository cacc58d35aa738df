//! What a command is started with.

use std::ffi::OsString;
use std::path::PathBuf;

use rustix::fd::OwnedFd;

/// Where a standard stream of a command goes.
#[derive(Debug)]
pub enum Stream {
    /// The stream of this process. A terminal as standard input stops a command of another process
    /// group that reads it (SIGTTIN).
    Inherit,
    /// Standard error of this process.
    StandardError,
    /// /dev/null.
    Null,
    /// This file.
    File(OwnedFd),
}

/// Where the output of all commands of a run goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Where that of this process goes.
    Inherit,
    /// All of it to standard error of this process.
    StandardError,
    /// Nowhere.
    Nowhere,
}

impl Output {
    /// The standard streams of a command; `stdin`: it inherits standard input, and otherwise gets
    /// none.
    #[must_use]
    pub fn streams(self, stdin: bool) -> [Stream; 3] {
        let input = if stdin { Stream::Inherit } else { Stream::Null };
        match self {
            Output::Inherit => [input, Stream::Inherit, Stream::Inherit],
            Output::StandardError => [input, Stream::StandardError, Stream::Inherit],
            Output::Nowhere => [input, Stream::Null, Stream::Null],
        }
    }
}

/// How a command is held until its release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Not at all: it executes at once.
    Nowhere,
    /// It is parked.
    Parked,
    /// Before its first instruction, not parked. The thread that started it has to release it.
    /// Where tracing is forbidden it is stopped some microseconds later (SIGSTOP).
    AtExec,
}

/// A command to be started.
#[derive(Debug)]
pub struct CommandSpec {
    /// Program (looked up in PATH) and arguments.
    pub argv: Vec<OsString>,
    /// The CPU that it is pinned to; `None`: all CPUs of this process.
    pub cpu: Option<u32>,
    /// Its SCHED_FIFO level, 1 to 98; 0 is SCHED_OTHER.
    pub level: i32,
    /// How it is held until its first release.
    pub hold: Hold,
    /// Whether it gets a process group of its own, so that Ctrl-C reaches Punctual only.
    pub own_group: bool,
    /// Standard input, output and error.
    pub streams: [Stream; 3],
    /// Added to the environment of this process.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory; by default that of this process.
    pub directory: Option<PathBuf>,
}

impl CommandSpec {
    /// Parked, not pinned, at level 0, in a process group of its own, without standard input.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self {
            argv: argv.into_iter().map(Into::into).collect(),
            cpu: None,
            level: 0,
            hold: Hold::Parked,
            own_group: true,
            streams: [Stream::Null, Stream::Inherit, Stream::Inherit],
            env: Vec::new(),
            directory: None,
        }
    }

    /// Pinned to a CPU.
    #[must_use]
    pub fn on(self, cpu: u32) -> Self {
        Self { cpu: Some(cpu), ..self }
    }
}
