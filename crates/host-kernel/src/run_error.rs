//! Why a set does not run inside the kernel, or no longer: cause, cure, exit code.

use punctual_policies::PolicyError;

/// One clear error; nothing is left behind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}\n  cure: {cure}")]
pub struct RunError {
    /// What is wrong.
    pub cause: String,
    /// What helps.
    pub cure: String,
    /// 2: the set asks for what this host does not do; 4: the machine does not permit it; 5: the scheduler was ended
    /// while it ran, by the kernel or by somebody else.
    pub exit_code: u8,
}

/// What the other hosts do instead.
pub(crate) const OTHERS: &str =
    "use --host user (a dispatcher thread, on any Linux) or --host sim (exact virtual time; nothing is started)";

impl RunError {
    pub(crate) fn machine(cause: impl Into<String>, cure: impl Into<String>) -> RunError {
        RunError { cause: cause.into(), cure: cure.into(), exit_code: 4 }
    }

    /// The kernel refused something of ours, and this is what it said.
    pub(crate) fn refused(cause: String) -> RunError {
        let files = std::io::Error::from_raw_os_error(libc::EMFILE).to_string();
        let cure = if cause.contains(&files) { "raise the limit on open files (ulimit -n)" } else { OTHERS };
        RunError::machine(cause, cure)
    }

    pub(crate) fn set(cause: impl Into<String>) -> RunError {
        RunError { cause: cause.into(), cure: OTHERS.to_owned(), exit_code: 2 }
    }

    /// A thread that is to be on a domain's CPU is not.
    pub(crate) fn elsewhere(cause: String) -> RunError {
        RunError::machine(cause, "leave the affinity of this program's threads as it is")
    }

    pub(crate) fn policy(e: &PolicyError) -> RunError {
        RunError { cause: format!("{}: {}", e.place, e.cause), cure: e.cure.clone(), exit_code: 2 }
    }
}

impl From<punctual_custody::CustodyError> for RunError {
    fn from(e: punctual_custody::CustodyError) -> RunError {
        RunError { exit_code: e.exit_code() as u8, cause: e.cause, cure: e.cure }
    }
}
