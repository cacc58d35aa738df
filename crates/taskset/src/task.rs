//! One `[[task]]` of a file.

use crate::duration::fmt_ns;
use crate::format::Task;
use crate::problems::Problems;
use crate::recording::Recordings;
use crate::tree::Tree;
use crate::value::{ns, At, Duration, Span, Time, Word};
use crate::{arrival, checks, cpus, fair, registry, server, windows, work, DomainId, DomainSpec};
use crate::{Overrun, PolicySpec, RoleFolders, TaskSpec};

/// What a task needs of the rest of its file; `None` is at fault there already.
pub(crate) struct Context<'a> {
    pub(crate) domains: Option<&'a [DomainSpec]>,
    /// The policy of group 0.
    pub(crate) policy: Option<&'a PolicySpec>,
    pub(crate) groups: &'a Tree<'a>,
    /// The policy of each group.
    pub(crate) group_policies: &'a [Option<PolicySpec>],
    pub(crate) budget_groups: &'a Tree<'a>,
}

impl<'a> Context<'a> {
    /// The policy of a group; `None`: of group 0.
    pub(crate) fn policy_of(&self, group: Option<usize>) -> Option<&'a PolicySpec> {
        match group {
            Some(group) => self.group_policies[group].as_ref(),
            None => self.policy,
        }
    }
}

/// Gives a task what it has not itself of the role that it names, at the place of that name.
pub(crate) fn apply_role(task: &mut Task, folders: &RoleFolders, problems: &mut Problems<'_>) {
    let Some(At { span, value: name }) = &task.role else { return };
    let role = match folders.find(name) {
        Ok(role) => role,
        Err(error) => {
            let place = error.place().map_or_else(String::new, |place| format!("{place}: "));
            problems.fault(span, place + &error.cause, error.help);
            return;
        }
    };
    let at = |ns| At { span: span.clone(), value: Time(ns) };
    let overrun = role.overrun.map(|word| At { span: span.clone(), value: Word(word) });
    task.period.get_or_insert(at(role.period));
    task.budget.get_or_insert(at(role.budget));
    task.deadline = task.deadline.take().or(role.deadline.map(at));
    task.overrun = task.overrun.take().or(overrun);
}

/// The role of a task that has no value of its own beside it: what [`apply_role`] gives has the
/// place of the role.
fn whole_role(task: &Task) -> Option<String> {
    let At { span, value: name } = task.role.as_ref()?;
    let times = [&task.period, &task.budget, &task.deadline];
    let own = times.into_iter().flatten().any(|time| time.span != *span);
    let own_overrun = task.overrun.as_ref().is_some_and(|overrun| overrun.span != *span);
    (!own && !own_overrun).then(|| name.clone())
}

/// Checks a task: its name, and the whole of it, when they are not at fault.
pub(crate) fn check(
    task: &Task,
    at: &Span,
    context: &Context<'_>,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> (Option<At<String>>, Option<TaskSpec>) {
    let before = problems.count();
    let name = checks::name_at("task", &task.name, problems);
    times(task, at, problems);
    let arrival = arrival::check(task, problems);
    let place = place(task, context, problems);
    let policy = context.policy_of(place.group);
    if !policy.is_some_and(PolicySpec::takes_weights) {
        server::of_task(task, policy, problems);
    }
    let weight = fair::weight(task, policy, problems);
    let windows = windows::check(&task.windows, ns(&task.period), "period", problems);
    let body = work::check(task, recordings, problems);
    // Something absent is reported only for a task with nothing else wrong.
    if problems.count() == before {
        missing(task, at, context, &place, problems);
    }
    // The period follows from all weights of the group.
    let quantum = policy.filter(|_| weight.is_some()).map(PolicySpec::quantum_ns);
    let (period, budget) = (quantum.or(ns(&task.period)), quantum.or(ns(&task.budget)));
    let spec = match (&name, period, budget, place.domain, body) {
        (Some(name), Some(period), Some(budget), Some(domain), Some(body)) => Some(TaskSpec {
            deadline: ns(&task.deadline).unwrap_or(period),
            offset: ns(&task.offset).unwrap_or(0),
            priority: task.priority.as_ref().map_or(0, |priority| priority.0),
            arrival,
            group: place.group,
            weight,
            budget_group: place.budget_group,
            server: task.server.as_ref().map(|server| server.0),
            min_budget: ns(&task.min_budget),
            promotion: ns(&task.promotion),
            mandatory: ns(&task.mandatory),
            windows: windows.unwrap_or_default(),
            jitter: ns(&task.jitter).unwrap_or(0),
            blocking: ns(&task.blocking).unwrap_or(0),
            domain,
            overrun: task.overrun.as_ref().map_or(Overrun::default(), |overrun| overrun.0),
            role: whole_role(task),
            ..TaskSpec::new(&name.value, period, budget, body)
        }),
        _ => None,
    };
    (name, spec)
}

