//! From single periods to figures per task.
//!
//! Each task's latest record is held back until the next one comes, because only then is it known
//! to be whole:
//!
//! ```text
//! record 1 -> dropped (start-up: page faults, exec, cold caches), unless it is asked for
//! record n -> held -> counted when n+1 comes, or at finish(end) if its period was over by then
//! ```

use super::figures::Figures;
use super::groups::Group;
use super::*;
use punctual_analysis::{utilization, utilization_of};
use punctual_taskset::{fmt_ns, Body, PolicySpec, ServerKind, Spin, TaskChange, TaskSet, TaskSpec};
use punctual_trace::{Period, PolicyStop};
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// What a collector needs to know of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskInfo {
    /// Its name.
    pub name: String,
    /// Time between releases, ns.
    pub period: u64,
    /// Execution time assigned per period, ns.
    pub budget: u64,
    /// Relative deadline, ns.
    pub deadline: u64,
    /// What it is.
    pub kind: TaskKind,
    /// Its server is `adaptive`.
    pub adaptive: bool,
    /// Its policy lets it reclaim budgets.
    pub reclaims: bool,
}

impl TaskInfo {
    /// A synthetic task; set `kind` for any other.
    #[must_use]
    pub fn new(name: &str, period: u64, budget: u64, deadline: u64) -> TaskInfo {
        let (name, kind) = (name.to_owned(), TaskKind::Spin);
        TaskInfo { name, period, budget, deadline, kind, adaptive: false, reclaims: false }
    }

    /// All tasks of a set, in its order.
    #[must_use]
    pub fn of(set: &TaskSet) -> Vec<TaskInfo> {
        let of = |task: &TaskSpec| TaskInfo {
            reclaims: task.server.is_none() && set.policy_of(task.group).reclaim,
            ..TaskInfo::of_task(task)
        };
        set.tasks.iter().map(of).collect()
    }

    /// One task as a set describes it.
    #[must_use]
    pub fn of_task(task: &TaskSpec) -> TaskInfo {
        let kind = match task.body {
            Body::Spin(Spin::Forever) => TaskKind::Forever,
            Body::Spin(_) | Body::Steps(_) => TaskKind::Spin,
            Body::Command(_) => TaskKind::Command,
            Body::Pid(_) => TaskKind::Pid,
        };
        TaskInfo {
            kind,
            adaptive: task.server == Some(ServerKind::Adaptive),
            ..TaskInfo::new(&task.name, task.period, task.budget, task.deadline)
        }
    }
}

/// What is known of a run before it starts. Fields that are found out later (dispatcher, load,
/// notes) are set on the `Results` themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What executes the schedule.
    pub host: HostKind,
    /// The policy's name.
    pub policy: String,
    /// The CPUs used.
    pub cpus: Vec<u32>,
    /// Admission was overridden.
    pub overload: bool,
    /// What to call it in a column, if not by the host's name.
    pub label: Option<String>,
    /// When it started, ns on CLOCK_MONOTONIC; 0: at the first release recorded.
    pub started: u64,
    /// What it runs on; empty: the machine at hand, which is read with the first results.
    pub machine: OnceLock<Machine>,
}

impl Run {
    /// A run on the machine at hand.
    #[must_use]
    pub fn new(host: HostKind, policy: &str, cpus: &[u32]) -> Run {
        Run {
            host,
            policy: policy.to_owned(),
            cpus: cpus.to_vec(),
            overload: false,
            label: None,
            started: 0,
            machine: OnceLock::new(),
        }
    }
}

/// Gathers periods. About 50 KB per task at most, however long it runs.
#[derive(Debug)]
pub struct Collector {
    run: Run,
    /// By place.
    tasks: BTreeMap<usize, Task>,
    /// Of the next task that is added.
    next_place: usize,
    groups: Vec<Group>,
    /// Where these stand: the set, without its tasks.
    set: TaskSet,
    /// Of one CPU, ppm.
    utilization_ppm: u64,
    policy_changes: Vec<PolicyChange>,
    /// Latest instant known, ns on CLOCK_MONOTONIC.
    latest: u64,
    unknown: u64,
}

