//! Promotion times: the worst response times under fixed priorities, deadline monotonic (Davis and
//! Wellings 1995, after Joseph and Pandya 1986, Audsley et al. 1993).
//!
//! Whoever has no bound, or none that is found soon enough, is promoted at once, which is early, never late.

use std::collections::HashMap;

use punctual_taskset::{Body, Step, TaskSpec};

/// Terms of sums that are looked at for one set: a fraction of a second. Near full utilization one
/// fixed point may be billions of steps away.
const MOST_TERMS: usize = 1 << 26;

/// For each of the tasks, which together have a whole CPU: its worst response time, ns, where
/// shorter deadlines are more important and ties count against it. `None` when that is later than
/// the deadline, when it is not found within the effort, or when a budget group may keep the task waiting.
pub(crate) fn deadline_monotonic(tasks: &[&TaskSpec]) -> Vec<Option<u64>> {
    let mut ranked: Vec<usize> = (0..tasks.len()).collect();
    ranked.sort_by_key(|&n| tasks[n].deadline);
    let mut responses = vec![None; tasks.len()];
    let mut before = Before::default();
    let mut effort = MOST_TERMS;
    for level in ranked.chunk_by(|&a, &b| tasks[a].deadline == tasks[b].deadline) {
        level.iter().for_each(|&n| before.add(tasks[n]));
        for &n in level {
            responses[n] = before.response(tasks[n], &mut effort);
        }
    }
    responses
}

/// Tasks of one period and delay, their budgets added: sets have few different ones.
#[derive(Default)]
struct Before {
    /// Period, delay, budget; all ns.
    terms: Vec<(u64, u64, u64)>,
    place: HashMap<(u64, u64), usize>,
    /// The budgets are more than all time there is.
    endless: bool,
}

impl Before {
    fn add(&mut self, task: &TaskSpec) {
        let key = (task.period, delay(task));
        let at = *self.place.entry(key).or_insert_with(|| {
            self.terms.push((key.0, key.1, 0));
            self.terms.len() - 1
        });
        match self.terms[at].2.checked_add(task.budget) {
            Some(sum) => self.terms[at].2 = sum,
            None => self.endless = true,
        }
    }

    /// The response of one of those that were added.
    fn response(&self, task: &TaskSpec, effort: &mut usize) -> Option<u64> {
        if self.endless || task.budget_group.is_some() {
            return None;
        }
        let limit = task.deadline.checked_sub(task.jitter)?;
        let own = task.budget.checked_add(task.blocking)?.checked_add(sleep(task).unwrap_or(0))?;
        let mut busy = own;
        while busy <= limit {
            *effort = effort.checked_sub(self.terms.len())?;
            let all = self.terms.iter().try_fold(own, |sum, &(period, delay, budget)| {
                sum.checked_add(busy.checked_add(delay)?.div_ceil(period).checked_mul(budget)?)
            })?;
            // Its own releases are among them.
            let demand = all - busy.checked_add(delay(task))?.div_ceil(task.period) * task.budget;
            if demand == busy {
                return Some(busy + task.jitter);
            }
            busy = demand;
        }
        None
    }
}

/// How late after its release it may begin, so that the next release follows sooner: whoever may
/// sleep, or wait for a budget group, may execute as late as its deadline lets it (Chen et al. 2019).
fn delay(task: &TaskSpec) -> u64 {
    if sleep(task).is_some() || task.budget_group.is_some() {
        task.jitter.max(task.deadline.saturating_sub(task.budget))
    } else {
        task.jitter
    }
}

/// How long it sleeps in each job, ns, as far as that is known; `None` for one that never does.
fn sleep(task: &TaskSpec) -> Option<u64> {
    match &task.body {
        Body::Spin(_) => None,
        Body::Command(_) | Body::Pid(_) => Some(0),
        Body::Steps(steps) => steps.iter().fold(None, |sum, step| match step {
            Step::Spin(_) => sum,
            Step::Sleep(ns) => Some(sum.unwrap_or(0u64).saturating_add(*ns)),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_taskset::Spin;

    fn task(budget: u64, period: u64, deadline: u64) -> TaskSpec {
        TaskSpec { deadline, ..TaskSpec::new("t", period, budget, Body::Spin(Spin::For(budget))) }
    }

    fn responses(tasks: &[TaskSpec]) -> Vec<Option<u64>> {
        deadline_monotonic(&tasks.iter().collect::<Vec<_>>())
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
    fn who_may_sleep_is_released_sooner_again_and_sleeps_itself() {
        let steps = vec![Step::Spin(Spin::For(1)), Step::Sleep(2), Step::Spin(Spin::For(1))];
        let sleeper = TaskSpec { body: Body::Steps(steps), ..task(2, 10, 10) };
        // Two of its jobs within 8 (delay 8); and 2 + 2 asleep for itself.
        assert_eq!(responses(&[sleeper, task(8, 20, 20)]), [Some(4), Some(12)]);
        assert_eq!(responses(&[task(2, 10, 10), task(8, 20, 20)]), [Some(2), Some(10)]);
    }

    #[test]
    fn who_waits_for_a_budget_group_has_no_bound_and_delays_others() {
        let limited = TaskSpec { budget_group: Some(0), ..task(2, 10, 10) };
        assert_eq!(responses(&[limited, task(8, 20, 20)]), [None, Some(12)]);
    }

    #[test]
    fn the_greatest_numbers_and_the_longest_searches_end() {
        let far = [task(u64::MAX, u64::MAX, u64::MAX), task(u64::MAX, u64::MAX, u64::MAX), task(1, 1, 1)];
        assert_eq!(responses(&far), [None, None, Some(1)]);
        // 99,999,999 / 100,000,000 of a CPU, and one that waits for what is left.
        let full = [task(99_999_999, 100_000_000, 100_000_000), task(1 << 40, 1 << 61, 1 << 61)];
        assert_eq!(responses(&full)[1], None);
        // Ten thousand periods, none like another.
        let many: Vec<TaskSpec> = (0..10_000).map(|n| task(1, 1_000_003 + 2 * n, 1_000_003 + 2 * n)).collect();
        assert!(responses(&many)[0].is_some());
    }
}
