//! One CPU in exact virtual time: a dispatcher, the allocators of a set, and tasks that execute as
//! long as their `demand` says.

#![allow(dead_code)] // each test file uses its own part

pub mod program;

use punctual_dispatcher::{Attribute, Dispatcher, End, JobId, Refusal, TaskId, Wait};
use punctual_policies::{
    AllocatorOptions, Allocators, Diagnostic, LocalDispatcher, PolicyEntry, ReleaseEvent,
};
use punctual_taskset::{
    registry, Arrival, Body, DomainId, DomainSpec, GroupSpec, Objective, PolicySpec, ServerKind,
    ServerSpec, Spin, TaskSet, TaskSpec, Window,
};

/// A task of a test: it executes `demand[k]` in its k-th job, the last one over and over.
pub struct Runner {
    pub id: TaskId,
    demand: Vec<u64>,
    jobs: usize,
    /// What it has still to execute; `None` while it waits for its next release.
    left: Option<u64>,
    pub gone: bool,
}

/// The CPU. Times are in units of the test's choice.
pub struct Cpu {
    pub d: Dispatcher,
    pub a: Allocators,
    pub now: u64,
    pub tasks: Vec<Runner>,
    /// All reports of the allocators.
    pub reported: Vec<ReleaseEvent>,
    /// What executed: from, to, index in the set.
    pub ran: Vec<(u64, u64, usize)>,
    /// The job to execute from now on.
    selected: Option<JobId>,
}

impl Cpu {
    pub fn new(set: &TaskSet, demand: &[&[u64]]) -> Cpu {
        Cpu::with(set, demand, AllocatorOptions::default())
    }

    pub fn with(set: &TaskSet, demand: &[&[u64]], options: AllocatorOptions) -> Cpu {
        let a = Allocators::with(set, DomainId(0), options).unwrap_or_else(|e| panic!("{e}"));
        let d = Dispatcher::new(a.limits()).unwrap();
        let mut cpu = Cpu {
            d,
            a,
            now: 0,
            tasks: Vec::new(),
            reported: Vec::new(),
            ran: Vec::new(),
            selected: None,
        };
        cpu.a.begin(&mut LocalDispatcher::new(&mut cpu.d, 0), 0).unwrap();
        for (index, demand) in demand.iter().enumerate() {
            cpu.add(index, demand).unwrap();
        }
        cpu
    }

    pub fn add(&mut self, index: usize, demand: &[u64]) -> Result<TaskId, Refusal> {
        let id = self.d.add_task(self.now)?;
        self.a.add(&mut LocalDispatcher::new(&mut self.d, self.now), index, id)?;
        assert_eq!(self.a.index_of(id), Some(index));
        self.tasks.push(Runner { id, demand: demand.to_vec(), jobs: 0, left: None, gone: false });
        Ok(id)
    }

    /// Runs until `end`; what is due then is done.
    pub fn run(&mut self, end: u64) {
        loop {
            self.settle();
            if self.now >= end {
                return;
            }
            let mut until = self.d.timer(0, 1, self.now).min(end);
            let running = self.selected.and_then(|job| self.d.task_of(job)).map(|t| self.at(t));
            if let Some(left) = running.and_then(|i| self.tasks[i].left) {
                until = until.min(self.now + left);
            }
            assert!(until > self.now || running.is_some(), "nothing moves at {}", self.now);
            let ran = until - self.now;
            if let (Some(i), Some(job)) = (running, self.selected) {
                self.execute(i, job, ran, until);
            }
            self.now = until;
        }
    }

    /// As [`Cpu::run`], but nothing that is due at `end` is done yet.
    pub fn run_to_charge(&mut self, end: u64) {
        self.run(end - 1);
        if let (Some(job), true) = (self.selected, self.d.timer(0, 1, self.now) >= end) {
            let i = self.d.task_of(job).map(|task| self.at(task)).expect("a task executes");
            self.execute(i, job, 1, end);
        }
        self.now = end;
    }

    fn execute(&mut self, i: usize, job: JobId, ran: u64, until: u64) {
        match self.ran.last_mut() {
            Some(last) if last.1 == self.now && last.2 == i => last.1 = until,
            _ if ran > 0 => self.ran.push((self.now, until, i)),
            _ => {}
        }
        self.d.charge_job(job, ran, until).unwrap();
        let Runner { id, left, .. } = &mut self.tasks[i];
        // A task that waits has no job that is selected, unless it was late and woke by no release.
        let rest = left.expect("who waits is not selected") - ran;
        *left = Some(rest);
        if rest == 0 {
            match self.a.done(&mut self.d, *id, until).unwrap() {
                Wait::Ignored => self.start(i),
                Wait::UntilRelease => self.tasks[i].left = None,
            }
        }
    }

    /// The task begins its next job.
    fn start(&mut self, i: usize) {
        let t = &mut self.tasks[i];
        let k = t.jobs.min(t.demand.len() - 1);
        t.jobs += 1;
        t.left = Some(t.demand[k]);
    }

    /// Handles all that is due now, until nothing follows from it.
    pub fn settle(&mut self) {
        loop {
            self.d.advance(self.now);
            let mut any = false;
            while let Some(event) = self.d.next_event() {
                any = true;
                let mut reports = Vec::new();
                self.a.handle(&mut LocalDispatcher::new(&mut self.d, self.now), &event, &mut |t| {
                    reports.push(t)
                });
                for event in reports {
                    self.record(event);
                }
            }
            if !any {
                break;
            }
        }
        self.selected = self.d.select(0, self.now);
    }

