//! The kernel's real-time threads that free what RCU has kept.
//!
//! With PREEMPT_RT they are SCHED_FIFO 1 (`rcuc/CPU`, and with `rcu_nocbs=` `rcuop/CPU`), so no
//! scheduler of sched_ext can preempt them, and beside programs that fork they execute for
//! milliseconds in one go. As ordinary threads of nice -20 they have the time that jobs leave. The
//! programs that give them work have only that time too, so what waits for them stays bounded.

use crate::adopt::record;
use crate::journal::{Entry, Journal};
use crate::proc::{self, Identity};
use punctual_diagnostic::Diagnostic;
use punctual_sys::sched::Attributes;
use std::path::PathBuf;

/// Those of a CPU that are real-time threads. Not real-time safe.
pub fn rcu_threads(cpu: u32) -> Vec<Identity> {
    let names = [format!("rcuc/{cpu}"), format!("rcuop/{cpu}")];
    // The name first, so that of every other process one short file is read.
    let is_meant = |pid: &i32| {
        names.contains(&proc::command_of(*pid))
            && proc::is_kernel_thread(*pid)
            && Attributes::of(*pid).is_ok_and(|now| now.is_real_time())
    };
    proc::pids().into_iter().filter(is_meant).filter_map(Identity::of).collect()
}

/// Makes them ordinary threads; [`restore`](crate::restore) gives them back what they had. Not
/// real-time safe.
///
/// # Errors
/// The journal cannot be written; not permitted.
pub(crate) fn make_ordinary(journal: &Journal, threads: &[Identity]) -> Result<(), Diagnostic> {
    for &id in threads {
        let Some(process) = record(id, PathBuf::new()) else { continue };
        journal.write(&Entry::Adopted { process })?;
        let mut ordinary = Attributes::ordinary();
        ordinary.nice = -20;
        ordinary.give(id.pid).map_err(|e| {
            Diagnostic::refused(
                format!("the kernel's thread {} stays real-time", proc::command_of(id.pid)),
                e,
                "run it as root (CAP_SYS_NICE)",
            )
        })?;
    }
    Ok(())
}