fn times(task: &Task, head: &Span, problems: &mut Problems<'_>) {
    checks::times_at(head, &task.period, &task.budget, &task.deadline, problems);
    let within = |time: &Option<At<Duration>>, limit: Option<u64>| {
        let (time, limit) = (time.as_ref()?, limit?);
        (time.0 >= limit).then(|| (time.span.clone(), fmt_ns(time.0), fmt_ns(limit)))
    };
    if let Some((at, promotion, deadline)) =
        within(&task.promotion, ns(&task.deadline).or(ns(&task.period)))
    {
        let cause = format!("promotion {promotion} is not before its deadline {deadline}");
        problems.fault(
            &at,
            cause,
            "promote it earlier, or leave it out: the policy computes the latest",
        );
    }
    if let Some((at, jitter, period)) = within(&task.jitter, ns(&task.period)) {
        let cause = format!("jitter {jitter} is not below its period {period}");
        problems.fault(&at, cause, "make it less than the period");
    }
    if let Some(mandatory) = &task.mandatory {
        if mandatory.0 == 0 {
            let help = "make it at least 1ns, or leave it out: all of the budget is then mandatory";
            problems.fault(&mandatory.span, "the mandatory part is 0", help);
        }
        if let Some(budget) = ns(&task.budget).filter(|&budget| mandatory.0 > budget) {
            let cause = format!(
                "mandatory {} is more than its budget {}",
                fmt_ns(mandatory.0),
                fmt_ns(budget)
            );
            problems.fault(
                &mandatory.span,
                cause,
                "make it at most the budget: it is a part of it",
            );
        }
    }
}

/// Where a task runs, as far as that is not at fault.
struct Place {
    group: Option<usize>,
    budget_group: Option<usize>,
    domain: Option<DomainId>,
}

/// A task's domain is that of its CPU, else its group's, else the only one of the set.
fn place(task: &Task, context: &Context<'_>, problems: &mut Problems<'_>) -> Place {
    let mut named = |tree: &Tree<'_>, key: &str, name: &Option<At<String>>| {
        tree.find(key, name.as_ref()?, problems)
    };
    let group = named(context.groups, "group", &task.group);
    let budget_group = named(context.budget_groups, "budget_group", &task.budget_group);
    let own = cpus::own(&task.cpu, context.domains, problems);
    let domain = match (&task.cpu, group) {
        (Some(_), _) => own,
        (None, Some(group)) => context.groups.domains[group],
        (None, None) => cpus::only(context.domains),
    };
    if let (Some(name), Some(group)) = (&task.group, group) {
        context.groups.same_domain(&name.span, group, domain, problems);
    }
    if let (Some(name), Some(node)) = (&task.budget_group, budget_group) {
        context.budget_groups.same_domain(&name.span, node, domain, problems);
    }
    Place { group, budget_group, domain }
}

/// Reports the first absent key, at the head of the task.
fn missing(
    task: &Task,
    head: &Span,
    context: &Context<'_>,
    place: &Place,
    problems: &mut Problems<'_>,
) {
    let period = "add the time between its releases, such as period = \"20ms\"";
    let budget = "add the execution time it may use per period, such as budget = \"5ms\"";
    let policy = context.policy_of(place.group);
    let shares = policy.is_some_and(PolicySpec::takes_weights);
    // Where the role is at fault, that is reported.
    let by_role = task.role.is_some();
    let weight = "add its part beside those of the other tasks, such as weight = 1";
    let required = [
        (task.name.is_some(), "a name", "add a name, such as name = \"servo\""),
        (shares || by_role || task.period.is_some(), "a period", period),
        (shares || by_role || task.budget.is_some(), "a budget", budget),
        (!shares || task.weight.is_some(), "a weight", weight),
    ];
    if problems.missing(head, &required) {
        return;
    }
    let by_priority = policy.is_some_and(|policy| policy.name == registry::FP.name);
    if task.work.is_none() && task.command.is_none() && task.pid.is_none() {
        let help = "add one of work = { spin = \"1ms\" }, command = [\"program\"], pid = 1234";
        problems.fault(head, "it lacks the work to execute", help);
    } else if by_priority && task.priority.is_none() {
        let help = "add priority = 1 (larger is more important), or use \"rm\", \"dm\" or \"edf\"";
        problems.fault(head, "the policy \"fp\" needs its priority", help);
    } else if place.domain.is_none() && place.group.is_none() {
        cpus::refuse_unnamed(context.domains, head, problems);
    }
}