    pub fn record(&mut self, event: ReleaseEvent) {
        self.reported.push(event);
        if let ReleaseEvent::Released { task, index, .. } = event {
            let i = self.at(task);
            assert_eq!(i as u32, index);
            if self.tasks[i].left.is_none() {
                self.start(i);
            }
        }
    }

    fn at(&self, task: TaskId) -> usize {
        self.tasks.iter().position(|t| t.id == task && !t.gone).expect("a task of the test")
    }

    pub fn swap(&mut self, group: u32, to: &str) {
        self.a
            .swap_group(&mut LocalDispatcher::new(&mut self.d, self.now), group, &policy(to))
            .unwrap_or_else(|e| panic!("{e}"));
    }

    /// Removes a task.
    pub fn leave(&mut self, i: usize) {
        let id = self.tasks[i].id;
        self.d.task_gone(id, self.now).unwrap();
        self.a.remove(&mut LocalDispatcher::new(&mut self.d, self.now), id);
        let mut reports = Vec::new();
        while let Some(event) = self.d.next_event() {
            self.a.handle(&mut LocalDispatcher::new(&mut self.d, self.now), &event, &mut |t| {
                reports.push(t)
            });
        }
        self.reported.extend(reports);
        self.tasks[i].gone = true;
    }

    /// Number, release, end and what was used of each release of a task that has ended.
    pub fn ends(&self, index: u32) -> Vec<(u64, u64, End, u64)> {
        let mut open = None;
        let mut all = Vec::new();
        for event in self.reported.iter() {
            match *event {
                ReleaseEvent::Released { index: i, number, release, budget, .. } if i == index => {
                    assert_eq!(
                        open, None,
                        "release {number} of task {index} is reported before the last one's end"
                    );
                    open = Some((number, release, budget));
                }
                ReleaseEvent::Ended { index: i, number, end, used, remaining, unused, .. }
                    if i == index =>
                {
                    let (n, release, budget) = open.take().expect("an end without a release");
                    assert_eq!(n, number);
                    assert!(
                        used + remaining <= budget.max(used),
                        "{used} + {remaining} of {budget}"
                    );
                    // What was neither used nor given up is left only of an exhausted release.
                    let carried = if end == End::Exhausted { remaining } else { 0 };
                    assert_eq!(
                        used + unused + carried,
                        budget.max(used),
                        "{end:?}, {used} used, {unused} unused"
                    );
                    all.push((number, release, end, used));
                }
                _ => {}
            }
        }
        all
    }

    /// When a task executed.
    pub fn when(&self, index: usize) -> Vec<(u64, u64)> {
        self.ran.iter().filter(|r| r.2 == index).map(|r| (r.0, r.1)).collect()
    }

    /// What a task has executed in all.
    pub fn total(&self, index: usize) -> u64 {
        self.when(index).iter().map(|(from, to)| to - from).sum()
    }
}

/// A policy of a test, in place of `edf`: what it is without its constructor.
pub const ENTRY: PolicyEntry = PolicyEntry {
    info: &registry::EDF,
    order: &[Attribute::Priority],
    priority: |_| 0,
    wakeup_rule: false,
    timers: true,
    make: |_, _| Err(Diagnostic::usage("no policy", "give its constructor")),
};

/// With the policies of a test.
pub fn options(policies: &'static [&'static PolicyEntry]) -> AllocatorOptions {
    AllocatorOptions { policies: Some(policies), ..AllocatorOptions::default() }
}

/// Of that name; `objective` orders by the least slack at the release.
pub fn policy(name: &str) -> PolicySpec {
    match name {
        "objective" => PolicySpec::objective(Objective::parse("finish - budget").unwrap()),
        name => PolicySpec::named(name),
    }
}

/// A set of tasks in group 0, on CPU 0.
pub fn set(name: &str, tasks: Vec<TaskSpec>) -> TaskSet {
    TaskSet {
        domains: vec![DomainSpec::of_cpu(0)],
        policy: policy(name),
        duration: None,
        tasks,
        groups: Vec::new(),
        budget_groups: Vec::new(),
    }
}

/// A periodic task.
pub fn task(name: &str, period: u64, budget: u64) -> TaskSpec {
    TaskSpec::new(name, period, budget, Body::Spin(Spin::Forever))
}

/// A group with a periodic server.
pub fn group(name: &str, by: &str, period: u64, budget: u64, kind: ServerKind) -> GroupSpec {
    GroupSpec {
        name: name.to_owned(),
        parent: None,
        policy: policy(by),
        server: ServerSpec::Periodic { period, budget, deadline: period, offset: 0, kind },
        priority: 0,
        budget_group: None,
        domain: DomainId(0),
        line: None,
    }
}

/// A group with windows in a cycle.
pub fn windowed(name: &str, by: &str, cycle: u64, windows: &[(u64, u64)]) -> GroupSpec {
    let windows = windows.iter().map(|&(start, length)| Window { start, length }).collect();
    GroupSpec {
        server: ServerSpec::Windows { cycle, windows },
        ..group(name, by, 1, 1, ServerKind::Deferrable)
    }
}

pub fn at_times(spec: TaskSpec, times: &[u64]) -> TaskSpec {
    TaskSpec { arrival: Arrival::List(times.to_vec()), ..spec }
}
