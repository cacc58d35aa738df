//! The soft constant bandwidth server (Abeni and Buttazzo 1998), for one task.
//!
//! An exhausted server is replenished at once, and its deadline postponed by a period: it also uses
//! idle time, and its demand within any interval is at most its bandwidth. A task that wakes up
//! keeps budget and deadline if they demand at most the bandwidth; otherwise the budget is full,
//! and the deadline a period from now.

use punctual_dispatcher::End;
use punctual_taskset::registry;

use super::{begin_with_job, reserved, state};
use crate::entry::PolicyEntry;
use crate::policy::{MemberParams, PolicyEvent, SchedulingPolicy};
use crate::wakeup::bandwidth;
use crate::{Context, JobParams};

pub(super) static SOFT_CONSTANT_BANDWIDTH: PolicyEntry = PolicyEntry {
    info: &registry::SOFT_CONSTANT_BANDWIDTH,
    make: |_, setup| Ok(Box::new(SoftBandwidth { servers: state(setup, Server::default()) })),
    ..reserved::DEFERRABLE
};

struct SoftBandwidth {
    /// By member.
    servers: Vec<Server>,
}

/// What a server keeps while its task is idle.
#[derive(Clone, Copy, Default)]
struct Server {
    /// Absolute, ns.
    deadline: u64,
    /// Remaining budget, ns.
    budget: u64,
}

impl Server {
    /// Budget and deadline for a task that becomes active at `now`.
    fn activate(&mut self, member: &MemberParams, now: u64) {
        let allowed = bandwidth(member, self.deadline.saturating_sub(now));
        let from = match self.budget {
            0 => self.deadline.max(now),
            more if more > allowed => now,
            _ => return,
        };
        *self = Server { deadline: from.saturating_add(member.period), budget: member.budget };
    }
}

impl SchedulingPolicy for SoftBandwidth {
    fn paces(&self, _: &MemberParams) -> bool {
        true
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let (member, now) = (*context.member(), context.now());
        let server = &mut self.servers[member.index as usize];
        let mut at = now;
        match event {
            PolicyEvent::Released => {
                server.activate(&member, now);
                at = context.arrival();
            }
            PolicyEvent::JobEnded { end: End::Exhausted, .. } => {
                let deadline = server.deadline.saturating_add(member.period);
                *server = Server { deadline, budget: member.budget };
            }
            // It slept until its deadline.
            PolicyEvent::JobEnded { end: End::Expired, .. } => {
                server.budget = 0;
                server.activate(&member, now);
            }
            PolicyEvent::JobEnded { .. } => {
                server.budget = context.release().left;
                return;
            }
            PolicyEvent::Ready if context.standing().is_some() => {
                let before = *server;
                server.budget = context.remaining();
                server.activate(&member, now);
                if server.deadline == before.deadline {
                    return;
                }
            }
            _ => return,
        }
        let Server { deadline: finish, budget } = *server;
        begin_with_job(context, at, JobParams { start: now, finish, budget, priority: 0 });
    }
}
