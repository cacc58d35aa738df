//! What a baseline needs of the kernel. All may be made from a real-time thread but `affinity`:
//! none allocates.

use std::io;

use punctual_sys::sched::{self, Attributes, Children};

/// A policy with what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelPolicy {
    /// SCHED_OTHER.
    Other,
    /// SCHED_FIFO at this priority.
    Fifo(i32),
    /// SCHED_DEADLINE; ns each.
    Deadline {
        /// Budget.
        runtime: u64,
        /// Relative deadline.
        deadline: u64,
        /// Period.
        period: u64,
    },
}

/// Gives a thread (0: the caller) a policy. `forks`: under SCHED_DEADLINE its children become
/// ordinary.
pub fn set_policy(tid: i32, policy: KernelPolicy, forks: bool) -> Result<(), i32> {
    let attributes = match policy {
        KernelPolicy::Other => Attributes::ordinary(),
        KernelPolicy::Fifo(priority) => Attributes::fifo(priority as u32),
        KernelPolicy::Deadline { runtime, deadline, period } => {
            let children = if forks { Children::AreOrdinary } else { Children::Inherit };
            Attributes::deadline(runtime, deadline, period, children)
        }
    };
    attributes.give(tid).map_err(|e| number(&e))
}

/// Binds the calling thread to one CPU, or with `None` to all it may have.
pub fn set_affinity(cpu: Option<u32>) -> Result<(), i32> {
    match cpu {
        Some(cpu) => sched::pin(0, cpu),
        None => sched::unpin(0),
    }
    .map_err(|e| number(&e))
}

/// The CPUs the calling thread may use.
pub fn affinity() -> Vec<u32> {
    sched::affinity(0).map_or_else(|_| Vec::new(), |mask| sched::cpus(&mask).collect())
}

/// The number of an error of the kernel's.
pub fn number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(libc::EINVAL)
}
