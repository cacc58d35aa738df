//! From group 0 down: each group's members are tested on what the group is sure to get, and what a
//! server is sure to give is what the group below is tested on.

use punctual_taskset::{fmt_ns, Costs, ServerKind, ServerSpec, TaskSet, TaskSpec};

use crate::analysis::{BudgetGroupResult, Fit, GroupResult, TaskResult, Test};
use crate::budgets::Nodes;
use crate::contender::{Contender, Fit as Met, Outcome, PutOff, Who};
use crate::demand::Demand;
use crate::effort::{self, Effort};
use crate::interference::Interference;
use crate::members::{self, Policy};
use crate::supply::{Supply, Table, NEVER};
use crate::{aligned, edf_response, response, sleepers};

/// The results of one CPU, as they come.
pub(crate) struct Walk<'a> {
    pub(crate) set: &'a TaskSet,
    pub(crate) cpu: u32,
    costs: Costs,
    pub(crate) nodes: Nodes,
    pub(crate) effort: Effort,
    figures: Effort,
    /// Some time table has no cycle that is short enough: no change of a budget gives it one.
    pub(crate) no_cycle: bool,
    /// By index in the set.
    tasks: Vec<Option<TaskResult>>,
    groups: Vec<Option<GroupResult>>,
    /// By index: when a group may first have something to execute, ns from the start of the run.
    first: Vec<u64>,
}

/// Members of a group with what the tests say, and the longest interval that may fail under EDF.
pub(crate) struct Judged {
    pub(crate) members: Vec<Contender>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) test: Test,
    failure: Option<u64>,
}

impl Judged {
    fn all_late(members: Vec<Contender>) -> Judged {
        Judged { outcomes: vec![Outcome::LATE; members.len()], members, test: Test::None, failure: None }
    }
}

