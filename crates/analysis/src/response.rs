//! Response-time analysis for fixed priorities (Joseph and Pandya 1986; Audsley et al. 1993 with
//! jitter and blocking), on any supply.
//!
//! The response is the least w with
//!
//! ```text
//! supply(w) >= C + B + S + sum over the more important j of ceil((w + jitter_j) / T_j) * C_j
//! ```
//!
//! plus the task's own jitter. Deadlines are at most the periods, so that one job of a task is
//! tested: the first one after the synchronous release of all tasks.

use crate::analysed_task::{AnalysedTask, DeadlineMet, Deferral, Outcome};
use crate::equal_priority::EqualPriority;
use crate::higher_priority::{HigherPriority, LowerBound};
use crate::interference::Interference;
use crate::self_suspension;
use crate::step_limit::{Exhausted, StepLimit};
use crate::supply::Supply;

/// The worst responses of all members of a group under fixed priorities, by index. `synchronous`:
/// whether all strictly periodic members can be released at one instant. `host`: what the host
/// takes.
pub(crate) fn responses(
    members: &[AnalysedTask],
    supply: &Supply,
    synchronous: bool,
    host: &Interference,
    steps: &mut StepLimit,
) -> Vec<Outcome> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&i| std::cmp::Reverse(members[i].rank));
    let mut outcomes = vec![Outcome::UNKNOWN; members.len()];
    let mut higher = HigherPriority::new(host);
    // A less important task has no shorter completion: the search begins where the level above it
    // ended.
    let mut from = LowerBound::default();
    let mut late = false;
    let longest = members.iter().filter_map(|m| m.period).max().unwrap_or(0);
    for level in order.chunk_by(|&a, &b| members[a].rank == members[b].rank) {
        let equals: Vec<&AnalysedTask> = level.iter().map(|&i| &members[i]).collect();
        if let Ok(equal) = EqualPriority::new(&equals, &higher, supply, host, steps) {
            for (&i, &ahead) in level.iter().zip(&equal.ahead) {
                let test = Test { task: &members[i], ahead, synchronous, host, from };
                let mut outcome =
                    test.run(&higher, &equal, supply, steps).unwrap_or(Outcome::UNKNOWN);
                outcome.exact &= !late;
                outcome.reached &= !late;
                // A late job ends at its deadline and so executes less than its budget: less
                // important tasks may complete earlier than computed.
                late |= outcome.met != DeadlineMet::Yes;
                outcomes[i] = outcome;
            }
        }
        for equal in equals {
            higher.add(equal);
        }
        let completed = match level {
            [i] if members[*i].is_plain() => outcomes[*i].response.map(|r| r - members[*i].jitter),
            _ => None,
        };
        let w = match completed {
            Some(w) => Ok(Some(w)),
            None => higher.completion(1, None, supply, (from, longest), steps),
        };
        from.w = match w {
            Ok(Some(w)) => w,
            // No less important task completes within its period.
            Ok(None) => longest.saturating_add(1),
            Err(Exhausted) => from.w,
        };
        let cost = steps.spend(higher.terms());
        from.demand = if cost.is_ok() && from.w <= longest { higher.demand(from.w) } else { 0 };
    }
    outcomes
}

/// The test of one task of a level.
struct Test<'a> {
    task: &'a AnalysedTask,
    /// Of [`EqualPriority::ahead`].
    ahead: (u128, u128),
    synchronous: bool,
    host: &'a Interference,
    from: LowerBound,
}

impl Test<'_> {
    fn run(
        &self,
        higher: &HigherPriority,
        equal: &EqualPriority,
        group: &Supply,
        steps: &mut StepLimit,
    ) -> Result<Outcome, Exhausted> {
        let task = self.task;
        let Some(period) = task.period else { return Ok(Outcome::LATE) };
        let supply = task.supply(group);
        // The task may be blocked again at each wake-up.
        let wake_ups = task.segments.len().saturating_sub(1) as u128;
        let blocking = u128::from(task.blocking) + u128::from(self.host.blocking);
        let own = u128::from(task.cost()) + blocking * (1 + wake_ups) + u128::from(task.suspension);
        // A job that ends with a suspension needs the CPU once more to complete.
        let own = own + u128::from(task.ends_suspended());
        let range = (self.from, period.saturating_sub(task.jitter));
        let mut exact = self.synchronous && supply == Supply::Whole && task.blocking == 0;
        exact &= task.deferral == Deferral::Never && self.host.is_none();
        exact &= !higher.unbounded && !higher.estimated && equal.tie_breaks_known;
        let (at_once, earlier) = self.ahead;
        let w = if equal.one_job_each && task.deferral == Deferral::Never {
            let together = higher.completion(own + at_once, None, &supply, range, steps)?;
            if earlier == 0 {
                together
            } else {
                let range = (self.from, range.1.saturating_add(1));
                let own = own + at_once + earlier;
                let after = higher.completion(own, None, &supply, range, steps)?.map(|w| w - 1);
                exact &= after == together || !equal.periodic;
                together.zip(after).map(|(a, b)| a.max(b))
            }
        } else {
            // Equal tasks count as more important.
            exact = false;
            let (ahead, except) =
                equal.with_equals.as_ref().map_or((higher, None), |all| (all, Some(task)));
            let at_once = ahead.completion(own, except, &supply, range, steps)?;
            let continuous = supply == Supply::Whole || self.host.holds_only;
            if (continuous && task.limited_by.is_none()) || task.segments.is_empty() {
                at_once
            } else {
                // While the task is suspended its group may be idle, and wait again for its server:
                // each segment has a busy period of its own.
                let mut sum = Some(0u64);
                for segment in &task.segments {
                    let own = u128::from(segment.execution.max(1)) + blocking;
                    let w = ahead.completion(own, except, &supply, range, steps)?;
                    sum = sum
                        .zip(w)
                        .map(|(sum, w)| sum.saturating_add(w).saturating_add(segment.suspension));
                }
                let in_time = |w: Option<u64>| {
                    w.is_some_and(|w| w <= task.deadline.saturating_sub(task.jitter))
                };
                if in_time(at_once) && !in_time(sum) && task.limited_by.is_none() {
                    return Ok(Outcome {
                        response: sum.map(|w| w.saturating_add(task.jitter)),
                        ..Outcome::suspension_fault(self_suspension::UNSERVED)
                    });
                }
                sum
            }
        };
        let response = w.map(|w| w.saturating_add(task.jitter));
        let in_time = response.is_some_and(|r| r <= task.deadline);
        let met = if in_time { DeadlineMet::Yes } else { DeadlineMet::No };
        Ok(Outcome { met, response, exact, reached: exact, ..Outcome::UNKNOWN })
    }
}
