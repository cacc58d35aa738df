//! The analysis of one domain from group 0 down: each group's members are tested on what the group
//! is sure to receive, and what a server is sure to supply is what the group below is tested on.

use punctual_taskset::{fmt_ns, Costs, DomainId, ServerSpec, TaskSet, TaskSpec};

use crate::budget_groups::BudgetGroups;
use crate::cap::CapAnalysis;
use crate::group_test::GroupTest;
use crate::interference::{Interference, TableLoad};
use crate::members::{self, Policy};
use crate::reclaiming;
use crate::record::{group_result, task_result};
use crate::results::{BudgetGroupResult, Fit, GroupAnalysis, TaskAnalysis, Test};
use crate::step_limit::{self, StepLimit};
use crate::supply::Supply;

/// The analysis of one domain in progress.
pub(crate) struct Hierarchy<'a> {
    pub(crate) set: &'a TaskSet,
    pub(crate) domain: DomainId,
    pub(crate) costs: Costs,
    pub(crate) cap: Option<CapAnalysis>,
    pub(crate) budget_groups: BudgetGroups,
    pub(crate) steps: StepLimit,
    /// For response times on which no decision depends.
    pub(crate) figures: StepLimit,
    /// Some time table's cycle is too long, which no change of a budget shortens.
    pub(crate) no_cycle: bool,
    /// The time tables that were synthesised.
    pub(crate) tables: Vec<TableLoad>,
    /// By index in the set.
    pub(crate) tasks: Vec<Option<TaskAnalysis>>,
    pub(crate) groups: Vec<Option<GroupAnalysis>>,
    /// By group: when it may first have something to execute, ns from the start of the run.
    pub(crate) first_releases: Vec<u64>,
}

/// The results of one domain, in file order.
pub(crate) struct Results {
    pub(crate) tasks: Vec<TaskAnalysis>,
    pub(crate) groups: Vec<GroupAnalysis>,
    pub(crate) budget_groups: Vec<BudgetGroupResult>,
    /// The steps that are left.
    pub(crate) left: u64,
    pub(crate) no_cycle: bool,
    pub(crate) tables: Vec<TableLoad>,
    pub(crate) cap: Option<CapAnalysis>,
}

