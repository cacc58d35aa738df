//! From a task set to the members of one of its groups, as the tests see them.

use punctual_taskset::registry::PriorityFn;
use punctual_taskset::{
    registry, AdmissionTest, Arrival, DomainId, GroupDemand, GroupSpec, Objective, PolicySpec,
    ReleaseAttributes, ServerKind, ServerSpec, TaskSet, TaskSpec,
};

use crate::analysed_task::{AnalysedTask, Deferral, Entity};
use crate::budget_groups::BudgetGroups;
use crate::self_suspension::{known_suspension, segments};
use crate::supply::Supply;
use crate::task_server;

/// How a group orders its members, as far as the tests distinguish policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Policy<'s> {
    /// By period.
    Rm,
    /// By relative deadline.
    Dm,
    /// By the set's own priorities.
    Fp,
    Edf,
    /// By the finish; tasks reclaim the budgets of others.
    Reclaiming,
    /// By the start of windows.
    Table,
    /// A mandatory part above all optional ones.
    Imprecise,
    /// Promoted above the rest at a fixed time after its release.
    Dual,
    /// By an expression that has the same value at each release.
    Objective(&'s Objective),
    /// By the expression `finish`: as EDF, without the wake-up rule.
    Finish,
    /// Shares by weight.
    Fair,
    /// By a priority that a policy of the program gives its members.
    Ranked(Rank),
    /// As a test of the program's own has it.
    Own(OwnTest),
}

/// The priority of a member, the larger first.
#[derive(Clone, Copy)]
pub(crate) struct Rank(&'static PriorityFn);

impl std::fmt::Debug for Rank {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rank")
    }
}

/// A test of a policy of the program.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OwnTest(pub(crate) fn(&GroupDemand<'_>) -> Vec<Option<u64>>);

impl PartialEq for Rank {
    fn eq(&self, other: &Rank) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Rank {}

impl PartialEq for OwnTest {
    fn eq(&self, other: &OwnTest) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for OwnTest {}

impl<'s> Policy<'s> {
    /// Whether its periodic tasks are reservations, which the dispatcher releases without a timer
    /// of the policy.
    pub(crate) fn is_reservation(self) -> bool {
        match self {
            Policy::Rm | Policy::Dm | Policy::Fp | Policy::Edf | Policy::Table => true,
            Policy::Objective(_) => true,
            Policy::Imprecise | Policy::Dual | Policy::Finish | Policy::Fair => false,
            Policy::Reclaiming => false,
            // That follows from its implementation, which admission does not have.
            Policy::Ranked(_) | Policy::Own(_) => false,
        }
    }

