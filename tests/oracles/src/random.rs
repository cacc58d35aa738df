//! Random flat sets, in whole nanoseconds: the smaller the numbers, the more collide.

use oorandom::Rand64;
use punctual_taskset::{
    Arrival, Body, DomainSpec, PolicySpec, Spin, Step, TaskSet, TaskSpec, Window,
};

/// Seeded numbers.
pub struct Random(Rand64);

impl Random {
    /// Each seed gives another sequence.
    pub fn new(seed: u64) -> Random {
        Random(Rand64::new(u128::from(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5EED))
    }

    /// From `least` to `most`, both among them.
    pub fn within(&mut self, least: u64, most: u64) -> u64 {
        self.0.rand_range(least..most.max(least) + 1)
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: u64) -> bool {
        self.within(1, times) == 1
    }

    /// One of several.
    pub fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.within(0, all.len() as u64 - 1) as usize]
    }
}

/// What a flat set may have.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Flat {
    /// All released together, executing all of their budgets, each period: the critical instant.
    Critical,
    /// With offsets, shorter executions, sporadic releases, and sleeps.
    Any,
}

/// Periods whose least common multiple is 240.
const PERIODS: [u64; 12] = [4, 5, 6, 8, 10, 12, 15, 16, 20, 24, 30, 40];

/// A set of one to six tasks under a policy, some 60 % to 110 % of a CPU.
pub fn flat(policy: &str, kind: Flat, random: &mut Random) -> TaskSet {
    let count = random.within(1, 6);
    let percent = random.within(60, 110);
    let mut left = percent;
    let tasks = (0..count).map(|n| {
        let period = random.of(&PERIODS);
        let share =
            if n + 1 == count { left } else { random.within(1, (2 * left / (count - n)).max(1)) };
        left = left.saturating_sub(share).max(1);
        let budget = (period * share / 100).clamp(1, period);
        let deadline = if random.once_in(2) { period } else { random.within(budget, period) };
        let priority = random.within(0, 4) as i64;
        task(
            n,
            policy,
            TaskSpec { deadline, priority, ..TaskSpec::new("", period, budget, whole(budget)) },
            kind,
            random,
        )
    });
    let tasks = tasks.collect();
    set(policy, tasks)
}

fn task(n: u64, policy: &str, mut task: TaskSpec, kind: Flat, random: &mut Random) -> TaskSpec {
    task.name = format!("t{n}");
    if policy == "imprecise" && random.once_in(2) {
        task.mandatory = Some(random.within(1, task.budget));
    }
    if policy == "td" && task.deadline > 1 && random.once_in(4) {
        let start = random.within(0, task.deadline - task.budget);
        task.windows = vec![Window { start, length: task.budget }];
    }
    // Promised is the mandatory part; a task that executes more may be late with it.
    let promised = task.mandatory.unwrap_or(task.budget);
    task.body = whole(promised);
    if kind == Flat::Critical {
        return task;
    }
    if random.once_in(2) {
        task.offset = random.within(0, task.period);
    }
    if random.once_in(2) {
        task.body =
            Body::Spin(Spin::Uniform { min: 1, max: promised, seed: random.within(0, 1 << 40) });
    }
    if policy != "td" && random.once_in(4) {
        let longest = task.period + random.within(0, task.period);
        task.arrival = Arrival::Sporadic { longest, seed: random.within(0, 1 << 40) };
    }
    if random.once_in(4) {
        task.body = sleeper(promised, 4, random);
    }
    if policy == "td" && random.once_in(2) && !task.windows.is_empty() {
        task.windows = apart(task.budget, task.deadline, random);
    }
    task
}

/// Steps that execute `budget` ns at most, with sleeps between them, before them and after them.
pub(crate) fn sleeper(budget: u64, longest: u64, random: &mut Random) -> Body {
    let mut left = budget;
    let mut steps = Vec::new();
    for _ in 0..random.within(1, 3) {
        if random.once_in(4) {
            steps.push(Step::Sleep(random.within(1, longest)));
        }
        let part = random.within(1, left.max(1)).min(left);
        left -= part;
        if part > 0 {
            steps.push(Step::Spin(if random.once_in(4) {
                Spin::Uniform { min: 1, max: part, seed: random.within(0, 1 << 40) }
            } else {
                Spin::For(part)
            }));
        }
        steps.push(Step::Sleep(random.within(1, longest)));
    }
    if left > 0 && random.once_in(2) {
        steps.push(Step::Spin(Spin::For(left)));
    } else if random.once_in(2) {
        steps.pop();
    }
    Body::Steps(steps)
}

/// Windows before the deadline, in order, `budget` long together and what is left of the time
/// besides.
fn apart(budget: u64, deadline: u64, random: &mut Random) -> Vec<Window> {
    let mut windows = Vec::new();
    let (mut at, mut left) = (0, budget);
    while left > 0 {
        let start = at + random.within(0, (deadline - at - left) / 2);
        let length = random.within(1, left);
        windows.push(Window { start, length });
        left -= length;
        at = start + length;
    }
    if at < deadline {
        windows.push(Window { start: at, length: deadline - at });
    }
    windows
}

fn whole(budget: u64) -> Body {
    Body::Spin(Spin::For(budget))
}

/// Tasks on CPU 0.
pub(crate) fn set(policy: &str, tasks: Vec<TaskSpec>) -> TaskSet {
    TaskSet {
        domains: vec![DomainSpec::of_cpu(0)],
        policy: PolicySpec::named(policy),
        duration: None,
        tasks,
        groups: Vec::new(),
        budget_groups: Vec::new(),
    }
}
