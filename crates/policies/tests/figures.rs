//! RED-Linux, Figs. 3 to 5: the paper's allocators, line by line, on the allocator interface. The
//! paper's one event, JOB_EXPIRED, is every end of a job (papers/notes.md).

use punctual_dispatcher::{Attribute, Dispatcher, End, Event, For, Job, Limits, TaskId};
use punctual_policies::{Gsi, LocalDispatcher};

const HIGH_PRIORITY: i64 = 2;
const MIDDLE: i64 = 1;
const LOW_PRIORITY: i64 = 0;

/// One CPU, ms. The task calls GSI_abort_job (it is done) after so much execution in each of its
/// jobs; 0: never.
struct Machine {
    d: Dispatcher,
    ran: Vec<(u64, u64, TaskId)>,
    ends: Vec<(u64, End)>,
}

impl Machine {
    fn new(tasks: u32) -> (Machine, Vec<TaskId>) {
        let mut d = Dispatcher::new(Limits::for_tasks(2 * tasks)).unwrap();
        let tasks = (0..tasks).map(|_| d.add_task(0).unwrap()).collect();
        (Machine { d, ran: Vec::new(), ends: Vec::new() }, tasks)
    }

    fn run(
        &mut self,
        end: u64,
        mut done_after: impl FnMut(TaskId) -> u64,
        mut handler: impl FnMut(&mut dyn Gsi, u64),
    ) {
        let mut now = 0;
        while now < end {
            self.d.advance(now);
            while let Some(event) = self.d.next_event() {
                if let Event::JobEnded { at, end, cookie: 1, remaining, .. } = event {
                    self.ends.push((at, end));
                    handler(&mut LocalDispatcher::new(&mut self.d, now), remaining);
                }
            }
            let selected = self.d.select(0, now);
            let mut until = self.d.timer(0, 1, now).min(end);
            if let Some(job) = selected {
                let task = self.d.task_of(job).unwrap();
                let done = done_after(task).saturating_sub(self.d.used(job));
                if done > 0 {
                    until = until.min(now + done);
                }
                match self.ran.last_mut() {
                    Some(last) if last.1 == now && last.2 == task => last.1 = until,
                    _ => self.ran.push((now, until, task)),
                }
                self.d.charge_job(job, until - now, until).unwrap();
                if done == until - now {
                    self.d.complete_job(job, until).unwrap();
                }
            }
            now = until;
        }
    }

    fn when(&self, task: TaskId) -> Vec<(u64, u64)> {
        self.ran.iter().filter(|r| r.2 == task).map(|r| (r.0, r.1)).collect()
    }
}

#[test]
fn figures_3_and_4_alternate_mandatory_and_optional_jobs() {
    let (mut m, tasks) = Machine::new(2);
    let (task, other) = (tasks[0], tasks[1]);
    let (period, budget) = (10, 3);
    let mut gsi = LocalDispatcher::new(&mut m.d, 0);
    gsi.set_order(0, &[Attribute::Priority]).unwrap();
    let start = gsi.now() + period;
    let mut j = Job {
        start,
        finish: start + period,
        priority: HIGH_PRIORITY,
        cookie: 1,
        ..Job::new(For::Task(task), budget)
    };
    gsi.add_job(&j).unwrap();
    // Another job, between the bands, in the second period.
    gsi.add_job(&Job { start: 20, priority: MIDDLE, ..Job::new(For::Task(other), 5) }).unwrap();

    let mut is_optional = false;
    // The mandatory part takes 1 ms, the optional part whatever it gets.
    let mut parts = 0;
    m.run(
        40,
        |t| if t == task { 1 } else { 0 },
        |gsi, remaining| {
            parts += 1;
            if is_optional {
                j.start += period;
                j.finish = j.start + period;
                j.budget = budget;
                j.priority = HIGH_PRIORITY;
            } else {
                j.budget = remaining;
                j.priority = LOW_PRIORITY;
            }
            is_optional = !is_optional;
            gsi.add_job(&j).unwrap();
        },
    );
    // Mandatory 1 ms at the beginning of each period; optional 1 ms behind it, or behind the other.
    assert_eq!(m.when(task), [(10, 12), (20, 21), (26, 27), (30, 32)]);
    assert_eq!(m.when(other), [(21, 26)]);
    assert_eq!(parts, 6);
}

#[test]
fn in_figure_4_an_optional_job_gets_what_the_mandatory_one_left() {
    let (mut m, tasks) = Machine::new(1);
    let (period, budget) = (10, 3);
    let mut j = Job {
        finish: period,
        priority: HIGH_PRIORITY,
        cookie: 1,
        ..Job::new(For::Task(tasks[0]), budget)
    };
    LocalDispatcher::new(&mut m.d, 0).add_job(&j).unwrap();
    let mut left = Vec::new();
    let mut is_optional = false;
    m.run(
        20,
        |_| 2,
        |gsi, remaining| {
            left.push(remaining);
            if is_optional {
                j = Job {
                    start: j.start + period,
                    finish: j.finish + period,
                    budget,
                    priority: HIGH_PRIORITY,
                    ..j
                };
            } else {
                j = Job { budget: remaining, priority: LOW_PRIORITY, ..j };
            }
            is_optional = !is_optional;
            gsi.add_job(&j).unwrap();
        },
    );
    // 3 ms: the mandatory part is done after 2, the optional one has 1 and is exhausted.
    assert_eq!(left, [1, 0, 1, 0]);
    assert_eq!(m.when(tasks[0]), [(0, 3), (10, 13)]);
    assert_eq!(
        m.ends,
        [(2, End::Completed), (3, End::Exhausted), (12, End::Completed), (13, End::Exhausted)]
    );
}

#[test]
fn figure_5_promotes_with_one_third_of_the_budget_used() {
    // "If a low-priority job uses one-third of its budget, the remaining budget value is kept in
    // e.budget."
    let (mut m, tasks) = Machine::new(2);
    let (task, other) = (tasks[0], tasks[1]);
    let (period, budget, promotion) = (10, 3, 6);
    let mut gsi = LocalDispatcher::new(&mut m.d, 0);
    let mut begin = 0;
    let low = |begin: u64| Job {
        start: begin,
        finish: begin + promotion,
        priority: LOW_PRIORITY,
        cookie: 1,
        ..Job::new(For::Task(task), budget)
    };
    gsi.add_job(&low(0)).unwrap();
    gsi.add_job(&Job { start: 1, priority: MIDDLE, ..Job::new(For::Task(other), 12) }).unwrap();
    let mut is_promoted = false;
    let mut promoted = Vec::new();
    m.run(
        20,
        |_| 0,
        |gsi, remaining| {
            let job = if is_promoted {
                begin += period;
                low(begin)
            } else {
                promoted.push(remaining);
                // The printed listing leaves the start at the beginning of the period.
                Job {
                    start: begin + promotion,
                    finish: begin + period,
                    budget: remaining,
                    priority: HIGH_PRIORITY,
                    ..low(begin)
                }
            };
            is_promoted = !is_promoted;
            gsi.add_job(&job).unwrap();
        },
    );
    assert_eq!(promoted, [2, 2]);
    assert_eq!(m.when(task), [(0, 1), (6, 8), (15, 18)]);
    assert_eq!(m.when(other)[..2], [(1, 6), (8, 15)]);
}
