//! Other policies for groups, while their tasks run.
//!
//! Each change is a command of its own. Where the domain's thread is its allocator, that thread
//! sends them; else another one does that becomes an allocator for this time, so that no job comes
//! between two commands.

use std::sync::mpsc::{channel, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::Instant;

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::{Refusal, TaskId};
use punctual_policies::{Allocators, PolicySwap};
use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched::thread_id;
use punctual_taskset::TaskSet;
use punctual_trace::Record;

use crate::abi::ALLOCATOR;
use crate::costs::capacity;
use crate::diagnostics::OTHERS;
use crate::domain::Command;
use crate::gsi::KernelGsi;
use crate::host::{KernelHost, PATIENCE};
use crate::limits::{parts, Part};
use crate::members;
use crate::programs::Programs;

/// A swap on its way to a domain's thread, and where the answer goes.
pub(crate) struct DomainSwap {
    pub policies: PolicySwap,
    pub answer: Sender<Swapped>,
}

/// A swap was made.
pub(crate) struct Swapped {
    pub domain: u32,
    /// Before its first command, CLOCK_MONOTONIC ns.
    pub at: u64,
    /// The dispatcher's refusal of a part of it.
    pub refused: Option<Refusal>,
}

impl KernelHost {
    /// Gives groups the policies that they have in `to`, which otherwise is the host's set. The
    /// time of the first swap, CLOCK_MONOTONIC ns. Admission is the caller's.
    ///
    /// # Errors
    /// A policy does not support its group, or needs a thread that the run was not started with;
    /// nothing is changed then. A domain's thread does not answer.
    pub fn swap_policies(&mut self, to: &TaskSet) -> Result<u64, Diagnostic> {
        let mut swaps = Vec::new();
        for part in parts(to, capacity(to).costs, self.room)? {
            let policies = PolicySwap::prepare(&self.set, to, part.domain, part.options)?;
            if policies.is_empty() {
                continue;
            }
            let domain = &self.domains[part.domain.0 as usize];
            if !domain.asks_policies {
                in_the_kernel(&part)?;
            }
            swaps.push((part.domain.0, policies));
        }
        let (answer, answers) = channel();
        let mut named = Vec::new();
        for (domain, policies) in swaps {
            named.extend(policies.changes().map(|(group, name)| (domain, group, name)));
            let swap = DomainSwap { policies, answer: answer.clone() };
            self.send(domain, Command::Swap(Box::new(swap)));
        }
        drop(answer);
        Arc::make_mut(&mut self.set).set_policies(to);
        let (limit, mut first) = (Instant::now() + PATIENCE, None);
        loop {
            match answers.recv_timeout(limit.saturating_duration_since(Instant::now())) {
                Ok(Swapped { domain, at, refused }) => {
                    first = Some(first.map_or(at, |first: u64| first.min(at)));
                    let of_domain = named.iter().filter(|(of, ..)| *of == domain);
                    let records =
                        of_domain.map(|(_, group, name)| Record::policy(at, *group, name));
                    self.state.swapped(domain, &records.collect::<Vec<_>>());
                    if let Some(why) = refused {
                        self.state.note(format!(
                            "the dispatcher refused the priority of a group after a swap: {why}"
                        ));
                    }
                }
                // Without any, a thread made this swap after an earlier call had given up.
                Err(RecvTimeoutError::Disconnected) => {
                    return Ok(first.unwrap_or_else(monotonic_ns))
                }
                Err(RecvTimeoutError::Timeout) => {
                    return Err(Diagnostic::machine(
                        "a swap of policies takes longer than 20 s",
                        "it is made once its CPU has time for ordinary threads",
                    ))
                }
            }
        }
    }
}

/// Refuses policies that need a thread in user space.
fn in_the_kernel(part: &Part) -> Result<(), Diagnostic> {
    if !part.asks_policies && part.windows_fit {
        return Ok(());
    }
    Err(Diagnostic::usage(
        format!(
            "CPU {}: a new policy makes its jobs in user space, and the run was started with \
             policies inside the kernel alone",
            part.cpu
        ),
        format!("start the set with the new policy; or {OTHERS}"),
    ))
}

/// Swaps from a thread that is no allocator, through one that is.
///
/// # Errors
/// The thread cannot be made, or cannot become an allocator; nothing is changed then. The kernel's
/// failure of a command.
pub(crate) fn by_an_allocator(
    (programs, domain, cpu): (&Programs, u32, u32),
    allocators: &mut Allocators,
    policies: &mut PolicySwap,
) -> Result<(u64, Option<Refusal>), Diagnostic> {
    let failed = |what: String| {
        Diagnostic::machine(
            format!("CPU {cpu}: no thread for a swap: {what}"),
            "see punctual doctor",
        )
    };
    std::thread::scope(|scope| {
        let swap = || {
            members::pin(cpu)?;
            let mut gsi = KernelGsi::new(programs, domain, monotonic_ns());
            let me = thread_id();
            let refusal = gsi.join(TaskId::NONE, me, ALLOCATOR);
            gsi.check()?;
            if refusal != 0 {
                return Err(failed(members::why(me, refusal)));
            }
            now(&mut gsi, allocators, policies)
        };
        let thread = std::thread::Builder::new().spawn_scoped(scope, swap);
        let thread = thread.map_err(|e| failed(e.to_string()))?;
        thread.join().unwrap_or_else(|_| Err(failed("it has panicked".to_owned())))
    })
}

/// Swaps, from an allocator.
///
/// # Errors
/// The kernel's failure of a command.
pub(crate) fn now(
    gsi: &mut KernelGsi<'_>,
    allocators: &mut Allocators,
    policies: &mut PolicySwap,
) -> Result<(u64, Option<Refusal>), Diagnostic> {
    let at = monotonic_ns();
    gsi.at(at);
    let refused = allocators.swap(gsi, policies).err();
    gsi.check().map(|()| (at, refused))
}
