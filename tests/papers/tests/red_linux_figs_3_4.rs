//! RED-Linux, IV-E.1, Figs. 3 and 4: the allocator for imprecise computation as it is printed,
//! period 10 ms, budget 3 ms. (The paper knows one event for every end of a job; its literal
//! reading lets a mandatory part use all of the budget. The policy `imprecise` gives it a budget of
//! its own: docs/policies.md.)

use punctual_dispatcher::{Dispatcher, Event, For, Job, TaskId};
use punctual_papers::{Machine, Stretch};

const MS: u64 = 1_000_000;
const HIGH_PRIORITY: i64 = 3;
const BETWEEN: i64 = 2;
const LOW_PRIORITY: i64 = 1;

/// `TASK` of Fig. 3.
struct Task {
    period: u64,
    budget: u64,
    is_optional: bool,
    job: Job,
}

impl Task {
    /// `main` of Fig. 3, up to its loop.
    fn begin(m: &mut Machine, task: TaskId) -> Task {
        let (period, budget) = (10 * MS, 3 * MS);
        let start = m.now + period;
        let job = Job {
            start,
            finish: start + period,
            priority: HIGH_PRIORITY,
            ..Job::new(For::Task(task), budget)
        };
        m.add(job);
        Task { period, budget, is_optional: false, job }
    }

    /// `Imprecise_EventHandler` of Fig. 4.
    fn handle(&mut self, d: &mut Dispatcher, event: &Event) {
        let Event::JobEnded { at, remaining, task, .. } = *event else { return };
        if For::Task(task) != self.job.serves {
            return;
        }
        if self.is_optional {
            self.job.start += self.period;
            self.job.finish = self.job.start + self.period;
            self.job.budget = self.budget;
            self.job.priority = HIGH_PRIORITY;
        } else {
            self.job.budget = remaining;
            self.job.priority = LOW_PRIORITY;
        }
        self.is_optional = !self.is_optional;
        d.add_job(&self.job, at).expect("there is room");
    }
}

fn at(task: TaskId, from_us: u64, to_us: u64) -> Stretch {
    Stretch { task, from: from_us * 1_000, to: to_us * 1_000 }
}

#[test]
fn the_mandatory_part_is_above_other_jobs_and_the_optional_part_below_them() {
    let mut m = Machine::new();
    let (imprecise, other) = (m.task(), m.task());
    let mut task = Task::begin(&mut m, imprecise);
    // Between the two bands, at the beginning of the period, for 4 ms.
    m.add(Job { start: 10 * MS, priority: BETWEEN, ..Job::new(For::Task(other), 4 * MS) });
    // The mandatory part is done after 1 ms; then the optional one has the remaining 2 ms.
    m.wants(imprecise, MS);
    m.run_until_with(20 * MS - 1, &mut |d, e| task.handle(d, e));
    assert_eq!(
        m.executed,
        [at(imprecise, 10_000, 11_000), at(other, 11_000, 15_000), at(imprecise, 15_000, 17_000)]
    );
}

#[test]
fn at_any_time_one_job_is_in_the_dispatcher_and_each_period_has_both_parts() {
    let mut m = Machine::new();
    let imprecise = m.task();
    let mut task = Task::begin(&mut m, imprecise);
    for period in 1..=5 {
        m.wants(imprecise, MS);
        let mut jobs = Vec::new();
        m.run_until_with((period + 1) * 10 * MS - 1, &mut |d, e| {
            task.handle(d, e);
            jobs.push(task.job);
        });
        let parts: Vec<(u64, u64, i64)> =
            jobs.iter().map(|j| (j.start, j.budget, j.priority)).collect();
        let (this, next) = (period * 10 * MS, (period + 1) * 10 * MS);
        assert!(
            parts.contains(&(this, 2 * MS, LOW_PRIORITY)),
            "the optional part, with what remains: {parts:?}"
        );
        assert_eq!(
            parts.last(),
            Some(&(next, 3 * MS, HIGH_PRIORITY)),
            "the next mandatory one, with all"
        );
        assert_eq!(m.received(imprecise, this, next), 3 * MS);
    }
}

#[test]
fn a_mandatory_part_that_uses_up_the_budget_leaves_an_optional_one_that_ends_at_once() {
    let mut m = Machine::new();
    let imprecise = m.task();
    let mut task = Task::begin(&mut m, imprecise);
    m.run_until_with(40 * MS, &mut |d, e| task.handle(d, e));
    assert_eq!(m.executed, [10, 20, 30].map(|p| at(imprecise, p * 1_000, (p + 3) * 1_000)));
}
