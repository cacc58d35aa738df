//! Groups whose tasks reclaim unused budget (GRUB, Lipari and Baruah 2000).
//!
//! Each task is a server of the bandwidth budget / deadline; all together they meet their deadlines
//! if the bandwidths are at most 1, and whatever they reclaim, they execute at most the part
//! C = [`PART_FOR_TASKS`] of any interval, or the sum of their bandwidths where that is more. What
//! the host itself takes must fit into the rest. It takes at most
//!
//! ```text
//! blocking + sum over all terms of (1 + (w + jitter) / period) * amount      within w
//! ```
//!
//! of which the share is largest in the shortest interval, that of the shortest deadline.

use punctual_taskset::PART_FOR_TASKS;

use crate::analysed_task::{AnalysedTask, Deferral};
use crate::interference::Interference;
use crate::utilization::Utilization;

/// Why nothing is promised to a task that suspends itself. It disturbs no other.
pub(crate) const SUSPENDS_ITSELF: &str =
    "there is no test for a task that suspends itself where budgets are reclaimed";

/// Why nothing is promised to members that reclaim, where that is so.
pub(crate) fn obstacle(members: &[AnalysedTask], host: &Interference) -> Option<String> {
    let untested = |m: &&AnalysedTask| {
        m.jitter > 0
            || m.blocking > 0
            || m.limited_by.is_some()
            || m.deferral == Deferral::KeepsBudget
    };
    if members.iter().any(|m| untested(&m)) {
        return Some(
            "where budgets are reclaimed there is no test for jitter, blocking, budget groups, \
             deferrable servers and windows"
                .to_owned(),
        );
    }
    let demanding = || members.iter().filter(|m| m.period.is_some() && m.budget > 0);
    let shortest = demanding().map(|m| m.deadline).min()?;
    let mut terms: Vec<(u128, u64)> =
        demanding().map(|m| (u128::from(m.budget) + u128::from(m.overhead), m.deadline)).collect();
    let own = Utilization::sum_wide(terms.iter().copied());
    if own.exceeds(&Utilization::new(1u8, 1u8)) {
        return Some(
            "where budgets are reclaimed, budget / deadline of all members must be at most 100 % \
             together"
                .to_owned(),
        );
    }
    if !own.exceeds(&Utilization::new(PART_FOR_TASKS.0, PART_FOR_TASKS.1)) {
        terms = vec![(u128::from(PART_FOR_TASKS.0), PART_FOR_TASKS.1)];
        terms.extend(demanding().map(|m| (u128::from(m.overhead), m.deadline)));
    }
    let once = |m: &AnalysedTask| (u128::from(m.overhead), shortest);
    terms.extend(demanding().map(once));
    terms.push((u128::from(host.blocking), shortest));
    for (&(period, jitter), amount) in &host.terms {
        terms.push((*amount, period));
        terms.push((*amount, shortest));
        if jitter > 0 {
            let late = amount.saturating_mul(u128::from(jitter)).div_ceil(u128::from(period));
            terms.push((late, shortest));
        }
    }
    Utilization::sum_wide(terms).exceeds(&Utilization::new(1u8, 1u8)).then(|| {
        let (part, of) = PART_FOR_TASKS;
        format!(
            "what the host takes does not fit beside {} % of the CPU, up to which budgets are \
             reclaimed",
            part * 100 / of
        )
    })
}
