//! Short notation for sets, and a watcher that records what is simulated.

#![allow(dead_code)] // each test file uses its part

use punctual_host_sim::{Interval, Options, SimulatedRun, Simulation, Watcher};
use punctual_taskset::{DomainId, TaskSet};
use punctual_trace::{Header, Limits, Period, TraceBuffer, TraceSink};

/// A set of CPU 0: the policy, and lines of TOML for each task.
pub fn set(policy: &str, tasks: &[&str]) -> TaskSet {
    let mut text = format!("cpu = 0\npolicy = \"{policy}\"\n");
    for (n, task) in tasks.iter().enumerate() {
        text += &format!("[[task]]\nname = \"t{n}\"\n{}\n", task.replace("; ", "\n"));
    }
    TaskSet::parse(&text, "a test").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub const MS: u64 = 1_000_000;

/// What the watcher was called with.
#[derive(Default)]
pub struct Seen {
    pub periods: Vec<Period>,
    /// Task, from, to; neighbours of one task joined.
    pub intervals: Vec<(u32, u64, u64)>,
    pub background: u64,
}

impl Watcher for Seen {
    fn period(&mut self, period: &Period) {
        self.periods.push(*period);
    }

    fn executed(&mut self, s: &Interval) {
        if s.background {
            self.background += s.to - s.from;
        }
        match self.intervals.last_mut() {
            Some((task, _, to)) if (*task, *to) == (s.task, s.from) => *to = s.to,
            _ => self.intervals.push((s.task, s.from, s.to)),
        }
    }
}

impl Seen {
    /// Intervals in ms.
    pub fn in_ms(&self) -> Vec<(u32, u64, u64)> {
        self.intervals.iter().map(|&(task, from, to)| (task, from / MS, to / MS)).collect()
    }

    /// Releases of one task whose deadlines are not after `end`, in order.
    pub fn whole(&self, task: u32, end: u64) -> Vec<&Period> {
        self.periods.iter().filter(|p| p.task == task && p.deadline <= end).collect()
    }

    pub fn misses(&self) -> Vec<(u32, u64)> {
        self.periods.iter().filter(|p| p.miss).map(|p| (p.task, p.deadline)).collect()
    }
}

pub fn run_with(set: &TaskSet, end: u64, options: Options) -> (Seen, SimulatedRun) {
    let mut seen = Seen::default();
    let outcome = Simulation::new(set, options)
        .expect("it can be simulated")
        .run(end, &mut seen)
        .expect("it runs");
    (seen, outcome)
}

pub fn run(set: &TaskSet, end: u64) -> Seen {
    run_with(set, end, Options::default()).0
}

/// The trace of a set that is simulated until `end`.
pub fn trace(set: &TaskSet, end: u64) -> Vec<u8> {
    let buffer = TraceBuffer::default();
    let names = set.tasks.iter().map(|t| t.name.clone()).collect();
    let header = Header::new("sim", 0, &set.policy.name, names, Limits::default());
    let sink = TraceSink::new(buffer.clone(), Header { set: set.to_toml(), ..header });
    run_with(set, end, Options { traces: vec![(DomainId(0), sink.clone())], ..Options::default() });
    assert_eq!(sink.finish().expect("memory takes it"), 0);
    buffer.bytes()
}
