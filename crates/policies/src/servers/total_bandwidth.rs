//! Servers that give each request of a task a deadline by its bandwidth: the total bandwidth server
//! (Spuri and Buttazzo 1994) and the constant utilization server (Deng, Liu and Sun 1997).
//!
//! The k-th request, of C ns at r, has the deadline max(r, d) + C / U, where d is the deadline of
//! the one before and U the bandwidth: here C is the budget, so that C / U is the period. The
//! constant utilization server does not begin it before d; the total bandwidth server may. A
//! request that exhausts its budget ends.

use punctual_taskset::registry;

use super::{begin_with_job, reserved, state};
use crate::entry::PolicyEntry;
use crate::policy::{MemberParams, PolicyEvent, SchedulingPolicy};
use crate::wakeup::cut_to_bandwidth;
use crate::{Context, JobParams};

pub(super) static TOTAL_BANDWIDTH: PolicyEntry = PolicyEntry {
    info: &registry::TOTAL_BANDWIDTH,
    make: |_, setup| Ok(Box::new(PerRequest { early: true, deadlines: state(setup, 0) })),
    ..reserved::DEFERRABLE
};

pub(super) static CONSTANT_UTILIZATION: PolicyEntry = PolicyEntry {
    info: &registry::CONSTANT_UTILIZATION,
    make: |_, setup| Ok(Box::new(PerRequest { early: false, deadlines: state(setup, 0) })),
    ..reserved::DEFERRABLE
};

struct PerRequest {
    /// A request may begin before the deadline of the one before.
    early: bool,
    /// By member: the absolute deadline of the latest request, ns.
    deadlines: Vec<u64>,
}

impl SchedulingPolicy for PerRequest {
    fn paces(&self, _: &MemberParams) -> bool {
        true
    }

    fn handle(&mut self, context: &mut Context<'_>, event: PolicyEvent) {
        let member = *context.member();
        match event {
            PolicyEvent::Released => {
                let deadline = &mut self.deadlines[member.index as usize];
                let (arrival, from) = (context.arrival(), context.arrival().max(*deadline));
                *deadline = from.saturating_add(member.period);
                let start = if self.early { arrival } else { from };
                let (finish, budget) = (*deadline, member.budget);
                begin_with_job(context, arrival, JobParams { start, finish, budget, priority: 0 });
            }
            PolicyEvent::Ready => {
                let now = context.now();
                if let Some(budget) = cut_to_bandwidth(context) {
                    let finish = context.release().deadline;
                    let _ =
                        context.replace_job(&JobParams { start: now, finish, budget, priority: 0 });
                }
            }
            _ => {}
        }
    }
}