#[derive(Debug)]
struct Task {
    /// As it was when the task was made.
    info: TaskInfo,
    /// Its longest period so far, ns.
    longest: u64,
    begun: bool,
    held: Option<Period>,
    figures: Figures,
}

impl Task {
    fn new(info: TaskInfo) -> Task {
        Task { longest: info.period, info, begun: false, held: None, figures: Figures::new() }
    }
}

impl Collector {
    /// For the tasks of one run; a record's `task` is an index into them.
    #[must_use]
    pub fn new(run: Run, tasks: Vec<TaskInfo>) -> Collector {
        let periodic = tasks.iter().filter(|t| t.period > 0);
        let utilization_ppm = utilization_of(periodic.map(|t| (t.budget, t.period))).0;
        let tasks: BTreeMap<_, _> = tasks.into_iter().map(Task::new).enumerate().collect();
        Collector {
            latest: run.started,
            run,
            next_place: tasks.len(),
            tasks,
            groups: Vec::new(),
            set: TaskSet::without_tasks([], PolicySpec::named("")),
            policy_changes: Vec::new(),
            utilization_ppm,
            unknown: 0,
        }
    }

    /// For all tasks of a set.
    #[must_use]
    pub fn for_set(run: Run, set: &TaskSet) -> Collector {
        Collector {
            groups: Group::of(set),
            set: TaskSet { tasks: Vec::new(), ..set.clone() },
            utilization_ppm: utilization(set).0,
            ..Collector::new(run, TaskInfo::of(set))
        }
    }

    /// Adds a task during the run, as `kind`, if that is not what its description says; its place
    /// follows those of earlier ones.
    pub fn add(&mut self, spec: &TaskSpec, kind: Option<TaskKind>) {
        let mut info = TaskInfo::of_task(spec);
        info.kind = kind.unwrap_or(info.kind);
        if info.period > 0 && spec.group.is_none() {
            self.utilization_ppm += utilization_of([(info.budget, info.period)]).0;
        }
        Group::join(&mut self.groups, &self.set, self.next_place, spec);
        self.tasks.insert(self.next_place, Task::new(info));
        self.next_place += 1;
    }

    /// The task at this place has other parameters from its next release on.
    pub fn change(&mut self, place: usize, change: &TaskChange) {
        if let (Some(task), Some(period)) = (self.tasks.get_mut(&place), change.period) {
            task.longest = task.longest.max(period);
        }
    }

    /// Drops the figures of a task that has ended.
    pub fn forget(&mut self, place: usize) {
        let grouped = Group::leave(&mut self.groups, place);
        let counted = |task: &Task| task.info.period > 0 && !grouped;
        if let Some(Task { info, .. }) = self.tasks.remove(&place).filter(counted) {
            let ppm = utilization_of([(info.budget, info.period)]).0;
            self.utilization_ppm = self.utilization_ppm.saturating_sub(ppm);
        }
    }

    /// Groups have the policies of `set` from now on; `changes` says which are other ones.
    pub fn change_policies(&mut self, set: &TaskSet, changes: &[PolicyChange]) {
        self.run.policy.clone_from(&set.policy.name);
        for (group, spec) in self.groups.iter_mut().zip(&set.groups) {
            group.set_policy(&spec.policy.name);
        }
        self.policy_changes.extend_from_slice(changes);
    }

    /// A policy was stopped; the run began at `origin`, ns by the host's clock.
    pub fn policy_stopped(&mut self, stop: &PolicyStop, origin: u64) {
        let to = stop.fallback.unwrap_or("no policy").to_owned();
        let group = stop.group.checked_sub(1).map(|group| group as usize);
        match group.and_then(|group| self.groups.get_mut(group)) {
            Some(group) => group.set_policy(&to),
            None => self.run.policy.clone_from(&to),
        }
        self.policy_changes.push(PolicyChange {
            at_ns: stop.at.saturating_sub(origin),
            group: group.and_then(|group| Some(self.groups.get(group)?.name().to_owned())),
            from: stop.policy.to_owned(),
            to,
            cause: Some(stop.cause.to_owned()),
        });
    }

    /// What a task is, where its description in the set does not say.
    pub fn set_kind(&mut self, task: u32, kind: TaskKind) {
        if let Some(task) = self.tasks.get_mut(&(task as usize)) {
            task.info.kind = kind;
        }
    }

