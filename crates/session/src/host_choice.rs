//! Which host runs a set.

use punctual_diagnostic::Diagnostic;
use punctual_taskset::TaskSet;

use crate::{HostKind, Session};

/// Which host is to run a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum HostChoice {
    /// The service, if one listens and takes the set; else one in this process.
    Auto,
    /// A dispatcher thread per CPU in this process, on any Linux.
    User,
    /// Inside the kernel, by sched_ext.
    Kernel,
    /// A dispatcher of punctuald.
    Service,
    /// Virtual time.
    Sim,
    /// The kernel's SCHED_FIFO, for comparison: no budgets.
    Fifo,
    /// The kernel's SCHED_DEADLINE, for comparison.
    Deadline,
    /// The kernel's SCHED_OTHER, for comparison: no budgets, no priorities.
    Other,
}

impl HostChoice {
    /// The host; `None`: it depends on the set and the machine.
    #[must_use]
    pub fn kind(self) -> Option<HostKind> {
        match self {
            HostChoice::Auto => None,
            HostChoice::User => Some(HostKind::User),
            HostChoice::Kernel => Some(HostKind::Kernel),
            HostChoice::Service => Some(HostKind::Service),
            HostChoice::Sim => Some(HostKind::Sim),
            HostChoice::Fifo => Some(HostKind::Fifo),
            HostChoice::Deadline => Some(HostKind::Deadline),
            HostChoice::Other => Some(HostKind::Other),
        }
    }
}

impl From<HostKind> for HostChoice {
    fn from(kind: HostKind) -> HostChoice {
        match kind {
            HostKind::User => HostChoice::User,
            HostKind::Kernel => HostChoice::Kernel,
            HostKind::Service => HostChoice::Service,
            HostKind::Sim => HostChoice::Sim,
            HostKind::Fifo => HostChoice::Fifo,
            HostKind::Deadline => HostChoice::Deadline,
            HostKind::Other => HostChoice::Other,
        }
    }
}

/// Whether the service has these options of a run.
///
/// # Errors
/// Which one it does not have.
pub fn service_accepts(overload: bool, trace: bool) -> Result<(), Diagnostic> {
    punctual_host_service::accepts_options(overload, trace)
}

impl Session {
    /// Whether a service listens that takes the set with these options. Why, or why not, for
    /// people.
    ///
    /// # Errors
    /// Why not.
    pub fn service_for(set: &TaskSet, (overload, trace): (bool, bool)) -> Result<String, String> {
        service_accepts(overload, trace).map_err(|e| e.cause)?;
        punctual_host_service::takes(set)
    }
}
