//! Tasks whose sleeps in mid-job are known (`steps`), where a response bound for all of the job is
//! not enough: under EDF, in a table, on a supply that comes and goes.

use punctual_taskset::{Body, Spin, Step};

use crate::contender::{Contender, Fit, Outcome};
use crate::demand::{Demand, Descent};
use crate::effort::{Effort, Exhausted};

/// A stretch of execution of a job, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Awake {
    /// The sleep before it; 0 for the first.
    pub(crate) after: u64,
    /// The longest execution; 0 where two sleeps follow each other, or the job begins or ends with one.
    pub(crate) spin: u64,
}

pub(crate) const CUT: &str =
    "it sleeps in mid-job: under EDF what is left of its budget is cut to its bandwidth when it \
                              wakes, and is not sure to be enough; use rm, dm or fp, or split it into two tasks";
pub(crate) const UNSERVED: &str = "it sleeps in mid-job: each time it wakes its group may have to wait for its budget \
                                   anew; give the group's server a shorter period, or split the task into two";
pub(crate) const MISSED_WINDOWS: &str = "it sleeps in mid-job, and its windows may pass while it sleeps; give it \
                                         windows that follow its steps, use rm, dm or fp, or split it into two tasks";
pub(crate) const ENDS_ASLEEP: &str = "it sleeps at the end of its job, when all of its budget is used: it ends there \
                                      before it is done; raise its budget above what its steps execute";
pub(crate) const UNPROMOTED: &str = "it sleeps in its job, which ends with a sleep or may be blocked at each wake-up: \
                                     give it its promotion";

/// The stretches of a job that sleeps, their execution no more than `budget` together; none for one
/// that does not, or of which it is not known.
pub(crate) fn stretches(body: &Body, budget: u64) -> Vec<Awake> {
    let Body::Steps(steps) = body else { return Vec::new() };
    if !steps.iter().any(|step| matches!(step, Step::Sleep(_))) {
        return Vec::new();
    }
    let mut all = vec![Awake { after: 0, spin: 0 }];
    let mut left = budget;
    for step in steps {
        match step {
            Step::Sleep(ns) => all.push(Awake { after: *ns, spin: 0 }),
            Step::Spin(spin) => {
                let most = longest(spin).min(left);
                left -= most;
                if let Some(last) = all.last_mut() {
                    last.spin += most;
                }
            }
        }
    }
    all
}

/// Whether a job has used up its budget just when its last sleep begins: it is stopped in it.
pub(crate) fn ends_asleep(body: &Body, budget: u64) -> bool {
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

/// What is left of a budget at most on waking `before` ns before the deadline (revised CBS rule), rounded
/// as the dispatcher does (dispatcher/reservation.c).
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

/// Those of a group under EDF that sleep: whether they are sure of what they were found to get. `whole`:
/// the CPU is the group's own, and all demand is supplied.
pub(crate) fn under_edf(
    members: &[Contender],
    demand: &Demand,
    whole: bool,
    outcomes: &mut [Outcome],
    effort: &mut Effort,
) {
    let plain = whole && members.iter().all(|c| c.jitter == 0 && c.blocking == 0 && c.wet.is_none());
    let mut descent = if plain { demand.descent() } else { None };
    let sleepers = || members.iter().filter(|c| !c.stretches.is_empty());
    if let (Some(descent), Some(longest)) = (&mut descent, sleepers().map(|c| c.deadline).max()) {
        // What all of them need; where the effort ends here, it ends below as well.
        let _ = demand.least_slack(descent, longest, effort);
    }
    for (c, outcome) in members.iter().zip(outcomes).filter(|(c, o)| !c.stretches.is_empty() && o.fit == Fit::Yes) {
        let bound = descent.map_or(Ok(None), |d| by_deadline(c, demand, d, effort));
        *outcome = match bound {
            Ok(Some(bound)) => Outcome::within(bound, false),
            Ok(None) => Outcome::asleep(CUT),
            Err(Exhausted) => Outcome::UNKNOWN,
        };
    }
}

/// A bound of the response under EDF, on a CPU of one's own, of one that sleeps, in a set whose demand
/// is always supplied; `None`: it is not sure to be done.
///
/// A stretch that is done at e, in a job due at d, executes in a busy interval [x, e] only with what is
/// due by d: e - x is at most h(d - x), less what the job has left after it. If x is not before the
/// release, the job woke after x, so that d - x is at least the deadline less the latest wake-up: the
/// least slack of any length from there on bounds e. That gives the next wake-up, and by it what the
/// job has left.
fn by_deadline(
    c: &Contender,
    demand: &Demand,
    mut descent: Descent,
    effort: &mut Effort,
) -> Result<Option<u64>, Exhausted> {
    let mut left = c.stretches.iter().map(|s| s.spin).fold(0, u64::saturating_add);
    // Who sleeps last must not have used up its budget before: it would be stopped in that sleep.
    let spare = u64::from(c.stretches.last().is_some_and(|s| s.spin == 0));
    let mut at = 0u64;
    for (n, stretch) in c.stretches.iter().enumerate() {
        at = at.saturating_add(stretch.after);
        let Some(before) = c.deadline.checked_sub(at).filter(|&b| b > 0) else { return Ok(None) };
        if n > 0 && bandwidth(before, c.budget, c.deadline) < left + spare {
            return Ok(None);
        }
        let slack = demand.least_slack(&mut descent, before, effort)?;
        left = left.saturating_sub(stretch.spin);
        at = c.deadline.saturating_sub(slack).saturating_sub(left);
    }
    Ok(Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(of: &[(u64, u64)]) -> Body {
        Body::Steps(of.iter().flat_map(|&(spin, sleep)| [Step::Spin(Spin::For(spin)), Step::Sleep(sleep)]).collect())
    }

    #[test]
    fn sleeps_part_a_job_into_stretches_that_share_its_budget() {
        let awake = |after, spin| Awake { after, spin };
        assert_eq!(stretches(&steps(&[(2, 5), (3, 1)]), 9), [awake(0, 2), awake(5, 3), awake(1, 0)]);
        assert_eq!(stretches(&steps(&[(2, 5), (3, 1)]), 4), [awake(0, 2), awake(5, 2), awake(1, 0)]);
        assert_eq!(stretches(&Body::Spin(Spin::For(3)), 9), []);
        assert!(ends_asleep(&steps(&[(2, 5), (3, 1)]), 5) && !ends_asleep(&steps(&[(2, 5), (3, 1)]), 6));
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