impl<'a> Hierarchy<'a> {
    /// Takes at most `steps` steps. `cap`: whether a cap delays jobs. `figures`: whether response
    /// times are computed on which no decision depends.
    pub(crate) fn new(
        set: &'a TaskSet,
        domain: DomainId,
        costs: Costs,
        cap: Option<CapAnalysis>,
        figures: bool,
        steps: u64,
    ) -> Hierarchy<'a> {
        Hierarchy {
            set,
            domain,
            costs,
            cap,
            budget_groups: BudgetGroups::new(set),
            steps: StepLimit::new(steps),
            no_cycle: false,
            tables: Vec::new(),
            figures: StepLimit::new(if figures { step_limit::FIGURES } else { 0 }),
            tasks: vec![None; set.tasks.len()],
            groups: vec![None; set.groups.len()],
            first_releases: members::first_releases(set),
        }
    }

    /// Tests all groups.
    pub(crate) fn run(mut self) -> Results {
        let supply = self.cap.map_or(Supply::Whole, |cap| cap.supply(&self.costs));
        let mut next = vec![(None, supply)];
        while let Some((group, supply)) = next.pop() {
            next.extend(
                self.test_group(group, &supply).into_iter().map(|(g, supply)| (Some(g), supply)),
            );
        }
        self.results()
    }

    /// Tests a group's members; returns the groups below it, with what each is sure to receive.
    fn test_group(&mut self, group: Option<usize>, supply: &Supply) -> Vec<(usize, Supply)> {
        let set = self.set;
        let spec = set.policy_of(group);
        let Some(policy) = Policy::of(spec) else {
            let why = match &spec.order {
                Some(order) => {
                    format!("there is no published test for the order {:?}", order.text())
                }
                None => format!("admission has no test for the policy {:?}", spec.name),
            };
            let members = members::of(set, self.domain, group, Policy::Fp, &self.budget_groups, 0);
            return self.record(&GroupTest::all_late(members), Some(&why));
        };
        if *supply == Supply::Nothing {
            let name = group.map_or("", |g| &set.groups[g].name);
            let why = format!("its group {name:?} is not sure to get its budget");
            let members = members::of(set, self.domain, group, policy, &self.budget_groups, 0);
            return self.record(&GroupTest::all_late(members), Some(&why));
        }
        if policy == Policy::Table {
            return self.test_table(group);
        }
        let host = match supply {
            // The whole CPU, but for what the cap takes.
            _ if group.is_none() => Interference::new(set, self.domain, group, &self.costs),
            Supply::Windows(_) => Interference::new(set, self.domain, group, &self.costs),
            // The response of the server above includes it.
            _ => Interference::default(),
        };
        if policy == Policy::Fair {
            self.test_fair(group, spec, supply, &host);
            return Vec::new();
        }
        let members =
            members::of(set, self.domain, group, policy, &self.budget_groups, host.per_job);
        if let Some(why) = self.lacks_promotion(group, policy) {
            return self.record(&GroupTest::all_late(members), Some(&why));
        }
        if policy == Policy::Reclaiming {
            if let Some(why) = reclaiming::obstacle(&members, &host) {
                return self.record(&GroupTest::all_late(members), Some(&why));
            }
        }
        let test = match policy {
            Policy::Edf | Policy::Finish => self.test_by_deadline(members, supply, &host),
            Policy::Reclaiming => self.test_reclaiming(members, supply, &host),
            Policy::Own(test) => self.test_by_own(test, members, supply, &host),
            _ => self.test_by_priority(policy, members, supply, &host),
        };
        self.record(&test, None)
    }

    /// The policy `dual` computes promotions in group 0 only.
    fn lacks_promotion(&self, group: Option<usize>, policy: Policy<'_>) -> Option<String> {
        let hard = |t: &&TaskSpec| {
            t.domain == self.domain && t.group == group && t.arrival.has_minimum_interarrival()
        };
        let without = self.set.tasks.iter().filter(hard).find(|t| t.promotion.is_none());
        let task = without.filter(|_| policy == Policy::Dual && group.is_some())?;
        Some(format!(
            "task {:?} needs its promotion: in a group with a server none is computed",
            task.name
        ))
    }

    /// Members that no path of servers connects with group 0 are never executed.
    fn results(self) -> Results {
        let Hierarchy {
            set,
            domain,
            costs,
            budget_groups,
            steps,
            tasks,
            groups,
            no_cycle,
            tables,
            cap,
            ..
        } = self;
        let unreached = || Some("no path of servers leads to it from group 0".to_owned());
        let groups =
            groups.into_iter().enumerate().filter(|(g, _)| set.groups[*g].domain == domain);
        let groups = groups.map(|(g, result)| {
            let mut result = result.unwrap_or_else(|| GroupAnalysis {
                why: unreached(),
                ..group_result(set, g, Test::None)
            });
            if let ServerSpec::Periodic { budget, .. } = &set.groups[g].server {
                if let Some(why) = not_enforced(*budget, &costs) {
                    (result.fit, result.why) = (Fit::Late, Some(why));
                }
            }
            result
        });
        let tasks = tasks.into_iter().enumerate().filter(|(t, _)| set.tasks[*t].domain == domain);
        let tasks = tasks.map(|(t, result)| {
            let mut result = result.unwrap_or_else(|| TaskAnalysis {
                why: unreached(),
                ..task_result(set, t, Test::None)
            });
            if let Some(why) = not_enforced(set.tasks[t].budget, &costs) {
                (result.fit, result.slack, result.why) = (Fit::Late, None, Some(why));
            }
            result
        });
        let budgets = set.budget_groups.iter().enumerate().filter(|(_, b)| b.domain == domain);
        let budgets = budgets.map(|(n, b)| BudgetGroupResult {
            budget_group: n,
            name: b.name.clone(),
            demand: u64::try_from(budget_groups.0[n].demand).unwrap_or(u64::MAX),
            budget: b.budget,
            period: b.period,
            exhaustible: budget_groups.0[n].exhaustible,
        });
        Results {
            tasks: tasks.collect(),
            groups: groups.collect(),
            budget_groups: budgets.collect(),
            left: steps.left(),
            no_cycle,
            tables,
            cap,
        }
    }
}

/// Why the host cannot enforce a budget: it is too small.
fn not_enforced(budget: u64, costs: &Costs) -> Option<String> {
    let least = costs.least_budget;
    (budget < least).then(|| {
        let (budget, least) = (fmt_ns(budget), fmt_ns(least));
        format!("its budget of {budget} is below {least}, the least that this host enforces")
    })
}
