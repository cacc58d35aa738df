//! One `[[task]]` of a file.

use toml::de::DeTable;

use crate::checks::{self, Field};
use crate::duration::{fmt_ns, quote};
use crate::keys::Scope;
use crate::reader::{Problems, Span, Table};
use crate::recording::Recordings;
use crate::tree::Tree;
use crate::{arrival, body, cpus, group, windows, Body, Overrun, TaskSpec};

/// What a task needs to know of the rest of its file; `None` is at fault there already.
pub(crate) struct Context<'a> {
    pub(crate) cpus: Option<&'a [u32]>,
    /// The policy of group 0.
    pub(crate) policy: Option<&'a str>,
    pub(crate) groups: &'a Tree,
    /// The policy of each group.
    pub(crate) group_policies: &'a [Option<String>],
    pub(crate) budget_groups: &'a Tree,
}

/// What could be read of a task, for the checks across tasks.
pub(crate) struct Read {
    pub(crate) name: Option<(Span, String)>,
    pub(crate) body_at: Option<Span>,
    pub(crate) body: Option<Body>,
    pub(crate) spec: Option<TaskSpec>,
}

const OVERRUNS: [(&str, Overrun); 4] = [
    ("carry", Overrun::Carry),
    ("skip", Overrun::Skip),
    ("background", Overrun::Background),
    ("signal", Overrun::Signal),
];

/// Reads the task that is `number`th in its file, counted from 1.
pub(crate) fn read(
    entries: &DeTable<'_>,
    at: Span,
    number: usize,
    context: &Context<'_>,
    recordings: &mut Recordings,
    problems: &mut Problems<'_>,
) -> Read {
    let before = problems.count();
    let mut table = Table { entries, at, scope: Scope::Task, whose: format!("task {number}: ") };
    let name = table.name("a task", problems);
    if let Some((_, name)) = &name {
        table.whose = format!("task {}: ", quote(name));
    }
    table.check_keys(problems);

    let times = times(&table, problems);
    let start = table.duration(problems, "start");
    let priority = table.integer(problems, "priority", i64::MIN..=i64::MAX);
    let arrival = arrival::read(&table, times.period, problems);
    let place = place(&table, context, problems);
    let windows = windows::read(&table, times.period, "period", problems);
    let overrun = table.one_of(problems, "overrun", "overrun policy", &OVERRUNS);
    let body = body::read(&table, recordings, problems);
    let body_at = table.get("pid").map(|found| found.at);

    // Something absent is reported only for a task with nothing else wrong: the misspelt key is
    // what the user must see, not the one that is missing because of it.
    if problems.count() == before {
        missing(&table, context, &place, problems);
    }
    let spec = match (&name, times.period, times.budget, place.cpu, &body) {
        (Some((_, name)), Some(period), Some(budget), Some(cpu), Some(body)) => Some(TaskSpec {
            deadline: times.deadline.unwrap_or(period),
            start: start.unwrap_or(0),
            priority: priority.unwrap_or(0),
            arrival,
            group: place.group,
            budget_group: place.budget_group,
            promotion: times.promotion,
            mandatory: times.mandatory,
            windows: windows.unwrap_or_default(),
            jitter: times.jitter.unwrap_or(0),
            blocking: times.blocking.unwrap_or(0),
            cpu,
            overrun,
            ..TaskSpec::new(name, period, budget, body.clone())
        }),
        _ => None,
    };
    Read { name, body_at, body, spec }
}

/// The durations of a task that are checked against each other.
struct Times {
    period: Option<u64>,
    budget: Option<u64>,
    deadline: Option<u64>,
    promotion: Option<u64>,
    mandatory: Option<u64>,
    jitter: Option<u64>,
    blocking: Option<u64>,
}

