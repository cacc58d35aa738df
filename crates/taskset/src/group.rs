//! One `[[group]]` or `[[budget_group]]` of a file.

use toml::de::DeTable;

use crate::checks::{self, Field, LEAST_PERIOD};
use crate::duration::{fmt_ns, quote, DURATION_LIMIT};
use crate::keys::Scope;
use crate::reader::{Problems, Span, Table};
use crate::tree::Member;
use crate::{cpus, policy, windows, BudgetGroupSpec, GroupSpec, PolicySpec, ServerKind, ServerSpec};

/// The keys of a server that has a budget each period.
const PERIODIC: [&str; 5] = ["period", "budget", "deadline", "start", "server"];

const KINDS: [(&str, ServerKind); 2] = [("deferrable", ServerKind::Deferrable), ("polling", ServerKind::Polling)];

/// What could be read of a group: its place in the tree and elsewhere is found when all are read.
pub(crate) struct Read {
    pub(crate) member: Member,
    pub(crate) budget_group: Option<(Span, String)>,
    pub(crate) has_priority: bool,
    /// Nothing is wrong with it so far.
    pub(crate) sound: bool,
    pub(crate) policy: Option<String>,
    /// Without what the tree knows; `None` when something is missing or at fault.
    pub(crate) spec: Option<GroupSpec>,
}

/// Reads the group that is `number`th in its file, counted from 1.
pub(crate) fn read(
    entries: &DeTable<'_>,
    at: Span,
    number: usize,
    cpus: Option<&[u32]>,
    problems: &mut Problems<'_>,
) -> Read {
    let before = problems.count();
    let (table, member) = begin(entries, at, Scope::Group, "group", number, cpus, problems);
    let policy = policy::read(&table, problems);
    let priority = table.integer(problems, "priority", i64::MIN..=i64::MAX);
    let budget_group = reference(&table, "budget_group", problems);
    let server = server(&table, problems);
    if problems.count() == before {
        missing(&table, problems);
    }
    let spec = match (&member.name, &policy, server) {
        (Some((_, name)), Some(policy), Some(server)) => Some(GroupSpec {
            name: name.clone(),
            parent: None,
            policy: PolicySpec { name: policy.clone() },
            server,
            priority: priority.unwrap_or(0),
            budget_group: None,
            cpu: 0,
            line: None,
        }),
        _ => None,
    };
    let sound = problems.count() == before;
    Read { member, budget_group, has_priority: priority.is_some(), sound, policy, spec }
}

/// Reads the budget group that is `number`th in its file, counted from 1, without what the tree knows.
pub(crate) fn read_budget_group(
    entries: &DeTable<'_>,
    at: Span,
    number: usize,
    cpus: Option<&[u32]>,
    problems: &mut Problems<'_>,
) -> (Member, Option<BudgetGroupSpec>) {
    let before = problems.count();
    let (table, member) = begin(entries, at, Scope::BudgetGroup, "budget group", number, cpus, problems);
    let (period, budget, _) = times(&table, problems);
    if problems.count() == before {
        let required = [
            ("name", "a name", "add a name, such as name = \"media\""),
            ("period", "a period", "add the time between replenishments, such as period = \"20ms\""),
            ("budget", "a budget", "add the execution time that its members share, such as budget = \"5ms\""),
        ];
        table.missing(&required, problems);
    }
    let spec = match (&member.name, period, budget) {
        (Some((_, name)), Some(period), Some(budget)) => {
            Some(BudgetGroupSpec { name: name.clone(), parent: None, period, budget, cpu: 0, line: None })
        }
        _ => None,
    };
    (member, spec)
}

/// What both kinds begin with.
fn begin<'a, 'i>(
    entries: &'a DeTable<'i>,
    at: Span,
    scope: Scope,
    called: &str,
    number: usize,
    cpus: Option<&[u32]>,
    problems: &mut Problems<'_>,
) -> (Table<'a, 'i>, Member) {
    let mut table = Table { entries, at: at.clone(), scope, whose: format!("{called} {number}: ") };
    let name = table.name(&format!("a {called}"), problems);
    if let Some((_, name)) = &name {
        table.whose = format!("{called} {}: ", quote(name));
    }
    table.check_keys(problems);
    let parent = reference(&table, "parent", problems);
    let cpu = cpus::own(&table, cpus, problems);
    let says_cpu = table.get("cpu").is_some();
    let member = Member { at, whose: table.whose.clone(), name, parent, cpu, says_cpu };
    (table, member)
}

