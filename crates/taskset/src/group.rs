//! One `[[group]]` or `[[budget_group]]` of a file.

use std::path::Path;

use crate::checks::{self, LEAST_PERIOD};
use crate::duration::{fmt_ns, DURATION_LIMIT};
use crate::format::{BudgetGroup, Cpu, Group, Name};
use crate::problems::Problems;
use crate::tree::{Kind, Member, BUDGET_GROUPS, GROUPS};
use crate::value::{ns, place, At, Span};
use crate::{
    cpus, policy, reclaim, registry, windows, BudgetGroupSpec, DomainId, DomainSpec, GroupSpec,
    PolicySpec,
};
use crate::{ServerKind, ServerSpec};

/// What is found of a group: its place in the tree and elsewhere is found when all are checked.
pub(crate) struct Checked {
    pub(crate) member: Member,
    /// Nothing is wrong with it so far.
    pub(crate) sound: bool,
    pub(crate) policy: Option<PolicySpec>,
    /// Without what the tree adds; `None` when something is missing or at fault.
    pub(crate) spec: Option<GroupSpec>,
}

/// Checks a group by itself; `folder` is that of its file.
pub(crate) fn check(
    group: &Group,
    folder: &Path,
    at: &Span,
    domains: Option<&[DomainSpec]>,
    problems: &mut Problems<'_>,
) -> Checked {
    let before = problems.count();
    let member = member(&GROUPS, at, &group.name, &group.parent, &group.cpu, domains, problems);
    let policy = policy::check(&group.policy, folder, problems);
    reclaim::refuse_in_group(&group.policy, problems);
    let server = server(group, at, problems);
    if problems.count() == before {
        missing(group, at, problems);
    }
    let spec = match (&member.name, &policy, server) {
        (Some(name), Some(policy), Some(server)) => Some(GroupSpec {
            name: name.value.clone(),
            parent: None,
            policy: policy.clone(),
            server,
            priority: group.priority.as_ref().map_or(0, |priority| priority.0),
            budget_group: None,
            domain: DomainId(0),
            line: None,
        }),
        _ => None,
    };
    Checked { member, sound: problems.count() == before, policy, spec }
}

/// Checks a budget group by itself, without what the tree adds.
pub(crate) fn check_budget_group(
    group: &BudgetGroup,
    at: &Span,
    domains: Option<&[DomainSpec]>,
    problems: &mut Problems<'_>,
) -> (Member, Option<BudgetGroupSpec>) {
    let before = problems.count();
    let member =
        member(&BUDGET_GROUPS, at, &group.name, &group.parent, &group.cpu, domains, problems);
    checks::times_at(at, &group.period, &group.budget, &None, problems);
    if problems.count() == before {
        let required = [
            (group.name.is_some(), "a name", "add a name, such as name = \"media\""),
            (
                group.period.is_some(),
                "a period",
                "add the time between replenishments, such as period = \"20ms\"",
            ),
            (
                group.budget.is_some(),
                "a budget",
                "add the execution time that its members share, such as budget = \"5ms\"",
            ),
        ];
        problems.missing(at, &required);
    }
    let spec = match (&member.name, ns(&group.period), ns(&group.budget)) {
        (Some(name), Some(period), Some(budget)) => {
            let (name, domain) = (name.value.clone(), DomainId(0));
            Some(BudgetGroupSpec { name, parent: None, period, budget, domain, line: None })
        }
        _ => None,
    };
    (member, spec)
}

/// What both kinds have in common.
fn member(
    kind: &Kind,
    at: &Span,
    name: &Option<At<Name>>,
    parent: &Option<At<String>>,
    cpu: &Option<At<Cpu>>,
    domains: Option<&[DomainSpec]>,
    problems: &mut Problems<'_>,
) -> Member {
    let name = checks::name_at(kind.called, name, problems);
    let domain = cpus::own(cpu, domains, problems);
    Member { at: at.clone(), name, parent: parent.clone(), domain, names_cpu: cpu.is_some() }
}

