//! From the outcomes of a group's test to results, and to what the groups below it are sure to
//! receive.

use punctual_taskset::{ServerKind, ServerSpec, TaskSet};

use crate::analysed_task::{AnalysedTask, DeadlineMet, Entity, Outcome};
use crate::group_test::GroupTest;
use crate::hierarchy::Hierarchy;
use crate::results::{Fit, GroupAnalysis, TaskAnalysis, Test};
use crate::self_suspension;
use crate::supply::{Supply, NEVER};
use crate::task_server;
use crate::window_supply::WindowSupply;

impl Hierarchy<'_> {
    /// Records the results of a group; returns the groups below it, with what each is sure to
    /// receive. `why`: the reason why all members are late.
    pub(crate) fn record(&mut self, group: &GroupTest, why: Option<&str>) -> Vec<(usize, Supply)> {
        let mut below: Vec<(usize, Supply)> = Vec::new();
        for (m, outcome) in group.members.iter().zip(&group.outcomes) {
            match m.entity {
                Entity::Task(index) => self.record_task(index, m, outcome, group, why),
                Entity::Unguaranteed(index) if m.period.is_none() => {
                    let why = "it has no least distance between releases, so that nothing is \
                               promised to it";
                    self.tasks[index] = Some(TaskAnalysis {
                        fit: Fit::BestEffort,
                        why: Some(why.to_owned()),
                        ..task_result(self.set, index, Test::None)
                    });
                }
                Entity::Unguaranteed(_) => {}
                Entity::Server(index) => {
                    let supply = self.record_group(index, m, outcome, group, why);
                    match below.last_mut() {
                        // Windows of one group: it receives all of them, or nothing is guaranteed.
                        Some((last, so_far)) if *last == index => {
                            if supply == Supply::Nothing {
                                *so_far = Supply::Nothing;
                            }
                        }
                        _ => below.push((index, supply)),
                    }
                }
            }
        }
        below
    }

    fn record_task(
        &mut self,
        index: usize,
        m: &AnalysedTask,
        o: &Outcome,
        group: &GroupTest,
        why: Option<&str>,
    ) {
        let set = self.set;
        let spec = &set.tasks[index];
        let stopped = o.met == DeadlineMet::Yes
            && !task_server::restarts_at_wake_up(spec)
            && self_suspension::ends_suspended(&spec.body, m.budget);
        let o =
            if stopped { &Outcome::suspension_fault(self_suspension::ENDS_SUSPENDED) } else { o };
        let response = o.response.filter(|_| !task_server::has_unbounded_response(spec));
        let mut result = TaskAnalysis {
            fit: o.met.into(),
            exact: o.exact,
            reached: o.reached,
            response,
            promotion: o.promotion,
            slack: response.and_then(|r| m.deadline.checked_sub(r)),
            ..task_result(set, index, group.test)
        };
        if result.fit == Fit::Late {
            let why = why.or(o.suspension_fault).map(str::to_owned);
            result.why = why.or_else(|| self.unbounded_interference(m, group)).or_else(|| {
                let exhaustible = self.budget_groups.first_exhaustible(spec.budget_group)?;
                let name = &set.budget_groups[exhaustible].name;
                Some(format!("its budget group {name:?} may run dry before it is done"))
            });
        }
        if result.fit == Fit::Fits && task_server::is_best_effort(spec) {
            result = TaskAnalysis {
                fit: Fit::BestEffort,
                why: Some(task_server::SLEEPS_ON_SPORADIC.to_owned()),
                ..task_result(set, index, Test::None)
            };
        }
        self.put_task(result);
    }

    fn record_group(
        &mut self,
        index: usize,
        m: &AnalysedTask,
        o: &Outcome,
        group: &GroupTest,
        why: Option<&str>,
    ) -> Supply {
        let set = self.set;
        let mut result = GroupAnalysis {
            fit: o.met.into(),
            exact: o.exact,
            response: o.response,
            ..group_result(set, index, group.test)
        };
        if result.fit == Fit::Late {
            result.why = why.map(str::to_owned).or_else(|| self.unbounded_interference(m, group));
        }
        let supply = match o.met {
            DeadlineMet::Yes => {
                guaranteed(&set.groups[index].server, m, o, group, self.first_releases[index])
            }
            DeadlineMet::No | DeadlineMet::Unknown => Supply::Nothing,
        };
        result.blackout = Some(supply.time_for(1)).filter(|&t| t != NEVER).map(|t| t - 1);
        // Of several windows, the first that is late gives the reason.
        if self.groups[index].as_ref().is_none_or(|before| before.fit == Fit::Fits) {
            self.put_group(result);
        }
        supply
    }

    pub(crate) fn put_task(&mut self, result: TaskAnalysis) {
        let at = result.task;
        self.tasks[at] = Some(result);
    }

    pub(crate) fn put_group(&mut self, result: GroupAnalysis) {
        let at = result.group;
        self.groups[at] = Some(result);
    }

    /// A task that is no less important than this member, and whose releases are unbounded.
    fn unbounded_interference(&self, m: &AnalysedTask, group: &GroupTest) -> Option<String> {
        let by_deadline = group.test == Test::ProcessorDemand;
        let other = group
            .members
            .iter()
            .find(|o| o.period.is_none() && (by_deadline || o.rank >= m.rank))?;
        let Entity::Unguaranteed(index) = other.entity else { return None };
        let name = &self.set.tasks[index].name;
        Some(format!(
            "task {name:?} is not less important, and nothing bounds how often it is released: \
             give it a group with a server of its own"
        ))
    }
}