/// The name of another group.
pub(crate) fn reference(table: &Table<'_, '_>, key: &str, problems: &mut Problems<'_>) -> Option<(Span, String)> {
    let (at, name) = table.string(problems, key, "media")?;
    Some((at, name.to_owned()))
}

/// Period, budget and deadline, checked against each other.
fn times(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> (Option<u64>, Option<u64>, Option<u64>) {
    let period = table.duration(problems, "period");
    let budget = table.duration(problems, "budget");
    let deadline = table.duration(problems, "deadline");
    for (field, cause, help) in checks::times(period, budget, deadline) {
        let key = match field {
            Field::Period => "period",
            Field::Budget => "budget",
            Field::Deadline => "deadline",
        };
        let at = table.get(key).map_or(table.at.clone(), |found| found.at);
        table.fault(problems, &at, cause, help);
    }
    (period, budget, deadline)
}

fn server(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<ServerSpec> {
    let by_table = ["windows", "cycle"].into_iter().find_map(|key| Some((key, table.get(key)?)));
    let by_period = PERIODIC.into_iter().find_map(|key| Some((key, table.get(key)?)));
    match (by_table, by_period) {
        (Some((one, first)), Some((other, second))) => {
            let (later, at, earlier) =
                if first.key.start > second.key.start { (one, first.key, other) } else { (other, second.key, one) };
            let cause = format!("{later} is given, and {earlier} as well");
            let help = "keep period and budget for a budget each period, or windows and cycle for a time table";
            table.fault(problems, &at, cause, help);
            None
        }
        (Some(_), None) => time_table(table, problems),
        (None, _) => periodic(table, problems),
    }
}

fn periodic(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<ServerSpec> {
    let (period, budget, deadline) = times(table, problems);
    let start = table.duration(problems, "start").unwrap_or(0);
    let kind = table.one_of(problems, "server", "kind of server", &KINDS);
    let (period, budget) = (period?, budget?);
    Some(ServerSpec::Periodic { period, budget, deadline: deadline.unwrap_or(period), start, kind })
}

fn time_table(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<ServerSpec> {
    let cycle = table.duration(problems, "cycle");
    let in_range = cycle.filter(|cycle| (LEAST_PERIOD..DURATION_LIMIT).contains(cycle));
    if let (Some(ns), None, Some(found)) = (cycle, in_range, table.get("cycle")) {
        let least = fmt_ns(LEAST_PERIOD);
        let cause = format!("cycle {} is less than {least}, the shortest that can be served", fmt_ns(ns));
        table.fault(problems, &found.at, cause, format!("make it at least {least}"));
    }
    let windows = windows::read(table, in_range, "cycle", problems);
    Some(ServerSpec::Windows { cycle: in_range?, windows: windows? })
}

/// Reports the first absent key, at the head of the group.
fn missing(table: &Table<'_, '_>, problems: &mut Problems<'_>) {
    let begun = [
        ("name", "a name", "add a name, such as name = \"media\""),
        ("policy", "a policy", "add how its members are scheduled, such as policy = \"edf\""),
    ];
    if table.missing(&begun, problems) {
        return;
    }
    let given = |key| table.get(key).is_some();
    let by_table = [
        ("windows", "its windows", "add them, such as windows = [{ start = \"0ms\", length = \"5ms\" }]"),
        ("cycle", "its cycle", "add the time after which the windows come again, such as cycle = \"10ms\""),
    ];
    let by_period = [
        ("period", "a period", "add the time between replenishments, such as period = \"20ms\""),
        ("budget", "a budget", "add its execution time per period, such as budget = \"5ms\""),
    ];
    if given("windows") || given("cycle") {
        table.missing(&by_table, problems);
    } else if PERIODIC.into_iter().any(given) {
        table.missing(&by_period, problems);
    } else {
        let help = "add period and budget, or windows and cycle";
        table.fault(problems, &table.at, "it lacks a server: nothing says when it may execute", help);
    }
}