fn times(table: &Table<'_, '_>, problems: &mut Problems<'_>) -> Times {
    let times = Times {
        period: table.duration(problems, "period"),
        budget: table.duration(problems, "budget"),
        deadline: table.duration(problems, "deadline"),
        promotion: table.duration(problems, "promotion"),
        mandatory: table.duration(problems, "mandatory"),
        jitter: table.duration(problems, "jitter"),
        blocking: table.duration(problems, "blocking"),
    };
    for (field, cause, help) in checks::times(times.period, times.budget, times.deadline) {
        let key = match field {
            Field::Period => "period",
            Field::Budget => "budget",
            Field::Deadline => "deadline",
        };
        let at = table.get(key).map_or(table.at.clone(), |found| found.at);
        table.fault(problems, &at, cause, help);
    }
    let mut refuse = |key: &str, cause: String, help: &str| {
        if let Some(found) = table.get(key) {
            table.fault(problems, &found.at, cause, help);
        }
    };
    if let (Some(promotion), Some(deadline)) = (times.promotion, times.deadline.or(times.period)) {
        if promotion >= deadline {
            let (promotion, deadline) = (fmt_ns(promotion), fmt_ns(deadline));
            let cause = format!("promotion {promotion} is not before its deadline {deadline}");
            refuse("promotion", cause, "promote it earlier, or leave it out: the policy computes the latest");
        }
    }
    match (times.mandatory, times.budget) {
        (Some(0), _) => {
            let help = "make it at least 1ns, or leave it out: all of the budget is then mandatory";
            refuse("mandatory", "the mandatory part is 0".to_owned(), help);
        }
        (Some(mandatory), Some(budget)) if mandatory > budget => {
            let cause = format!("mandatory {} is more than its budget {}", fmt_ns(mandatory), fmt_ns(budget));
            refuse("mandatory", cause, "make it at most the budget: it is a part of it");
        }
        _ => {}
    }
    if let (Some(jitter), Some(period)) = (times.jitter, times.period) {
        if jitter >= period {
            let cause = format!("jitter {} is not below its period {}", fmt_ns(jitter), fmt_ns(period));
            refuse("jitter", cause, "make it less than the period");
        }
    }
    times
}

/// Where a task runs: as far as it can be told.
struct Place {
    group: Option<usize>,
    budget_group: Option<usize>,
    cpu: Option<u32>,
}

/// A task's CPU is its own, else its group's, else the only one of the set.
fn place(table: &Table<'_, '_>, context: &Context<'_>, problems: &mut Problems<'_>) -> Place {
    let named = |tree: &Tree, key: &str, problems: &mut Problems<'_>| {
        let (at, name) = group::reference(table, key, problems)?;
        let index = tree.find(&table.whose, key, &at, &name, problems)?;
        Some((at, index))
    };
    let group = named(context.groups, "group", problems);
    let budget_group = named(context.budget_groups, "budget_group", problems);
    let own = cpus::own(table, context.cpus, problems);
    let cpu = match (&own, table.get("cpu"), &group) {
        (Some((_, cpu)), _, _) => Some(*cpu),
        (None, Some(_), _) => None,
        (None, None, Some((_, group))) => context.groups.cpus[*group],
        (None, None, None) => match context.cpus {
            Some([only]) => Some(*only),
            _ => None,
        },
    };
    if let Some((at, group)) = &group {
        context.groups.same_cpu(&table.whose, at, *group, cpu, problems);
    }
    if let Some((at, node)) = &budget_group {
        context.budget_groups.same_cpu(&table.whose, at, *node, cpu, problems);
    }
    Place { group: group.map(|(_, index)| index), budget_group: budget_group.map(|(_, index)| index), cpu }
}

/// Reports the first absent key, at the head of the task.
fn missing(table: &Table<'_, '_>, context: &Context<'_>, place: &Place, problems: &mut Problems<'_>) {
    let required = [
        ("name", "a name", "add a name, such as name = \"servo\""),
        ("period", "a period", "add the time between its releases, such as period = \"20ms\""),
        ("budget", "a budget", "add the execution time it may use per period, such as budget = \"5ms\""),
    ];
    if table.missing(&required, problems) {
        return;
    }
    let policy = match place.group {
        Some(group) => context.group_policies[group].as_deref(),
        None => context.policy,
    };
    if ["work", "command", "pid"].iter().all(|key| table.get(key).is_none()) {
        let cause = "it says nothing of what to execute";
        let help = "add one of work = { spin = \"1ms\" }, command = [\"program\"], pid = 1234";
        table.fault(problems, &table.at, cause, help);
    } else if policy == Some("fp") && table.get("priority").is_none() {
        let cause = "the policy \"fp\" needs its priority";
        let help = "add priority = 1 (larger is more important), or use \"rm\", \"dm\" or \"edf\"";
        table.fault(problems, &table.at, cause, help);
    } else if let (None, Some((cause, help)), None) = (place.cpu, cpus::unnamed(context.cpus), place.group) {
        table.fault(problems, &table.at, cause, help);
    }
}
