//! The sporadic server (Sprunt, Sha and Lehoczky 1989; POSIX `SCHED_SPORADIC`), for a task or a
//! group under fixed priorities.
//!
//! What is executed comes back one period after the time from which it could have been executed, so
//! that the server demands no more than a periodic task of its budget and period. The rules are
//! those of Stanovich, Baker, Wang and Harbour 2010 ("Defects of the POSIX sporadic server and how
//! to correct them"): what is executed of a replenishment has that replenishment's time, moved to
//! the server's activation when it comes later.
//!
//! A release is one replenishment: its budget, and a period from its time as the deadline.

use std::collections::VecDeque;

use punctual_dispatcher::End;
use punctual_taskset::registry;

use super::{begin_with_job, reserved, state};
use crate::entry::PolicyEntry;
use crate::policy::{MemberParams, PolicyEvent, SchedulingPolicy};
use crate::{Context, JobParams};

pub(super) static SPORADIC: PolicyEntry = PolicyEntry {
    info: &registry::SPORADIC,
    timers: true,
    make: |_, setup| Ok(Box::new(Sporadic { servers: state(setup, Server::default()) })),
    ..reserved::DEFERRABLE
};

struct Sporadic {
    /// By member.
    servers: Vec<Server>,
}

/// A replenishment below this share of the budget is merged with the next one, at the later time.
/// So there are at most five, and only the first and the last can be smaller. POSIX requires at
/// least four (`_POSIX_SS_REPL_MAX`).
const LEAST_SHARE: u64 = 4;

/// The replenishments of one server, in order of time; together they are its budget.
#[derive(Clone, Default)]
struct Server {
    /// Time, ns, and budget, ns.
    queue: VecDeque<(u64, u64)>,
    /// Of the job in flight: what is entered in the queue already, ns.
    entered: u64,
    /// When it last had nothing to execute any more, ns.
    idle_since: u64,
}

impl Server {
    /// The server has something to execute again: all that is due by `now` is one budget, which
    /// counts from now.
    fn activate(&mut self, now: u64) {
        let due = self.queue.iter().take_while(|(time, _)| *time <= now).count();
        let budget = self.queue.drain(..due).map(|(_, budget)| budget).sum();
        if due > 0 {
            self.queue.push_front((now, budget));
        }
    }

    /// `used` ns of the first replenishment were executed: they come back a period after its time.
    fn consume(&mut self, member: &MemberParams, used: u64) {
        let Some(&mut (time, ref mut budget)) = self.queue.front_mut() else { return };
        let used = used.min(*budget);
        *budget -= used;
        if *budget == 0 {
            self.queue.pop_front();
        }
        if used == 0 {
            return;
        }
        let back = time.saturating_add(member.period);
        match self.queue.back_mut() {
            Some(last) if last.0 > time && last.1 < member.budget / LEAST_SHARE => {
                *last = (back, last.1 + used);
            }
            _ => self.queue.push_back((back, used)),
        }
    }

    /// Begins the release of the first replenishment, or sets its timer. Replenishments are not
    /// merged here: what is executed of each comes back a period after its own time. At the
    /// deadline the remaining budget becomes the next period's, so that a server that was throttled
    /// never executes more than two budgets in a row.
    fn serve(&mut self, context: &mut Context<'_>) {
        let now = context.now();
        let Some(&(time, budget)) = self.queue.front() else { return };
        if time > now {
            let _ = context.set_timer(time);
            return;
        }
        self.entered = 0;
        let (finish, priority) = (time.saturating_add(context.member().period), context.rank());
        begin_with_job(context, time, JobParams { start: now, finish, budget, priority });
    }
}

impl SchedulingPolicy for Sporadic {
    fn paces(&self, _: &MemberParams) -> bool {
        true
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let (member, now) = (*context.member(), context.now());
        let server = &mut self.servers[member.index as usize];
        if server.queue.is_empty() {
            server.queue.reserve(LEAST_SHARE as usize + 2);
            server.queue.push_back((now, member.budget));
        }
        match event {
            PolicyEvent::Released => {
                // An arrival that waited for the one before it: the server was never idle.
                if context.arrival() > server.idle_since {
                    server.activate(now);
                }
                server.serve(context);
            }
            PolicyEvent::Timer if context.standing().is_none() => server.serve(context),
            PolicyEvent::JobEnded { end: End::Exhausted, .. } => {
                let budget = server.queue[0].1;
                server.consume(&member, budget);
                server.serve(context);
            }
            PolicyEvent::JobEnded { end: End::Expired, used, .. } => {
                server.consume(&member, used.saturating_sub(server.entered));
                if let Some(first) = server.queue.front_mut() {
                    first.0 = first.0.max(now);
                }
                server.serve(context);
            }
            PolicyEvent::JobEnded { used, .. } => {
                server.consume(&member, used.saturating_sub(server.entered));
                (server.entered, server.idle_since) = (0, now);
            }
            PolicyEvent::Blocked => {
                let used = context.used();
                server.consume(&member, used.saturating_sub(server.entered));
                server.entered = used;
            }
            PolicyEvent::Ready => {
                server.activate(now);
                server.serve(context);
            }
            PolicyEvent::Timer | PolicyEvent::Lost => {}
        }
    }
}
