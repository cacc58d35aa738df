//! The top of a file: which CPUs, which policy, how long, and the list of tasks.

use std::collections::HashMap;

use toml::de::{DeTable, DeValue};

use crate::checks::LARGEST_CPU;
use crate::duration::quote;
use crate::keys::{nearest, Scope};
use crate::reader::{kind, Found, Lines, Problems, Span, Table};
use crate::task;
use crate::{Body, Domain, PolicySpec, TaskSet, TaskSetError, TaskSpec};

/// The policies of this version.
pub(crate) const POLICIES: [&str; 4] = ["rm", "dm", "edf", "fp"];

/// Other names of those policies.
const POLICY_ALIASES: [(&str, &str); 9] = [
    ("rate-monotonic", "rm"),
    ("rate_monotonic", "rm"),
    ("rms", "rm"),
    ("deadline-monotonic", "dm"),
    ("deadline_monotonic", "dm"),
    ("earliest-deadline-first", "edf"),
    ("deadline", "edf"),
    ("fixed-priority", "fp"),
    ("fifo", "fp"),
];

/// Policies of later versions, each with the nearest of this one.
const LATER_POLICIES: [(&str, &str); 16] = [
    ("table", "fp"),
    ("time-driven", "fp"),
    ("wfq", "edf"),
    ("cbs", "edf"),
    ("tbs", "edf"),
    ("cus", "edf"),
    ("imprecise", "edf"),
    ("dual", "fp"),
    ("dual-priority", "fp"),
    ("polling", "rm"),
    ("deferrable", "rm"),
    ("sporadic", "rm"),
    ("adaptive", "edf"),
    ("pfair", "edf"),
    ("pd2", "edf"),
    ("share", "edf"),
];

/// Reads a whole file that is TOML.
pub(crate) fn read(entries: &DeTable<'_>, file: &str, text: &str) -> Result<TaskSet, TaskSetError> {
    let mut problems = Problems::new(file, text);
    let top = Table { entries, at: 0..0, scope: Scope::Top, whose: String::new() };
    top.check_keys(&mut problems);
    let tables = task_tables(&top, &mut problems);
    let cpus = cpus(&top, &mut problems);
    let domain = domain(&top, cpus.as_deref(), &mut problems);
    let policy = policy(&top, &mut problems);
    let duration = top.duration(&mut problems, "duration");
    if let (Some(0), Some(found)) = (duration, top.get("duration")) {
        let cure = "make it longer, or leave it out: the set then runs until all tasks have ended";
        top.fault(&mut problems, &found.at, "the duration is 0", cure);
    }

    let context = task::Context { cpus: cpus.as_deref(), policy: policy.as_deref() };
    let mut tasks = Vec::with_capacity(tables.len());
    let mut names: HashMap<String, Span> = HashMap::new();
    let mut pids: HashMap<i32, Span> = HashMap::new();
    let mut lines = Lines::new(text);
    for (number, (at, entries)) in tables.into_iter().enumerate() {
        let line = lines.at(at.start);
        let read = task::read(entries, at, number + 1, &context, &mut problems);
        if let Some((at, name)) = read.name {
            if let Some(first) = names.get(&name) {
                let line = problems.line_if_first(&at, first);
                problems.add(&at, || {
                    let cause = format!("name {} is taken by the task on line {line}", quote(&name));
                    (cause, "give each task a name of its own".to_owned())
                });
            } else {
                names.insert(name, at);
            }
        }
        if let (Some(at), Some(Body::Pid(pid))) = (read.body_at, &read.body) {
            if let Some(first) = pids.get(pid) {
                let line = problems.line_if_first(&at, first);
                problems.add(&at, || {
                    let cause = format!("pid {pid} is adopted by the task on line {line} already");
                    (cause, "name each process in one task only".to_owned())
                });
            } else {
                pids.insert(*pid, at);
            }
        }
        tasks.extend(read.spec.map(|spec| TaskSpec { line: Some(line), ..spec }));
    }

    // As in a task: absence is reported only where nothing else is wrong, for a key that is
    // misspelt or misplaced is the better message.
    if problems.count() == 0 {
        missing(&top, &mut problems);
    }
    match (problems.into_error(), cpus, policy) {
        (None, Some(cpus), Some(policy)) => Ok(TaskSet {
            cpus,
            domain,
            policy: PolicySpec { name: policy },
            duration,
            tasks,
            groups: Vec::new(),
            budget_groups: Vec::new(),
        }),
        (Some(error), _, _) => Err(error),
        // Unreachable as long as every value that is missing has its problem; an error all the same.
        (None, _, _) => Err(TaskSetError::whole(file, "the set is incomplete", "compare it with docs/task-set.md")),
    }
}

