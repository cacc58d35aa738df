//! Tasks that suspend themselves in mid-job, where the suspensions are known (`steps`) and a
//! response bound for all of the job is not sufficient: under EDF, in a table, and on a supply that
//! is not the whole CPU.

use punctual_taskset::{Body, Spin, Step};

use crate::analysed_task::{AnalysedTask, DeadlineMet, Outcome};
use crate::demand::Demand;
use crate::demand_slack::SlackSearch;
use crate::step_limit::{Exhausted, StepLimit};

/// A part of a job between two suspensions, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExecutionSegment {
    /// The suspension before it; 0 for the first.
    pub(crate) suspension: u64,
    /// The longest execution; 0 between two suspensions in a row, and where a job begins or ends
    /// with a suspension.
    pub(crate) execution: u64,
}

pub(crate) const CUT_AT_WAKE_UP: &str =
    "it sleeps in mid-job: under EDF what is left of its budget is cut to its bandwidth when it \
     wakes, and is not sure to be enough; use rm, dm or fp, or split it into two tasks";
pub(crate) const UNSERVED: &str =
    "it sleeps in mid-job: each time it wakes its group may have to wait for its budget again; \
     give the group's server a shorter period, or split the task into two";
pub(crate) const MISSED_WINDOWS: &str =
    "it sleeps in mid-job, and its windows may pass while it sleeps; give it windows that follow \
     its steps, use rm, dm or fp, or split it into two tasks";
pub(crate) const ENDS_SUSPENDED: &str =
    "it sleeps at the end of its job, when all of its budget is used: it ends there before it is \
     done; raise its budget above what its steps execute";
pub(crate) const NEEDS_PROMOTION: &str =
    "it sleeps in its job, which ends with a sleep or may be blocked at each wake-up: give it its \
     promotion";

/// The segments of a job with known suspensions, their execution at most `budget` together; empty
/// for a job without suspensions, or with unknown ones.
pub(crate) fn segments(body: &Body, budget: u64) -> Vec<ExecutionSegment> {
    let Body::Steps(steps) = body else { return Vec::new() };
    if !steps.iter().any(|step| matches!(step, Step::Sleep(_))) {
        return Vec::new();
    }
    let mut all = vec![ExecutionSegment { suspension: 0, execution: 0 }];
    let mut left = budget;
    for step in steps {
        match step {
            Step::Sleep(ns) => all.push(ExecutionSegment { suspension: *ns, execution: 0 }),
            Step::Spin(spin) => {
                let most = longest(spin).min(left);
                left -= most;
                if let Some(last) = all.last_mut() {
                    last.execution += most;
                }
            }
        }
    }
    all
}

/// Whether a task may suspend itself in mid-job, and the sum of its suspensions in ns where they
/// are known. A program or process may always.
pub(crate) fn known_suspension(body: &Body) -> (bool, u64) {
    match body {
        Body::Spin(_) => (false, 0),
        Body::Steps(steps) => steps.iter().fold((false, 0), |(any, sum), step| match step {
            Step::Spin(_) => (any, sum),
            Step::Sleep(ns) => (true, u64::saturating_add(sum, *ns)),
        }),
        Body::Command(_) | Body::Pid(_) => (true, 0),
    }
}

/// How often a job suspends itself. For a program or process this is unknown, and counts as one.
pub(crate) fn suspensions(body: &Body) -> u64 {
    match body {
        Body::Spin(_) => 0,
        Body::Steps(steps) => {
            steps.iter().filter(|step| matches!(step, Step::Sleep(_))).count() as u64
        }
        Body::Command(_) | Body::Pid(_) => 1,
    }
}

/// Whether the budget is used up exactly when a job's last suspension begins: it is stopped in it.
pub(crate) fn ends_suspended(body: &Body, budget: u64) -> bool {
    let Body::Steps(steps) = body else { return false };
    let spins = steps.iter().map(|step| match step {
        Step::Spin(spin) => longest(spin),
        Step::Sleep(_) => 0,
    });
    matches!(steps.last(), Some(Step::Sleep(_))) && spins.fold(0, u64::saturating_add) == budget
}

fn longest(spin: &Spin) -> u64 {
    match spin {
        Spin::For(ns) => *ns,
        Spin::Uniform { max, .. } => *max,
        Spin::Histogram { bins, .. } => bins.iter().map(|bin| bin.0).max().unwrap_or(0),
        Spin::Recorded(times) => times.iter().copied().max().unwrap_or(0),
        Spin::Forever => u64::MAX,
    }
}

/// The most that is left of a budget after a wake-up `before` ns before the deadline (revised CBS
/// rule), rounded as the dispatcher does (dispatcher/reservation.c).
fn bandwidth(before: u64, budget: u64, deadline: u64) -> u64 {
    let (mut x, mut budget, mut deadline) = (before, budget, deadline);
    let mut shift = 0;
    while deadline >> 32 > 0 {
        deadline = (deadline >> 1) + 1;
        budget >>= 1;
        x >>= 1;
        shift += 1;
    }
    ((u128::from(x) * u128::from(budget) / u128::from(deadline.max(1))) << shift) as u64
}