/// The keys of the two kinds of server, with the places of those that are given.
fn by_table(group: &Group) -> [(&'static str, Option<&Span>); 2] {
    [("windows", place(&group.windows)), ("cycle", place(&group.cycle))]
}

fn by_period(group: &Group) -> [(&'static str, Option<&Span>); 5] {
    [
        ("period", place(&group.period)),
        ("budget", place(&group.budget)),
        ("deadline", place(&group.deadline)),
        ("offset", place(&group.offset)),
        ("server", place(&group.server)),
    ]
}

fn server(group: &Group, head: &Span, problems: &mut Problems<'_>) -> Option<ServerSpec> {
    let table = by_table(group).into_iter().find(|(_, at)| at.is_some());
    let period = by_period(group).into_iter().find(|(_, at)| at.is_some());
    if let (Some(table), Some(period)) = (table, period) {
        let help = "keep period and budget for a budget each period, or windows and cycle for a \
                    time table";
        problems.one_of(&[table, period], help);
        return None;
    }
    if table.is_some() {
        return time_table(group, problems);
    }
    checks::times_at(head, &group.period, &group.budget, &group.deadline, problems);
    let (period, budget) = (ns(&group.period)?, ns(&group.budget)?);
    let kind = group.server.as_ref().map_or(ServerKind::default(), |server| server.0);
    let deadline = ns(&group.deadline).unwrap_or(period);
    let offset = ns(&group.offset).unwrap_or(0);
    Some(ServerSpec::Periodic { period, budget, deadline, offset, kind })
}

/// Under EDF the server of a group whose file gives no kind has a constant bandwidth.
pub(crate) fn under(above: Option<&PolicySpec>, group: &Group, spec: &mut GroupSpec) {
    let edf = above.is_some_and(|policy| policy.name == registry::EDF.name);
    if let (true, None, ServerSpec::Periodic { kind, .. }) = (edf, &group.server, &mut spec.server)
    {
        *kind = ServerKind::ConstantBandwidth;
    }
}

fn time_table(group: &Group, problems: &mut Problems<'_>) -> Option<ServerSpec> {
    let in_range = ns(&group.cycle).filter(|cycle| (LEAST_PERIOD..DURATION_LIMIT).contains(cycle));
    if let (Some(cycle), None) = (&group.cycle, in_range) {
        let least = fmt_ns(LEAST_PERIOD);
        let cause = format!(
            "cycle {} is less than {least}, the shortest that can be served",
            fmt_ns(cycle.0)
        );
        problems.fault(&cycle.span, cause, format!("make it at least {least}"));
    }
    let windows = windows::check(&group.windows, in_range, "cycle", problems);
    Some(ServerSpec::Windows { cycle: in_range?, windows: windows? })
}

/// Reports the first absent key, at the head of the group.
fn missing(group: &Group, head: &Span, problems: &mut Problems<'_>) {
    let begun = [
        (group.name.is_some(), "a name", "add a name, such as name = \"media\""),
        (
            group.policy.is_some(),
            "a policy",
            "add how its members are scheduled, such as policy = \"edf\"",
        ),
    ];
    if problems.missing(head, &begun) {
        return;
    }
    let given = |keys: &[(&str, Option<&Span>)]| keys.iter().any(|(_, at)| at.is_some());
    if given(&by_table(group)) {
        let windows = "add them, such as windows = [{ start = \"0ms\", length = \"5ms\" }]";
        let cycle = "add the time after which the windows come again, such as cycle = \"10ms\"";
        let required = [
            (group.windows.is_some(), "its windows", windows),
            (group.cycle.is_some(), "its cycle", cycle),
        ];
        problems.missing(head, &required);
    } else if given(&by_period(group)) {
        let period = "add the time between replenishments, such as period = \"20ms\"";
        let budget = "add its execution time per period, such as budget = \"5ms\"";
        let required = [
            (group.period.is_some(), "a period", period),
            (group.budget.is_some(), "a budget", budget),
        ];
        problems.missing(head, &required);
    } else {
        let help = "add period and budget, or windows and cycle";
        problems.fault(head, "it lacks a server: nothing says when it may execute", help);
    }
}
