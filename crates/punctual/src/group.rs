//! Scheduling groups and budget groups of a set that is being declared.

use std::time::Duration;

use punctual_taskset::{
    registry, Body, BudgetGroupSpec, DomainId, GroupSpec, PolicySpec, ServerKind, ServerSpec, Spin,
    TaskSet, TaskSpec,
};

use crate::{Error, Policy};

/// A scheduling group: tasks with a policy and a budget of their own, which the others see as one
/// task. See [`Punctual::group`](crate::Punctual::group).
///
/// Under EDF it keeps of its budget what its bandwidth allows when it has something to execute
/// again (constant bandwidth server), else all of it until the end of its period (deferrable
/// server). Its deadline is its period.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it is in no set before Punctual::group"]
pub struct SchedulingGroup {
    name: String,
    period: Duration,
    budget: Duration,
    policy: Policy,
    priority: i64,
    parent: Option<String>,
    budget_group: Option<String>,
    cpu: Option<u32>,
}

impl SchedulingGroup {
    /// A group that executes for `budget` in each `period`, by EDF, in the top group. `name`: 1 to
    /// 64 printable characters, unlike the other groups' names.
    pub fn new(name: impl Into<String>, period: Duration, budget: Duration) -> SchedulingGroup {
        SchedulingGroup {
            name: name.into(),
            period,
            budget,
            policy: Policy::default(),
            priority: 0,
            parent: None,
            budget_group: None,
            cpu: None,
        }
    }

    /// Which of its ready tasks runs.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Its importance where the policy above it is [`Policy::FixedPriority`], larger first.
    pub fn priority(mut self, priority: i64) -> Self {
        self.priority = priority;
        self
    }

    /// The group in which it competes, which was declared before; else the top one.
    pub fn parent(mut self, name: impl Into<String>) -> Self {
        self.parent = Some(name.into());
        self
    }

    /// A budget group that limits it, which was declared before.
    pub fn budget_group(mut self, name: impl Into<String>) -> Self {
        self.budget_group = Some(name.into());
        self
    }

    /// Its CPU, of the set's; required only where the set has several, and it has no parent.
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// The set with this group.
    pub(crate) fn add_to(self, set: &TaskSet) -> Result<TaskSet, Error> {
        let kind = "group";
        let name = &self.name;
        self.policy.register()?;
        let (period, budget) = (ns(kind, name, self.period)?, ns(kind, name, self.budget)?);
        let find = |parent: &String| find_group(set, parent).map_err(|e| of(kind, name, e));
        let parent = self.parent.as_ref().map(find).transpose()?;
        let find = |node: &String| find_budget_group(set, node).map_err(|e| of(kind, name, e));
        let budget_group = self.budget_group.as_ref().map(find).transpose()?;
        let above = parent.map(|parent| set.groups[parent].domain);
        let domain = placed(set, self.cpu, above).map_err(|e| of(kind, name, e))?;
        if find_group(set, name).is_ok() {
            return Err(taken(kind, name));
        }
        let server = ServerSpec::Periodic {
            period,
            budget,
            deadline: period,
            offset: 0,
            // As in a file that does not say.
            kind: match set.policy_of(parent).name == registry::EDF.name {
                true => ServerKind::ConstantBandwidth,
                false => ServerKind::default(),
            },
        };
        let mut with = set.clone();
        with.groups.push(GroupSpec {
            name: self.name.clone(),
            parent,
            policy: PolicySpec::named(self.policy.name()),
            server,
            priority: self.priority,
            budget_group,
            domain,
            line: None,
        });
        check(&with).map(|()| with)
    }
}

/// A budget that several tasks and groups share, whatever schedules them. See
/// [`Punctual::budget_group`](crate::Punctual::budget_group).
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it is in no set before Punctual::budget_group"]
pub struct BudgetGroup {
    name: String,
    period: Duration,
    budget: Duration,
    parent: Option<String>,
    cpu: Option<u32>,
}

impl BudgetGroup {
    /// `budget` in each `period`, for all members together. `name`: 1 to 64 printable characters,
    /// unlike the other budget groups' names.
    pub fn new(name: impl Into<String>, period: Duration, budget: Duration) -> BudgetGroup {
        BudgetGroup { name: name.into(), period, budget, parent: None, cpu: None }
    }