/// Tests the members of a group under EDF that have known suspensions, and replaces the outcomes of
/// those that passed the demand test. `whole`: the group has all of its CPU, and all demand is
/// supplied.
pub(crate) fn test_edf(
    members: &[AnalysedTask],
    demand: &Demand,
    whole: bool,
    outcomes: &mut [Outcome],
    steps: &mut StepLimit,
) {
    let undisturbed = |m: &AnalysedTask| m.jitter == 0 && m.blocking == 0 && m.limited_by.is_none();
    let mut search =
        if whole && members.iter().all(undisturbed) { demand.slack_search() } else { None };
    let suspending = || members.iter().filter(|m| !m.segments.is_empty());
    if let (Some(search), Some(longest)) = (&mut search, suspending().map(|m| m.deadline).max()) {
        // The part of the search that all of them need. An error recurs below.
        let _ = demand.least_slack(search, longest, steps);
    }
    let passed = |o: &Outcome| o.met == DeadlineMet::Yes;
    for (m, outcome) in
        members.iter().zip(outcomes).filter(|(m, o)| !m.segments.is_empty() && passed(o))
    {
        let bound = search.map_or(Ok(None), |search| edf_bound(m, demand, search, steps));
        *outcome = match bound {
            Ok(Some(bound)) => Outcome::within(bound, false),
            Ok(None) => Outcome::suspension_fault(CUT_AT_WAKE_UP),
            Err(Exhausted) => Outcome::UNKNOWN,
        };
    }
}

/// A bound of the response under EDF of a task with known suspensions, on a whole CPU, in a set
/// whose demand is always supplied; `None`: its deadline is not guaranteed.
///
/// A segment that ends at e, of a job with deadline d, executes in a busy interval [x, e] only with
/// execution that is due by d: e - x is at most h(d - x), less what the job has left after the
/// segment. If x is not before the release, the job woke up after x, so that d - x is at least the
/// deadline less the latest wake-up: the least slack of all lengths from there on bounds e. That
/// gives the next wake-up, and so what the job has left.
fn edf_bound(
    task: &AnalysedTask,
    demand: &Demand,
    mut search: SlackSearch,
    steps: &mut StepLimit,
) -> Result<Option<u64>, Exhausted> {
    let mut left = task.segments.iter().map(|s| s.execution).fold(0, u64::saturating_add);
    // A job that ends with a suspension must have budget left then, or it is stopped in it.
    let spare = u64::from(task.ends_suspended());
    let mut at = 0u64;
    for (n, segment) in task.segments.iter().enumerate() {
        at = at.saturating_add(segment.suspension);
        let Some(before) = task.deadline.checked_sub(at).filter(|&b| b > 0) else {
            return Ok(None);
        };
        if n > 0 && bandwidth(before, task.budget, task.deadline) < left + spare {
            return Ok(None);
        }
        let slack = demand.least_slack(&mut search, before, steps)?;
        left = left.saturating_sub(segment.execution);
        at = task.deadline.saturating_sub(slack).saturating_sub(left);
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(of: &[(u64, u64)]) -> Body {
        Body::Steps(
            of.iter()
                .flat_map(|&(spin, sleep)| [Step::Spin(Spin::For(spin)), Step::Sleep(sleep)])
                .collect(),
        )
    }

    #[test]
    fn suspensions_part_a_job_into_segments_that_share_its_budget() {
        let s = |suspension, execution| ExecutionSegment { suspension, execution };
        assert_eq!(segments(&steps(&[(2, 5), (3, 1)]), 9), [s(0, 2), s(5, 3), s(1, 0)]);
        assert_eq!(segments(&steps(&[(2, 5), (3, 1)]), 4), [s(0, 2), s(5, 2), s(1, 0)]);
        assert_eq!(segments(&Body::Spin(Spin::For(3)), 9), []);
        assert!(
            ends_suspended(&steps(&[(2, 5), (3, 1)]), 5)
                && !ends_suspended(&steps(&[(2, 5), (3, 1)]), 6)
        );
    }

    #[test]
    fn the_cut_is_the_one_that_the_dispatcher_makes() {
        assert_eq!(bandwidth(3, 4, 10), 1);
        // Above 2^32 ns it is rounded down a little more, never up.
        let (left, budget, deadline) = (7_000_000_001, 3_000_000_007, 10_000_000_019);
        let exact = u128::from(left) * u128::from(budget) / u128::from(deadline);
        let cut = u128::from(bandwidth(left, budget, deadline));
        assert!(cut <= exact && exact - cut < 20, "{cut} {exact}");
    }
}