impl<'a> Walk<'a> {
    /// Tests all of a CPU, with so many terms. `figures`: whether response times that decide nothing
    /// are wanted.
    pub(crate) fn new(set: &'a TaskSet, cpu: u32, costs: Costs, figures: bool, terms: u64) -> Walk<'a> {
        Walk {
            set,
            cpu,
            costs,
            nodes: Nodes::new(set),
            effort: Effort::new(terms),
            no_cycle: false,
            figures: Effort::new(if figures { effort::FIGURES } else { 0 }),
            tasks: vec![None; set.tasks.len()],
            groups: vec![None; set.groups.len()],
            first: members::first_releases(set),
        }
    }

    pub(crate) fn run(&mut self) {
        let mut next = vec![(None, Supply::Whole)];
        while let Some((group, supply)) = next.pop() {
            next.extend(self.group(group, &supply).into_iter().map(|(g, supply)| (Some(g), supply)));
        }
    }

    /// The results, in file order. What no path from group 0 reaches is never executed.
    pub(crate) fn results(self) -> (Vec<TaskResult>, Vec<GroupResult>, Vec<BudgetGroupResult>, Effort) {
        let Walk { set, cpu, costs, nodes, effort, tasks, groups, .. } = self;
        let unreached = "no path of servers leads to it from group 0";
        let groups = groups.into_iter().enumerate().filter(|(g, _)| set.groups[*g].cpu == cpu);
        let groups = groups.map(|(g, result)| {
            result
                .unwrap_or_else(|| GroupResult { why: Some(unreached.to_owned()), ..group_result(set, g, Test::None) })
        });
        let tasks = tasks.into_iter().enumerate().filter(|(t, _)| set.tasks[*t].cpu == cpu);
        let tasks = tasks.map(|(t, result)| {
            result.unwrap_or_else(|| TaskResult { why: Some(unreached.to_owned()), ..task_result(set, t, Test::None) })
        });
        let groups = groups.map(|group| match &set.groups[group.group].server {
            ServerSpec::Periodic { budget, .. } => match too_small(*budget, &costs) {
                Some(why) => GroupResult { fit: Fit::Late, why: Some(why), ..group },
                None => group,
            },
            ServerSpec::Windows { .. } => group,
        });
        let tasks = tasks.map(|task| match too_small(set.tasks[task.task].budget, &costs) {
            Some(why) => TaskResult { fit: Fit::Late, slack: None, why: Some(why), ..task },
            None => task,
        });
        let budgets =
            set.budget_groups.iter().enumerate().filter(|(_, b)| b.cpu == cpu).map(|(n, b)| BudgetGroupResult {
                budget_group: n,
                name: b.name.clone(),
                wanted: u64::try_from(nodes.0[n].wanted).unwrap_or(u64::MAX),
                budget: b.budget,
                period: b.period,
                dry: nodes.0[n].dry,
            });
        (tasks.collect(), groups.collect(), budgets.collect(), effort)
    }

    /// Tests a group's members; the groups below it, with what each is sure to get.
    fn group(&mut self, group: Option<usize>, supply: &Supply) -> Vec<(usize, Supply)> {
        let set = self.set;
        let spec = group.map_or(&set.policy, |g| &set.groups[g].policy);
        let Some(policy) = Policy::named(&spec.name) else {
            let why = format!("admission has no test for the policy {:?}", spec.name);
            let members = members::of(set, self.cpu, group, Policy::Fp, &self.nodes, 0);
            return self.record(&Judged::all_late(members), Some(&why));
        };
        if *supply == Supply::Nothing {
            let name = group.map_or("", |g| &set.groups[g].name);
            let why = format!("its group {name:?} is not sure to get its budget");
            let members = members::of(set, self.cpu, group, policy, &self.nodes, 0);
            return self.record(&Judged::all_late(members), Some(&why));
        }
        if policy == Policy::Table {
            return self.test_table(group);
        }
        let host = match supply {
            Supply::Whole | Supply::Table(_) => Interference::new(set, self.cpu, group, &self.costs),
            // The response of the server above has all of it.
            _ => Interference::default(),
        };
        let members = members::of(set, self.cpu, group, policy, &self.nodes, host.per_job);
        if let Some(why) = self.unpromoted(group, policy) {
            return self.record(&Judged::all_late(members), Some(&why));
        }
        let judged = match policy {
            Policy::Edf => self.by_deadline(members, supply, &host),
            _ => self.by_priority(policy, members, supply, &host),
        };
        self.record(&judged, None)
    }

    /// The promotion time must be given where it is not computed (crates/policies, dual).
    fn unpromoted(&self, group: Option<usize>, policy: Policy) -> Option<String> {
        let hard = |t: &&TaskSpec| t.cpu == self.cpu && t.group == group && members::is_hard(&t.arrival);
        let without = self.set.tasks.iter().filter(hard).find(|t| t.promotion.is_none());
        let task = without.filter(|_| policy == Policy::Dual && group.is_some())?;
        Some(format!("task {:?} needs its promotion: in a group with a server none is computed", task.name))
    }

    fn by_priority(&mut self, policy: Policy, members: Vec<Contender>, supply: &Supply, host: &Interference) -> Judged {
        let mut outcomes = response::responses(&members, supply, synchronous(&members), host, &mut self.effort);
        if policy == Policy::Dual {
            for (c, outcome) in members.iter().zip(&mut outcomes) {
                if let Who::Task(index) = c.who {
                    promote(self.set.tasks[index].promotion, c, outcome);
                }
            }
        }
        let test = match policy {
            Policy::Imprecise => Test::MandatoryPart,
            Policy::Dual => Test::Promotion,
            _ => Test::ResponseTime,
        };
        Judged { members, outcomes, test, failure: None }
    }

    fn by_deadline(&mut self, members: Vec<Contender>, supply: &Supply, host: &Interference) -> Judged {
        let test = Test::ProcessorDemand;
        let Some(demand) = Demand::new(&members, host) else {
            return Judged { outcomes: vec![Outcome::LATE; members.len()], members, test, failure: Some(NEVER) };
        };
        let Ok(failure) = demand.longest_failure(supply, &mut self.effort) else {
            return Judged { outcomes: vec![Outcome::UNKNOWN; members.len()], members, test, failure: Some(NEVER) };
        };
        let plain = members.iter().all(|c| c.put_off == PutOff::Never && c.blocking == 0) && *supply == Supply::Whole;
        let exact = plain && host.is_none() && synchronous(&members);
        let mut outcomes = Vec::with_capacity(members.len());
        for c in &members {
            let failure = match &c.wet {
                None => Ok(failure),
                Some(_) => demand.longest_failure(&c.supply(supply), &mut self.effort),
            };
            outcomes.push(match failure {
                Ok(failure) if c.deadline.saturating_sub(c.jitter) > failure => Outcome::within(c.deadline, exact),
                Ok(_) => Outcome { exact, ..Outcome::LATE },
                Err(_) => Outcome::UNKNOWN,
            });
        }
        if let (Supply::Table(table), true) = (supply, outcomes.iter().any(|o| o.fit != Met::Yes)) {
            if let Ok(Some(in_time)) = aligned::in_time(&members, table, host, &mut self.effort) {
                let exact = host.is_none() && members.iter().all(|c| c.put_off == PutOff::Never);
                for ((c, outcome), in_time) in members.iter().zip(&mut outcomes).zip(in_time) {
                    *outcome =
                        if in_time { Outcome::within(c.deadline, exact) } else { Outcome { exact, ..Outcome::LATE } };
                }
            }
        }
        // What a server's group is promised rests on these bounds: they do not depend on whether figures
        // are wanted.
        let servers = members.iter().any(|c| matches!(c.who, Who::Group(_)));
        let simple = failure == 0 && members.iter().all(|c| c.wet.is_none());
        if simple && (servers || self.figures.left() > 0) {
            let bounds = demand.responses(&members, supply, &mut Effort::new(effort::BOUNDS));
            for (outcome, bound) in outcomes.iter_mut().zip(bounds.unwrap_or_default()) {
                outcome.response = Some(bound);
            }
        }
        if plain && simple && host.is_none() && members.iter().all(|c| c.jitter == 0) {
            let found = edf_response::responses(&members, &mut self.figures);
            for ((c, outcome), found) in members.iter().zip(&mut outcomes).zip(found) {
                if let (Some(response), Who::Task(_)) = (found, c.who) {
                    *outcome = Outcome { response: Some(response), reached: exact, ..*outcome };
                }
            }
        }
        if members.iter().any(|c| !c.stretches.is_empty()) {
            let whole = *supply == Supply::Whole && failure == 0;
            sleepers::under_edf(&members, &demand, whole, &mut outcomes, &mut self.effort);
        }
        Judged { members, outcomes, test, failure: Some(failure) }
    }

    /// Writes the results down, and hands the groups below their supplies.
    pub(crate) fn record(&mut self, judged: &Judged, why: Option<&str>) -> Vec<(usize, Supply)> {
        let mut below: Vec<(usize, Supply)> = Vec::new();
        for (c, outcome) in judged.members.iter().zip(&judged.outcomes) {
            match c.who {
                Who::Task(index) => self.record_task(index, c, outcome, judged, why),
                Who::Extra(index) if c.period.is_none() => {
                    let why = "it has no least distance between releases, so that nothing is promised to it";
                    self.tasks[index] = Some(TaskResult {
                        fit: Fit::BestEffort,
                        why: Some(why.to_owned()),
                        ..task_result(self.set, index, Test::None)
                    });
                }
                Who::Extra(_) => {}
                Who::Group(index) => {
                    let supply = self.record_group(index, c, outcome, judged, why);
                    match below.last_mut() {
                        // Windows of one group: it gets them all, or nothing is sure.
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

    fn record_task(&mut self, index: usize, c: &Contender, o: &Outcome, judged: &Judged, why: Option<&str>) {
        let set = self.set;
        let spec = &set.tasks[index];
        let ends_asleep = o.fit == Met::Yes && sleepers::ends_asleep(&spec.body, c.budget);
        let o = if ends_asleep { &Outcome::asleep(sleepers::ENDS_ASLEEP) } else { o };
        let fit = fit(o.fit);
        let mut result = TaskResult { fit, exact: o.exact, ..task_result(set, index, judged.test) };
        result.reached = o.reached;
        result.response = o.response;
        result.promotion = o.promotion;
        result.slack = o.response.and_then(|r| c.deadline.checked_sub(r));
        if fit == Fit::Late {
            let why = why.or(o.asleep).map(str::to_owned);
            result.why = why.or_else(|| self.crowded_out(c, judged)).or_else(|| {
                let dry = self.nodes.dry(spec.budget_group)?;
                Some(format!("its budget group {:?} may run dry before it is done", set.budget_groups[dry].name))
            });
        }
        self.tasks[index] = Some(result);
    }

    fn record_group(&mut self, index: usize, c: &Contender, o: &Outcome, judged: &Judged, why: Option<&str>) -> Supply {
        let set = self.set;
        let mut result = GroupResult { fit: fit(o.fit), exact: o.exact, ..group_result(set, index, judged.test) };
        result.response = o.response;
        if result.fit == Fit::Late {
            result.why = why.map(str::to_owned).or_else(|| self.crowded_out(c, judged));
        }
        let supply = match o.fit {
            Met::Yes => sure(&set.groups[index].server, c, o, judged, self.first[index]),
            Met::No | Met::Unknown => Supply::Nothing,
        };
        result.blackout = Some(supply.time_for(1)).filter(|&t| t != NEVER).map(|t| t - 1);
        // Of several windows the first that is late tells why.
        if self.groups[index].as_ref().is_none_or(|before| before.fit == Fit::Fits) {
            self.groups[index] = Some(result);
        }
        supply
    }

    pub(crate) fn put_task(&mut self, result: TaskResult) {
        let at = result.task;
        self.tasks[at] = Some(result);
    }

    pub(crate) fn put_group(&mut self, result: GroupResult) {
        let at = result.group;
        self.groups[at] = Some(result);
    }

    /// Somebody before it whose releases nothing bounds.
    fn crowded_out(&self, c: &Contender, judged: &Judged) -> Option<String> {
        let by_deadline = judged.test == Test::ProcessorDemand;
        let other = judged.members.iter().find(|o| o.period.is_none() && (by_deadline || o.rank >= c.rank))?;
        let Who::Extra(index) = other.who else { return None };
        let name = &self.set.tasks[index].name;
        Some(format!(
            "task {name:?} is not less important, and nothing bounds how often it is released: give it a group with a \
             server of its own"
        ))
    }
}

/// What a server's group is sure to get, if the server's budget is sure. `first`: when the group may
/// first have something to execute.
fn sure(server: &ServerSpec, c: &Contender, o: &Outcome, judged: &Judged, first: u64) -> Supply {
    match server {
        ServerSpec::Windows { cycle, windows } => Supply::Table(Table::new((*cycle).max(1), windows)),
        ServerSpec::Periodic { budget: 0, .. } => Supply::Nothing,
        ServerSpec::Periodic { period, budget, kind, deadline, .. } => {
            let received = o.response.unwrap_or(*deadline);
            // The budget may be used up as early as possible and the next received as late as possible.
            let gap = period.saturating_sub(*budget);
            let late = received.saturating_sub(*budget);
            let blackout = match kind {
                // It may have lost this period's budget just before.
                ServerKind::Polling => period + late,
                // Under EDF a group that becomes active late in its period may find the rest of its
                // budget crowded out, where intervals so short may fail.
                ServerKind::Deferrable if c.wet.is_some() => period + late,
                ServerKind::Deferrable => gap + late.max(judged.failure.unwrap_or(0).min(*deadline)),
            };
            // The server may begin later than its tasks.
            let begins = c.start.unwrap_or(0).saturating_sub(first).saturating_add(late);
            Supply::Server { blackout: blackout.max(begins), budget: *budget, period: *period }
        }
    }
}

/// The upper band is reached at the promotion: without one in the set, the latest that is in time.
fn promote(given: Option<u64>, c: &Contender, outcome: &mut Outcome) {
    let Some(response) = outcome.response else { return };
    // The policy's own promotion does not count these.
    if given.is_none() && c.stretches.last().is_some_and(|s| s.spin == 0 || c.blocking > 0) {
        *outcome = Outcome::asleep(sleepers::UNPROMOTED);
        return;
    }
    let latest = c.deadline.saturating_sub(response);
    let promotion = given.unwrap_or(latest);
    let response = promotion.saturating_add(response);
    let fit = if response <= c.deadline { Met::Yes } else { Met::No };
    let computed = (given.is_none() && fit == Met::Yes).then_some(latest);
    *outcome = Outcome { fit, response: Some(response), reached: false, promotion: computed, ..*outcome };
}

/// Whether all that are released on a grid begin together.
fn synchronous(members: &[Contender]) -> bool {
    let mut starts = members.iter().filter_map(|c| c.start);
    let first = starts.next();
    starts.all(|start| Some(start) == first)
}

fn fit(met: Met) -> Fit {
    match met {
        Met::Yes => Fit::Fits,
        Met::No => Fit::Late,
        Met::Unknown => Fit::NotComputed,
    }
}

/// Why a budget cannot be kept to: the host does not enforce it.
fn too_small(budget: u64, costs: &Costs) -> Option<String> {
    let least = costs.least_budget;
    (budget < least).then(|| {
        let (budget, least) = (fmt_ns(budget), fmt_ns(least));
        format!("its budget of {budget} is below {least}, the least that this host enforces")
    })
}

pub(crate) fn task_result(set: &TaskSet, task: usize, test: Test) -> TaskResult {
    let spec = &set.tasks[task];
    TaskResult {
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

pub(crate) fn group_result(set: &TaskSet, group: usize, test: Test) -> GroupResult {
    let spec = &set.groups[group];
    let deadline = match &spec.server {
        ServerSpec::Periodic { deadline, .. } => *deadline,
        ServerSpec::Windows { cycle, .. } => *cycle,
    };
    GroupResult {
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
