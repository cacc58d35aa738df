//! RED-Linux, IV-E.2, Fig. 5: the event handler for dual priority, with the papers' errata: the
//! promoted job starts at the promotion time, and a low-band job that completes goes straight to
//! the next period.

use punctual_dispatcher::{Dispatcher, End, Event, For, Job, TaskId};
use punctual_papers::{Machine, Stretch};

const UPPER: i64 = 3;
const MIDDLE: i64 = 2;
const LOWER: i64 = 1;

/// `TASK` of Fig. 5.
struct Task {
    period: u64,
    budget: u64,
    promotion: u64,
    is_promoted: bool,
    release: u64,
    job: Job,
}

impl Task {
    fn begin(m: &mut Machine, task: TaskId, period: u64, budget: u64, promotion: u64) -> Task {
        let job = Job { finish: promotion, priority: LOWER, ..Job::new(For::Task(task), budget) };
        m.add(job);
        Task { period, budget, promotion, is_promoted: false, release: 0, job }
    }

    /// `DualPriority_EventHandler`.
    fn handle(&mut self, d: &mut Dispatcher, event: &Event) {
        let Event::JobEnded { at, end, remaining, task, .. } = *event else { return };
        if For::Task(task) != self.job.serves {
            return;
        }
        if self.is_promoted || end != End::Expired {
            self.release += self.period;
            self.job.start = self.release;
            self.job.finish = self.release + self.promotion;
            self.job.budget = self.budget;
            self.job.priority = LOWER;
            self.is_promoted = false;
        } else {
            self.job.start = self.release + self.promotion;
            self.job.finish = self.release + self.period;
            self.job.budget = remaining;
            self.job.priority = UPPER;
            self.is_promoted = true;
        }
        d.add_job(&self.job, at).expect("there is room");
    }
}

fn stretch(task: TaskId, from: u64, to: u64) -> Stretch {
    Stretch { task, from, to }
}

#[test]
fn best_effort_work_runs_first_and_the_real_time_job_as_late_as_its_promotion() {
    let mut m = Machine::new();
    let (real_time, best_effort) = (m.task(), m.task());
    let mut task = Task::begin(&mut m, real_time, 100, 30, 60);
    m.add(Job { priority: MIDDLE, ..Job::new(For::Task(best_effort), 10_000) });
    m.run_until_with(200, &mut |d, e| task.handle(d, e));
    let expected =
        [(best_effort, 0, 60), (real_time, 60, 90), (best_effort, 90, 160), (real_time, 160, 190)];
    let expected: Vec<Stretch> =
        expected.into_iter().map(|(t, from, to)| stretch(t, from, to)).collect();
    assert_eq!(m.executed[..4], expected[..]);
}

#[test]
fn a_job_that_used_a_third_of_its_budget_in_the_lower_band_has_the_rest_in_the_upper_one() {
    let mut m = Machine::new();
    let (real_time, best_effort) = (m.task(), m.task());
    let mut task = Task::begin(&mut m, real_time, 100, 30, 60);
    // Best-effort work comes at 10.
    m.add(Job { start: 10, priority: MIDDLE, ..Job::new(For::Task(best_effort), 10_000) });
    let mut promoted = Vec::new();
    m.run_until_with(100, &mut |d, e| {
        task.handle(d, e);
        promoted.push((task.job.priority, task.job.start, task.job.budget));
    });
    assert!(promoted.contains(&(UPPER, 60, 20)), "{promoted:?}");
    let expected =
        [(real_time, 0, 10), (best_effort, 10, 60), (real_time, 60, 80), (best_effort, 80, 100)];
    assert_eq!(m.executed, expected.map(|(t, from, to)| stretch(t, from, to)));
}

#[test]
fn one_that_completes_in_the_lower_band_is_not_promoted() {
    let mut m = Machine::new();
    let real_time = m.task();
    let mut task = Task::begin(&mut m, real_time, 100, 30, 60);
    m.wants(real_time, 25);
    m.run_until_with(99, &mut |d, e| task.handle(d, e));
    assert_eq!(m.executed, [stretch(real_time, 0, 25)]);
    assert_eq!((task.job.priority, task.job.start), (LOWER, 100));
}