    /// Counts each task's first period too: nothing starts up in a simulator.
    #[must_use]
    pub fn from_the_first(mut self) -> Collector {
        for task in self.tasks.values_mut() {
            task.begun = true;
        }
        self
    }

    /// One more period. Records of one task come in the order of their releases.
    pub fn record(&mut self, period: &Period) {
        let Some(task) = self.tasks.get_mut(&(period.task as usize)) else {
            self.unknown += 1;
            return;
        };
        if self.run.started == 0 {
            self.run.started = period.release;
        }
        self.latest = self.latest.max(period.release);
        if task.begun {
            if let Some(whole) = task.held.replace(*period) {
                task.figures.count(&whole, task.info.budget);
            }
        } else {
            task.figures.balance.left_out(period);
        }
        task.begun = true;
    }

    /// Counts released periods of `task` whose reports were dropped.
    pub fn record_unreported(&mut self, task: u32, count: u64) {
        match self.tasks.get_mut(&(task as usize)) {
            Some(task) => task.figures.unreported += count,
            None => self.unknown += count,
        }
    }

    /// The run ended at `end` (ns on CLOCK_MONOTONIC): counts the last period of each task if it
    /// was over by then.
    pub fn finish(&mut self, end: u64) {
        self.latest = self.latest.max(end);
        for task in self.tasks.values_mut() {
            let Some(last) = task.held.take() else {
                continue;
            };
            if last.release.saturating_add(task.longest) <= end {
                task.figures.count(&last, task.info.budget);
            }
        }
    }

    /// The figures so far. Cheap enough for a live table (some ten us per task).
    #[must_use]
    pub fn snapshot(&self) -> Results {
        let result = |task: &Task| task.figures.result(&task.info);
        let tasks: Vec<TaskResult> = self.tasks.values().map(result).collect();
        let of_place = |place: usize| self.tasks.get(&place).map(result);
        let mut totals = Totals::of(&tasks);
        totals.met &= self.policy_changes.iter().all(|change| change.cause.is_none());
        let duration = self.latest.saturating_sub(self.run.started);
        // To the millisecond: the exact time is in the changes themselves.
        let after = |c: &PolicyChange| fmt_ns(c.at_ns / 1_000_000 * 1_000_000);
        let note = |c: &PolicyChange| {
            let stopped = c.stopped().map_or_else(String::new, |why| format!(": {why}"));
            format!("{c}, {} after the start{stopped}", after(c))
        };
        let mut notes: Vec<String> = self.policy_changes.iter().map(note).collect();
        if self.unknown > 0 {
            notes.push(format!(
                "{} records named a task that is not in the set; they were ignored",
                self.unknown
            ));
        }
        Results {
            host: self.run.host,
            label: self.run.label.clone(),
            policy: self.run.policy.clone(),
            policy_changes: self.policy_changes.clone(),
            cpus: self.run.cpus.clone(),
            duration_ns: duration,
            utilization_ppm: self.utilization_ppm,
            overload: self.run.overload,
            interrupted: false,
            machine: self.run.machine.get_or_init(Machine::detect).clone(),
            totals,
            groups: self.groups.iter().map(|g| g.result(of_place, duration)).collect(),
            tasks,
            dispatcher: None,
            costs: None,
            kernel_dispatcher: None,
            load: None,
            not_possible: None,
            notes,
        }
    }

    /// The results of a run that lasted `ran` and ended at `end` (ns, `end` on
    /// CLOCK_MONOTONIC), before its time if it was `interrupted`; with what its host has to say.
    #[must_use]
    pub fn results(mut self, ran: u64, end: u64, interrupted: bool, notes: Vec<String>) -> Results {
        self.finish(end);
        let mut results = self.snapshot();
        results.duration_ns = ran;
        results.interrupted = interrupted;
        results.notes.extend(notes);
        results
    }

    /// The results of a run that could not take place, for its column beside others.
    #[must_use]
    pub fn not_possible(self, reason: &str, help: &[String]) -> Results {
        let mut results = self.snapshot();
        results.not_possible = Some(NotPossible { reason: reason.to_owned(), help: help.to_vec() });
        results
    }
}
