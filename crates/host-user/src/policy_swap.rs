//! Other policies for groups, while their tasks run.
//!
//! The control side makes the policies, the engine puts them to work at one of its instants, and
//! the control side frees those that are not used any more.

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::Refusal;
use punctual_policies::{LocalDispatcher, PolicySwap};
use punctual_sys::clock::monotonic_ns;
use punctual_taskset::TaskSet;
use punctual_trace::{PolicyStop, Record};

use crate::engine::{Command, Engine};
use crate::host::Host;
use crate::reports::Notice;
use crate::stuck_policy;

/// How long an engine may take: it answers at its next instant, which its doorbell requests.
const PATIENCE: Duration = Duration::from_secs(5);

/// A swap on its way through an engine.
pub struct EngineSwap {
    policies: PolicySwap,
    /// When it took effect, CLOCK_MONOTONIC ns; 0 until then.
    at: Arc<AtomicU64>,
    /// The dispatcher's refusal of a part of it.
    pub refused: Option<Refusal>,
}

impl Host {
    /// Gives groups the policies that they have in `to`, which otherwise is the host's set, all
    /// groups of a CPU at one instant. Admission is the caller's. The first of these instants,
    /// CLOCK_MONOTONIC ns.
    ///
    /// # Errors
    /// A policy does not support its group; the swap before this one is not over yet. Nothing is
    /// changed then. An engine that does not answer makes the swap when it continues.
    pub fn swap_policies(&mut self, to: &TaskSet) -> Result<u64, Diagnostic> {
        let mut swaps = Vec::new();
        for (place, engine) in self.engines.iter().enumerate() {
            let policies = PolicySwap::prepare(&self.set, to, engine.domain, engine.allocators)?;
            if policies.is_empty() {
                continue;
            }
            if engine.swapping {
                let cause = format!("the dispatcher of CPU {} swaps policies already", engine.cpu);
                return Err(Diagnostic::machine(cause, "try again"));
            }
            swaps.push((place, policies));
        }
        let mut pending = Vec::new();
        for (place, policies) in swaps {
            let engine = &mut self.engines[place];
            let at = Arc::new(AtomicU64::new(0));
            engine.swapping = true;
            engine.commands.send(Command::Swap(Box::new(EngineSwap {
                policies,
                at: at.clone(),
                refused: None,
            })));
            engine.doorbell.ring();
            pending.push((engine.cpu, at));
        }
        self.set.set_policies(to);
        let limit = Instant::now() + PATIENCE;
        let mut first = None;
        for (cpu, at) in pending {
            // Pairs with the store of the engine.
            while at.load(Acquire) == 0 {
                if Instant::now() > limit {
                    return Err(Diagnostic::machine(
                        format!("the dispatcher of CPU {cpu} does not answer"),
                        "see whether it is stopped; it swaps the policies when it continues",
                    ));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let at = at.load(Acquire);
            first = Some(first.map_or(at, |first: u64| first.min(at)));
        }
        // Without any, an engine made this swap after an earlier call had given up.
        Ok(first.unwrap_or_else(monotonic_ns))
    }
}

impl Engine {
    /// Takes effect at `now`: what was due before is handled at this instant, too, and belongs to
    /// the new policies.
    pub(crate) fn swap(&mut self, swap: &mut EngineSwap, now: u64) {
        let Engine { dispatcher, allocators, trace, .. } = self;
        if let Some(trace) = trace {
            trace.send_new(dispatcher);
            let named = swap.policies.changes();
            named.for_each(|(group, name)| trace.send(Record::policy(now, group, name)));
        }
        let mut gsi = LocalDispatcher::new(dispatcher, now);
        swap.refused = allocators.swap(&mut gsi, &mut swap.policies).err();
        self.swapped = true;
        // Without a timer the new policies serve all the same.
        let _ = stuck_policy::bound_calls();
        // Pairs with the load of the control side.
        swap.at.store(now, Release);
    }

    /// The allocators have given a group another policy, because its own was stopped.
    pub(crate) fn policy_stopped(&mut self, stop: PolicyStop) {
        if let Some(trace) = &mut self.trace {
            trace.send(Record::policy_stopped(&stop));
        }
        self.swapped = true;
        self.notices.send(Notice::PolicyStopped(stop));
    }

    /// A task's release may be of another policy than the one before: updates what the engine
    /// derives from the policy.
    pub(crate) fn follow_swap(&mut self, i: u32) {
        let Engine { allocators, members, .. } = self;
        let Some(m) = members[i as usize].as_deref_mut() else { return };
        m.by_policy(allocators);
    }
}