/// Reports the first absent key of the top.
fn missing(top: &Table<'_, '_>, problems: &mut Problems<'_>) {
    let (cause, cure) = if top.get("task").is_none() {
        ("the set has no tasks", "add [[task]] with name, period, budget and one of work, command, pid")
    } else if top.get("cpu").is_none() && top.get("cpus").is_none() {
        ("the set names no CPU", "add a line such as cpu = 1 at the top")
    } else if top.get("policy").is_none() {
        ("the set names no policy", "add policy = \"edf\" at the top (or \"rm\", \"dm\", \"fp\")")
    } else {
        return;
    };
    top.fault(problems, &top.at, cause, cure);
}

/// The tables under `[[task]]`, each with its place.
fn task_tables<'a, 'i>(top: &Table<'a, 'i>, problems: &mut Problems<'_>) -> Vec<(Span, &'a DeTable<'i>)> {
    let Some(found) = top.get("task") else {
        return Vec::new();
    };
    let DeValue::Array(list) = found.value else {
        let cure = "write [[task]] in double brackets, once per task";
        top.wrong_type(problems, "task", &found, "a list of tables", cure);
        return Vec::new();
    };
    if list.is_empty() {
        let cure = "add [[task]] with name, period, budget and one of work, command, pid";
        top.fault(problems, &found.at, "the set has no tasks", cure);
    }
    let mut tables = Vec::with_capacity(list.len());
    for (number, element) in list.iter().enumerate() {
        match element.get_ref() {
            DeValue::Table(table) => tables.push((element.span(), table)),
            other => {
                let cause = format!("task {} is {}, not a table", number + 1, kind(other));
                let cure = "describe each task below a [[task]] line";
                top.fault(problems, &element.span(), cause, cure);
            }
        }
    }
    tables
}