    /// As the task set has it; `None`: there is no test for it.
    pub(crate) fn of(spec: &'s PolicySpec) -> Option<Policy<'s>> {
        match &spec.order {
            None if spec.reclaim => return Some(Policy::Reclaiming),
            Some(order) if order.is_finish() => return Some(Policy::Finish),
            Some(order) => return (!order.uses_release()).then_some(Policy::Objective(order)),
            None if spec.takes_weights() => return Some(Policy::Fair),
            None => {}
        }
        let tested = [
            (&registry::RM, Policy::Rm),
            (&registry::DM, Policy::Dm),
            (&registry::FP, Policy::Fp),
            (&registry::EDF, Policy::Edf),
            (&registry::TD, Policy::Table),
            (&registry::IMPRECISE, Policy::Imprecise),
            (&registry::DUAL, Policy::Dual),
        ];
        let of_punctual = tested.into_iter().find(|(info, _)| info.name == spec.name);
        of_punctual.map(|(_, policy)| policy).or_else(|| {
            let info = registry::policies().iter().find(|info| info.name == spec.name)?;
            match info.admission {
                AdmissionTest::None => None,
                AdmissionTest::ByDeadline => Some(Policy::Finish),
                AdmissionTest::ByPriority(priority) => Some(Policy::Ranked(Rank(priority))),
                AdmissionTest::Own(test) => Some(Policy::Own(OwnTest(test))),
            }
        })
    }

    /// The fixed priority of a member: larger is more important. `hard`: whether it has an upper
    /// band under [`Policy::Dual`].
    fn rank(self, of: &ReleaseAttributes, hard: bool) -> i128 {
        let ReleaseAttributes { period, deadline, priority, .. } = *of;
        match self {
            Policy::Rm | Policy::Imprecise => -i128::from(period),
            Policy::Fp => i128::from(priority),
            Policy::Dm => -i128::from(deadline),
            Policy::Dual if hard => -i128::from(deadline),
            Policy::Dual => i128::from(priority) - BAND,
            Policy::Objective(order) => i128::from(order.priority(of)),
            Policy::Ranked(Rank(priority)) => i128::from(priority(of)),
            Policy::Edf | Policy::Finish | Policy::Reclaiming => 0,
            Policy::Table | Policy::Fair | Policy::Own(_) => 0,
        }
    }
}

/// The distance between two bands: more than that of any two ranks in a band.
const BAND: i128 = 1 << 80;

/// The members of a group (`None`: group 0) in a domain: tasks first, in the order of the file.
/// `per_job`: what the host takes for a job within its execution, ns.
pub(crate) fn of(
    set: &TaskSet,
    domain: DomainId,
    group: Option<usize>,
    policy: Policy<'_>,
    budget_groups: &BudgetGroups,
    per_job: u64,
) -> Vec<AnalysedTask> {
    let tasks =
        set.tasks.iter().enumerate().filter(|(_, t)| t.domain == domain && t.group == group);
    let mut members: Vec<AnalysedTask> = Vec::new();
    for (index, task) in tasks {
        let mut member = of_task(index, task, policy);
        if member.deferral == Deferral::Never && task.budget_group.is_none() {
            member.overhead = per_job;
        }
        // Where the budget group can be exhausted, a job's remaining budget is executed after the
        // next replenishment.
        member.limited_by = budget_groups.supply(task.budget_group);
        if member.limited_by.is_some() {
            member.deferral = Deferral::KeepsBudget;
        }
        if policy == Policy::Imprecise {
            if let Some(mandatory) = task.mandatory.filter(|&m| m < task.budget) {
                members.push(AnalysedTask {
                    entity: Entity::Unguaranteed(index),
                    budget: task.budget - mandatory,
                    rank: member.rank - BAND,
                    ..member.clone()
                });
                member.budget = mandatory;
                member.segments = segments(&task.body, mandatory);
            }
        }
        members.push(member);
    }
    let groups =
        set.groups.iter().enumerate().filter(|(_, g)| g.domain == domain && g.parent == group);
    for (index, spec) in groups {
        let limited_by = budget_groups.supply(spec.budget_group);
        members.extend(of_server(index, spec, policy, limited_by));
    }
    members
}

/// The server of a group, or each of its windows.
fn of_server(
    index: usize,
    spec: &GroupSpec,
    policy: Policy<'_>,
    limited_by: Option<Supply>,
) -> Vec<AnalysedTask> {
    let mut server = AnalysedTask {
        deferral: Deferral::KeepsBudget,
        limited_by,
        ..AnalysedTask::new(Entity::Server(index))
    };
    let rank = |offset, period, deadline, budget| {
        let priority = spec.priority;
        let release = offset;
        let of = ReleaseAttributes { release, period, deadline, budget, priority, offset };
        policy.rank(&of, false)
    };
    match &spec.server {
        ServerSpec::Periodic { period, budget, deadline, offset, kind } => {
            server.budget = *budget;
            server.period = Some((*period).max(1));
            server.deadline = (*deadline).min((*period).max(1));
            // A sporadic server is released when its group has something to execute.
            server.offset = Some(*offset).filter(|_| *kind != ServerKind::Sporadic);
            server.rank = rank(*offset, *period, *deadline, *budget);
            // What a budget group throttles keeps its budget meanwhile.
            if server.limited_by.is_none() {
                server.deferral = match kind {
                    // A sporadic server demands no more than a periodic task. In a served group a
                    // constant bandwidth server has no more than if it had executed since its
                    // release.
                    ServerKind::Polling | ServerKind::Sporadic => Deferral::Never,
                    ServerKind::ConstantBandwidth if spec.parent.is_some() => Deferral::Never,
                    ServerKind::Deferrable => Deferral::KeepsBudget,
                    ServerKind::ConstantBandwidth
                    | ServerKind::SoftConstantBandwidth
                    | ServerKind::TotalBandwidth
                    | ServerKind::ConstantUtilization
                    | ServerKind::Adaptive => Deferral::CutToBandwidth,
                };
            }
            vec![server]
        }
        ServerSpec::Windows { cycle, windows } => windows
            .iter()
            .map(|window| AnalysedTask {
                budget: window.length,
                period: Some((*cycle).max(1)),
                deadline: window.length,
                offset: Some(window.start),
                rank: rank(window.start, *cycle, window.length, window.length),
                ..server.clone()
            })
            .collect(),
    }
}

fn of_task(index: usize, task: &TaskSpec, policy: Policy<'_>) -> AnalysedTask {
    let (entity, period, offset) = match &task.arrival {
        // Budgets of a server are a period apart, whatever the arrivals are.
        _ if !task_server::is_plain(task) => (Entity::Task(index), Some(task.period.max(1)), None),
        // No file has a period of 0; a set made by a program may.
        Arrival::Periodic => (Entity::Task(index), Some(task.period.max(1)), Some(task.offset)),
        Arrival::Sporadic { .. } => (Entity::Task(index), Some(task.period.max(1)), None),
        Arrival::Aperiodic { .. } => (Entity::Unguaranteed(index), None, None),
        Arrival::List(times) => {
            // Sporadic with the least distance in the list, if each deadline is before the next
            // release.
            let least =
                times.windows(2).map(|pair| pair[1].saturating_sub(pair[0])).min().unwrap_or(LONG);
            if least < task.deadline {
                (Entity::Unguaranteed(index), None, None)
            } else {
                (Entity::Task(index), Some(least.min(LONG)), None)
            }
        }
    };
    let restarts_at_wake_up = task_server::restarts_at_wake_up(task);
    let (suspends, suspension) =
        if restarts_at_wake_up { (false, 0) } else { known_suspension(&task.body) };
    let deferral = match (task.server, suspends, policy) {
        (Some(ServerKind::Sporadic), _, _) => Deferral::Never,
        // It keeps the rest of a budget from one job to the next, within its bandwidth.
        (Some(ServerKind::SoftConstantBandwidth), _, _) => Deferral::CutToBandwidth,
        (_, false, _) => Deferral::Never,
        (_, true, Policy::Edf | Policy::Reclaiming) => Deferral::CutToBandwidth,
        (_, true, _) => Deferral::KeepsBudget,
    };
    // The dispatcher orders jobs of reservations by index; for jobs of a policy no order is known.
    let ordered = policy.is_reservation() && task.is_released_each_period();
    AnalysedTask {
        budget: task.budget,
        period,
        deadline: task.deadline.min(period.unwrap_or(task.deadline)),
        jitter: task.jitter,
        blocking: task.blocking,
        suspension,
        segments: if restarts_at_wake_up { Vec::new() } else { segments(&task.body, task.budget) },
        deferral,
        early: task_server::is_early(task),
        rank: policy.rank(
            &ReleaseAttributes::of_task(task, task.offset),
            task.arrival.has_minimum_interarrival(),
        ),
        tie_break: ordered.then_some(index),
        offset,
        ..AnalysedTask::new(entity)
    }
}

/// By group: the first release of any task in it or below it, ns; those without any: 0.
pub(crate) fn first_releases(set: &TaskSet) -> Vec<u64> {
    let mut first = vec![u64::MAX; set.groups.len()];
    for task in &set.tasks {
        let release = match &task.arrival {
            Arrival::List(times) => times.first().copied().unwrap_or(0),
            _ => task.offset,
        };
        let mut at = task.group;
        // A path is no longer than there are groups.
        for _ in 0..set.groups.len() {
            let Some(g) = at.filter(|&g| g < first.len()) else { break };
            first[g] = first[g].min(release);
            at = set.groups[g].parent;
        }
    }
    first.into_iter().map(|first| if first == u64::MAX { 0 } else { first }).collect()
}

/// The period of a single release, ns: longer than any run.
const LONG: u64 = 1 << 62;