impl From<DeadlineMet> for Fit {
    fn from(met: DeadlineMet) -> Fit {
        match met {
            DeadlineMet::Yes => Fit::Fits,
            DeadlineMet::No => Fit::Late,
            DeadlineMet::Unknown => Fit::NotComputed,
        }
    }
}

/// What a group is sure to receive from a server that meets its deadlines. `first`: when the group
/// may first have something to execute, ns.
fn guaranteed(
    server: &ServerSpec,
    m: &AnalysedTask,
    o: &Outcome,
    group: &GroupTest,
    first: u64,
) -> Supply {
    match server {
        ServerSpec::Windows { cycle, windows } => {
            Supply::Windows(WindowSupply::new((*cycle).max(1), windows))
        }
        ServerSpec::Periodic { budget: 0, .. } => Supply::Nothing,
        ServerSpec::Periodic { period, budget, kind, deadline, offset } => {
            let received = o.response.unwrap_or(*deadline);
            // The budget may be used as early as possible, and the next received as late as
            // possible.
            let gap = period.saturating_sub(*budget);
            let late = received.saturating_sub(*budget);
            let blackout = match kind {
                // The server may have lost this period's budget just before.
                ServerKind::Polling => period + late,
                // The server may have used the last part of its budget just before.
                ServerKind::Sporadic => period + late,
                _ if m.limited_by.is_some() => period + late,
                // Under EDF, other members may take the rest of the budget of a group that becomes
                // active late in its period, within the intervals that may fail. What the wake-up
                // rule cuts off lengthens nothing (docs/check.md).
                ServerKind::Deferrable
                | ServerKind::ConstantBandwidth
                | ServerKind::SoftConstantBandwidth
                | ServerKind::TotalBandwidth
                | ServerKind::ConstantUtilization
                | ServerKind::Adaptive => gap + late.max(group.failure.unwrap_or(0).min(*deadline)),
            };
            // The server may begin later than its tasks.
            let begins = offset.saturating_sub(first).saturating_add(late);
            Supply::Server { blackout: blackout.max(begins), budget: *budget, period: *period }
        }
    }
}

/// A task's result before the test: late.
pub(crate) fn task_result(set: &TaskSet, task: usize, test: Test) -> TaskAnalysis {
    let spec = &set.tasks[task];
    TaskAnalysis {
        task,
        name: spec.name.clone(),
        line: spec.line,
        fit: Fit::Late,
        test,
        exact: false,
        response: None,
        promotion: None,
        reached: false,
        deadline: spec.deadline,
        slack: None,
        why: None,
    }
}

/// A group's result before the test: late.
pub(crate) fn group_result(set: &TaskSet, group: usize, test: Test) -> GroupAnalysis {
    let spec = &set.groups[group];
    let deadline = match &spec.server {
        ServerSpec::Periodic { deadline, .. } => *deadline,
        ServerSpec::Windows { cycle, .. } => *cycle,
    };
    GroupAnalysis {
        group,
        name: spec.name.clone(),
        line: spec.line,
        fit: Fit::Late,
        test,
        exact: false,
        response: None,
        deadline,
        blackout: None,
        why: None,
    }
}
