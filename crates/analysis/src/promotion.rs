//! Promotion times of dual priority (Davis and Wellings 1995): the worst response times in the
//! upper band, deadline monotonic.
//!
//! A task without a bound, or whose bound takes too many steps, is promoted at its release: early,
//! which costs responsiveness of others and no deadline.

use punctual_taskset::TaskSpec;

use crate::analysed_task::{AnalysedTask, DeadlineMet, Deferral, Entity, Outcome};
use crate::higher_priority::HigherPriority;
use crate::interference::Interference;
use crate::self_suspension::{known_suspension, NEEDS_PROMOTION};
use crate::step_limit::{StepLimit, PROMOTIONS};

/// The worst response times, in ns, of tasks that have a whole CPU in the upper band, by index.
/// Shorter deadlines are more important, and equal deadlines count against the task. `None` where
/// the response exceeds the deadline, where a budget group may delay the task, or where the bound
/// takes more than 2^26 steps for all tasks together.
///
/// What the host takes is not included ([`Analysis::promote`](crate::Analysis::promote) has it).
#[must_use]
pub fn upper_band_responses(tasks: &[&TaskSpec]) -> Vec<Option<u64>> {
    let members: Vec<AnalysedTask> =
        tasks.iter().enumerate().map(|(n, task)| member(n, task)).collect();
    let mut ranked: Vec<usize> = (0..tasks.len()).collect();
    ranked.sort_by_key(|&n| tasks[n].deadline);
    let mut responses = vec![None; tasks.len()];
    let mut higher = HigherPriority::new(&Interference::default());
    let mut steps = StepLimit::new(PROMOTIONS);
    for level in ranked.chunk_by(|&a, &b| tasks[a].deadline == tasks[b].deadline) {
        level.iter().for_each(|&n| higher.add(&members[n]));
        for &n in level.iter().filter(|&&n| tasks[n].budget_group.is_none()) {
            responses[n] = response(&members[n], &higher, &mut steps);
        }
    }
    responses
}

fn response(task: &AnalysedTask, higher: &HigherPriority, steps: &mut StepLimit) -> Option<u64> {
    let limit = task.deadline.checked_sub(task.jitter)?;
    let own = u128::from(task.budget) + u128::from(task.blocking) + u128::from(task.suspension);
    let w = higher.completion_of(task, own, limit, steps).ok()??;
    Some(w + task.jitter)
}

fn member(index: usize, task: &TaskSpec) -> AnalysedTask {
    let (suspends, suspension) = known_suspension(&task.body);
    let deferred = suspends || task.budget_group.is_some();
    AnalysedTask {
        budget: task.budget,
        period: Some(task.period.max(1)),
        deadline: task.deadline,
        jitter: task.jitter,
        blocking: task.blocking,
        suspension,
        deferral: if deferred { Deferral::KeepsBudget } else { Deferral::Never },
        ..AnalysedTask::new(Entity::Task(index))
    }
}

/// Turns the response in the upper band into one from the release on: `given` after it the task is
/// promoted, or at the latest time that meets the deadline where the set has no promotion.
pub(crate) fn promote(given: Option<u64>, task: &AnalysedTask, outcome: &mut Outcome) {
    let Some(response) = outcome.response else { return };
    // `upper_band_responses`, from which the policy takes its promotion, does not include these.
    if given.is_none()
        && (task.ends_suspended() || (!task.segments.is_empty() && task.blocking > 0))
    {
        *outcome = Outcome::suspension_fault(NEEDS_PROMOTION);
        return;
    }
    let latest = task.deadline.saturating_sub(response);
    let promotion = given.unwrap_or(latest);
    let response = promotion.saturating_add(response);
    let met = if response <= task.deadline { DeadlineMet::Yes } else { DeadlineMet::No };
    let computed = (given.is_none() && met == DeadlineMet::Yes).then_some(latest);
    (outcome.met, outcome.response, outcome.reached) = (met, Some(response), false);
    outcome.promotion = computed;
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_taskset::{Body, Spin, Step};

    fn task(budget: u64, period: u64, deadline: u64) -> TaskSpec {
        TaskSpec { deadline, ..TaskSpec::new("t", period, budget, Body::Spin(Spin::For(budget))) }
    }

    fn responses(tasks: &[TaskSpec]) -> Vec<Option<u64>> {
        upper_band_responses(&tasks.iter().collect::<Vec<_>>())
    }

    #[test]
    fn the_shorter_deadline_goes_first() {
        let tasks = [task(8, 40, 40), task(4, 16, 16), task(1, 4, 4)];
        assert_eq!(responses(&tasks), [Some(16), Some(6), Some(1)]);
    }

    #[test]
    fn equal_deadlines_count_against_each_other_once() {
        assert_eq!(responses(&[task(2, 10, 10), task(3, 10, 10)]), [Some(5), Some(5)]);
    }

    #[test]
    fn a_task_that_suspends_itself_preempts_with_jitter_and_is_suspended_itself() {
        let steps = vec![Step::Spin(Spin::For(1)), Step::Sleep(2), Step::Spin(Spin::For(1))];
        let suspending = TaskSpec { body: Body::Steps(steps), ..task(2, 10, 10) };
        // Two of its jobs within 8 (jitter 8); its own response has 2 of suspension.
        assert_eq!(responses(&[suspending, task(8, 20, 20)]), [Some(4), Some(12)]);
        assert_eq!(responses(&[task(2, 10, 10), task(8, 20, 20)]), [Some(2), Some(10)]);
    }

    #[test]
    fn a_task_below_a_budget_group_has_no_bound_and_delays_others() {
        let limited = TaskSpec { budget_group: Some(0), ..task(2, 10, 10) };
        assert_eq!(responses(&[limited, task(8, 20, 20)]), [None, Some(12)]);
    }

    #[test]
    fn the_greatest_numbers_and_the_longest_searches_end() {
        let far =
            [task(u64::MAX, u64::MAX, u64::MAX), task(u64::MAX, u64::MAX, u64::MAX), task(1, 1, 1)];
        assert_eq!(responses(&far), [None, None, Some(1)]);
        // 99,999,999 / 100,000,000 of a CPU, and a task that gets what is left.
        let full = [task(99_999_999, 100_000_000, 100_000_000), task(1 << 40, 1 << 61, 1 << 61)];
        assert_eq!(responses(&full)[1], None);
        // Ten thousand different periods.
        let many: Vec<TaskSpec> =
            (0..10_000).map(|n| task(1, 1_000_003 + 2 * n, 1_000_003 + 2 * n)).collect();
        assert!(responses(&many)[0].is_some());
    }
}