    /// The budget group that limits it, which was declared before.
    pub fn parent(mut self, name: impl Into<String>) -> Self {
        self.parent = Some(name.into());
        self
    }

    /// Its CPU, of the set's; required only where the set has several, and it has no parent.
    pub fn cpu(mut self, cpu: u32) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// The set with this budget group.
    pub(crate) fn add_to(self, set: &TaskSet) -> Result<TaskSet, Error> {
        let kind = "budget group";
        let name = &self.name;
        let (period, budget) = (ns(kind, name, self.period)?, ns(kind, name, self.budget)?);
        let find = |parent: &String| find_budget_group(set, parent).map_err(|e| of(kind, name, e));
        let parent = self.parent.as_ref().map(find).transpose()?;
        let above = parent.map(|parent| set.budget_groups[parent].domain);
        let domain = placed(set, self.cpu, above).map_err(|e| of(kind, name, e))?;
        if find_budget_group(set, name).is_ok() {
            return Err(taken(kind, name));
        }
        let mut with = set.clone();
        let name = self.name.clone();
        with.budget_groups.push(BudgetGroupSpec {
            name,
            parent,
            period,
            budget,
            domain,
            line: None,
        });
        check(&with).map(|()| with)
    }
}

/// The place of a scheduling group in the set.
pub(crate) fn find_group(set: &TaskSet, name: &str) -> Result<usize, Error> {
    let found = set.groups.iter().position(|group| group.name == name);
    found.ok_or_else(|| unknown("group", name))
}

/// The place of a budget group in the set.
pub(crate) fn find_budget_group(set: &TaskSet, name: &str) -> Result<usize, Error> {
    let found = set.budget_groups.iter().position(|node| node.name == name);
    found.ok_or_else(|| unknown("budget group", name))
}

/// The domain that has this CPU; without one that of what is above, or the only one.
pub(crate) fn placed(
    set: &TaskSet,
    cpu: Option<u32>,
    above: Option<DomainId>,
) -> Result<DomainId, Error> {
    let found = match cpu {
        Some(cpu) => DomainId::of_cpu(&set.domains, cpu),
        None => above.or(Some(DomainId(0)).filter(|_| set.domains.len() == 1)),
    };
    found.ok_or_else(|| {
        let cpus = set.cpus();
        match cpu {
            Some(cpu) => Error::usage(
                format!("CPU {cpu} is not one of the set's, {cpus:?}"),
                "use one of those",
            ),
            None => Error::usage(
                format!("it does not say on which of the CPUs {cpus:?} it runs"),
                format!("add .cpu({})", cpus.first().unwrap_or(&0)),
            ),
        }
    })
}

/// An error of this group.
fn of(kind: &str, name: &str, error: Error) -> Error {
    let (cause, errno) = (format!("{kind} {name:?}: {}", error.cause), error.errno);
    let error = Error::usage(cause, error.help);
    match errno {
        Some(errno) => error.with_errno(errno),
        None => error,
    }
}

fn unknown(kind: &str, name: &str) -> Error {
    let help = "declare it first, before the set is started";
    Error::usage(format!("there is no {kind} {name:?}"), help).with_errno(libc::ENOENT)
}

fn taken(kind: &str, name: &str) -> Error {
    Error::usage(format!("there are two {kind}s {name:?}"), "give one of them another name")
        .with_errno(libc::EEXIST)
}

/// What is too long for this is refused as too long.
fn ns(kind: &str, name: &str, time: Duration) -> Result<u64, Error> {
    let ns = u64::try_from(time.as_nanos()).ok();
    ns.filter(|&ns| ns < punctual_taskset::DURATION_LIMIT).ok_or_else(|| {
        let error = Error::usage("a time is too long", "make it less than 2^62 ns");
        of(kind, name, error)
    })
}

/// The checks that files pass too, with a task in place of those to come. Their errors name the
/// group.
fn check(set: &TaskSet) -> Result<(), Error> {
    let any = TaskSpec {
        domain: DomainId(0),
        weight: set.policy.takes_weights().then_some(1),
        ..TaskSpec::new("any", 1_000_000_000, 1, Body::Spin(Spin::Forever))
    };
    let with_task = TaskSet { tasks: vec![any], ..set.clone() };
    // Without the place in a text that no one wrote.
    let read = TaskSet::parse(&with_task.to_toml(), "the set");
    read.map(drop).map_err(|e| Error::usage(e.cause, e.help))
}
