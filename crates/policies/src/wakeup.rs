//! The bandwidth of a member, and the revised CBS wake-up rule (Abeni, Lipari and Lelli 2014), for
//! releases that policies make. The dispatcher applies it to those of reservations.

use crate::policy::MemberParams;
use crate::Context;

/// What the bandwidth of a member, budget / deadline, allows in `ns`.
pub(crate) fn bandwidth(member: &MemberParams, ns: u64) -> u64 {
    let allowed = u128::from(ns) * u128::from(member.budget) / u128::from(member.deadline);
    u64::try_from(allowed).unwrap_or(u64::MAX)
}

/// Of a task that wakes in mid-job: gives up what is left of its release beyond its bandwidth until
/// its deadline. What remains, for a job in place of the one in flight; `None` when nothing is cut.
pub(crate) fn cut_to_bandwidth(context: &mut Context<'_>) -> Option<u64> {
    let (deadline, now) = (context.release().deadline, context.now());
    if deadline <= now || context.standing().is_none() {
        return None;
    }
    let (left, allowed) = (context.remaining(), bandwidth(context.member(), deadline - now));
    if left <= allowed {
        return None;
    }
    context.give_up(left - allowed);
    Some(allowed)
}