/// The CPUs of the set, from `cpu` or `cpus`.
fn cpus(top: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<Vec<u32>> {
    let one = top.get("cpu");
    let many = top.get("cpus");
    match (&one, &many) {
        (None, None) => return None,
        (Some(one), Some(many)) => {
            let later = if one.key.start > many.key.start { one } else { many };
            let cure = "keep cpu for one CPU, or cpus for several";
            top.fault(problems, &later.key, "cpu and cpus are both given", cure);
            return None;
        }
        _ => {}
    }
    if let Some(found) = one {
        if matches!(found.value, DeValue::Array(_)) {
            let cure = "write one number, or use cpus for several";
            top.wrong_type(problems, "cpu", &found, "a whole number", cure);
            return None;
        }
        return top.integer_of(problems, "cpu", &found, 0..=LARGEST_CPU).map(|cpu| vec![cpu]);
    }
    let found = many?;
    let DeValue::Array(list) = found.value else {
        let cure = "write a list such as cpus = [0, 1], or cpu for one CPU";
        top.wrong_type(problems, "cpus", &found, "a list of CPU numbers", cure);
        return None;
    };
    if list.is_empty() {
        let cure = "name at least one, such as cpus = [0, 1]";
        top.fault(problems, &found.at, "the list of CPUs is empty", cure);
        return None;
    }
    let mut cpus = Vec::with_capacity(list.len());
    let mut seen = std::collections::HashSet::new();
    for element in list {
        let found = Found { key: found.key.clone(), at: element.span(), value: element.get_ref() };
        let cpu = top.integer_of(problems, "cpus", &found, 0..=LARGEST_CPU)?;
        if !seen.insert(cpu) {
            let cause = format!("CPU {cpu} is listed twice");
            top.fault(problems, &found.at, cause, "name each CPU once");
            return None;
        }
        cpus.push(cpu);
    }
    Some(cpus)
}

fn domain(top: &Table<'_, '_>, cpus: Option<&[u32]>, problems: &mut Problems<'_>) -> Domain {
    let instead = "use domain = \"partitioned\", and give each task its cpu";
    match top.string(problems, "domain", "partitioned") {
        Some((_, "partitioned")) => {}
        Some((at, "global")) => {
            let cause = "this version of Punctual does not have domain \"global\" yet";
            top.fault(problems, &at, cause, instead);
        }
        Some((at, "clustered")) => {
            let cause = "this version of Punctual does not have domain \"clustered\" yet";
            top.fault(problems, &at, cause, instead);
        }
        Some((at, other)) => {
            let cause = format!("unknown domain {}", quote(other));
            top.fault(problems, &at, cause, instead);
        }
        None => {
            let several = cpus.is_some_and(|cpus| cpus.len() > 1);
            if let (true, None, Some(found)) = (several, top.get("domain"), top.get("cpus")) {
                let cause = "several CPUs are given, but not how they are shared";
                let cure = "add domain = \"partitioned\", and give each task its cpu";
                top.fault(problems, &found.key, cause, cure);
            }
        }
    }
    Domain::Partitioned
}

/// The policy's name; `None` when it is at fault.
fn policy(top: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<String> {
    let found = top.get("policy")?;
    match found.value {
        DeValue::String(name) => known_policy(top, problems, &found.at, name),
        DeValue::Table(entries) => {
            let table = Table { entries, at: found.at.clone(), scope: Scope::Policy, whose: "policy: ".to_owned() };
            let before = problems.count();
            table.check_keys(problems);
            if table.get("name").is_none() && problems.count() == before {
                let cure = "add its name: policy = { name = \"edf\" }";
                top.fault(problems, &found.at, "the policy has no name", cure);
            }
            let (at, name) = table.string(problems, "name", "edf")?;
            known_policy(top, problems, &at, name)
        }
        _ => {
            let cure = "write its name in quotes: policy = \"edf\"";
            top.wrong_type(problems, "policy", &found, "a name", cure);
            None
        }
    }
}

fn known_policy(top: &Table<'_, '_>, problems: &mut Problems<'_>, at: &Span, name: &str) -> Option<String> {
    if POLICIES.contains(&name) {
        return Some(name.to_owned());
    }
    let (cause, cure) = refuse_policy(name);
    top.fault(problems, at, cause, cure);
    None
}

/// The cause and cure for a policy that this version does not have.
pub(crate) fn refuse_policy(name: &str) -> (String, String) {
    let lower = name.to_lowercase();
    if let Some((_, instead)) = LATER_POLICIES.iter().find(|(later, _)| *later == lower) {
        let cause = format!("this version of Punctual does not have the policy {} yet", quote(name));
        return (cause, format!("use {} instead", quote(instead)));
    }
    let cause = format!("unknown policy {}", quote(name));
    let alias = POLICY_ALIASES.iter().find(|(alias, _)| *alias == lower);
    let meant = alias.map(|(_, meant)| *meant).or_else(|| nearest(&lower, &POLICIES));
    let cure = match meant {
        Some(meant) => format!("did you mean {}?", quote(meant)),
        None => "use one of \"rm\", \"dm\", \"edf\", \"fp\"".to_owned(),
    };
    (cause, cure)
}
