//! The top of a file: which CPUs, which policy, how long, and the lists of groups and tasks.

use std::collections::HashMap;

use toml::de::{DeTable, DeValue};

use crate::duration::quote;
use crate::keys::Scope;
use crate::reader::{kind, Found, Lines, Problems, Span, Table};
use crate::recording::Recordings;
use crate::tree::{self, Tree};
use crate::{cpus, group, policy, task};
use crate::{error, Body, BudgetGroupSpec, GroupSpec, PolicySpec, TaskSet, TaskSpec};
use punctual_diagnostic::Diagnostic;

/// Reads a whole file that is TOML.
pub(crate) fn read(entries: &DeTable<'_>, file: &str, text: &str) -> Result<TaskSet, Diagnostic> {
    let mut problems = Problems::new(file, text);
    let top = Table { entries, at: 0..0, scope: Scope::Top, whose: String::new() };
    top.check_keys(&mut problems);
    let tables = tables(&top, "task", &mut problems);
    if let (true, Some(found)) = (tables.is_empty(), top.get("task").filter(|found| empty(found))) {
        let help = "add [[task]] with name, period, budget and one of work, command, pid";
        top.fault(&mut problems, &found.at, "the set has no tasks", help);
    }
    let cpus = cpus::read(&top, &mut problems);
    let domain = cpus::domain(&top, cpus.as_deref(), &mut problems);
    let policy = policy::read(&top, &mut problems);
    let duration = top.duration(&mut problems, "duration");
    if let (Some(0), Some(found)) = (duration, top.get("duration")) {
        let help = "make it longer, or leave it out: the set then runs until all tasks have ended";
        top.fault(&mut problems, &found.at, "the duration is 0", help);
    }

    let groups = groups(&top, cpus.as_deref(), policy.as_deref(), text, &mut problems);
    let context = task::Context {
        cpus: cpus.as_deref(),
        policy: policy.as_deref(),
        groups: &groups.tree,
        group_policies: &groups.policies,
        budget_groups: &groups.budget_tree,
    };
    let mut recordings = Recordings::beside(file);
    let mut tasks = Vec::with_capacity(tables.len());
    let mut names: HashMap<String, Span> = HashMap::new();
    let mut pids: HashMap<i32, Span> = HashMap::new();
    let mut lines = Lines::new(text);
    for (number, (at, entries)) in tables.into_iter().enumerate() {
        let line = lines.at(at.start);
        let read = task::read(entries, at, number + 1, &context, &mut recordings, &mut problems);
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
            groups: groups.groups,
            budget_groups: groups.budget_groups,
        }),
        (Some(error), _, _) => Err(error),
        // Unreachable as long as every value that is missing has its problem; an error all the same.
        (None, _, _) => Err(error::whole(file, "the set is incomplete", "compare it with docs/task-set.md")),
    }
}

/// Reports the first absent key of the top.
fn missing(top: &Table<'_, '_>, problems: &mut Problems<'_>) {
    let (cause, help) = if top.get("task").is_none() {
        ("the set has no tasks", "add [[task]] with name, period, budget and one of work, command, pid")
    } else if top.get("cpu").is_none() && top.get("cpus").is_none() {
        ("the set names no CPU", "add a line such as cpu = 1 at the top")
    } else if top.get("policy").is_none() {
        ("the set names no policy", "add policy = \"edf\" at the top (or \"rm\", \"dm\", \"fp\")")
    } else {
        return;
    };
    top.fault(problems, &top.at, cause, help);
}

/// The groups and budget groups of a file, and what tasks must know to name them.
struct Groups {
    tree: Tree,
    policies: Vec<Option<String>>,
    groups: Vec<GroupSpec>,
    budget_tree: Tree,
    budget_groups: Vec<BudgetGroupSpec>,
}

fn groups(
    top: &Table<'_, '_>,
    cpus: Option<&[u32]>,
    policy: Option<&str>,
    text: &str,
    problems: &mut Problems<'_>,
) -> Groups {
    let mut lines = Lines::new(text);
    let mut members = Vec::new();
    let mut nodes = Vec::new();
    for (number, (at, entries)) in tables(top, "budget_group", problems).into_iter().enumerate() {
        let line = lines.at(at.start);
        let (member, spec) = group::read_budget_group(entries, at, number + 1, cpus, problems);
        members.push(member);
        nodes.push(spec.map(|spec| BudgetGroupSpec { line: Some(line), ..spec }));
    }
    let budget_tree = Tree::build(&tree::BUDGET_GROUPS, &members, cpus, problems);
    let budget_groups = nodes.into_iter().enumerate().filter_map(|(index, spec)| {
        let cpu = budget_tree.cpus[index]?;
        Some(BudgetGroupSpec { parent: budget_tree.parents[index], cpu, ..spec? })
    });
    let budget_groups = budget_groups.collect();

    let mut members = Vec::new();
    let mut rest = Vec::new();
    for (number, (at, entries)) in tables(top, "group", problems).into_iter().enumerate() {
        let line = lines.at(at.start);
        let mut read = group::read(entries, at, number + 1, cpus, problems);
        read.spec = read.spec.map(|spec| GroupSpec { line: Some(line), ..spec });
        members.push(read.member);
        rest.push((read.spec, read.policy, read.budget_group, read.sound && !read.has_priority));
    }
    let tree = Tree::build(&tree::GROUPS, &members, cpus, problems);
    let policies: Vec<Option<String>> = rest.iter_mut().map(|(_, policy, _, _)| policy.take()).collect();
    let mut groups = Vec::with_capacity(rest.len());
    for (index, (spec, _, node, no_priority)) in rest.into_iter().enumerate() {
        let (member, cpu) = (&members[index], tree.cpus[index]);
        let budget_group = node.and_then(|(at, name)| {
            let node = budget_tree.find(&member.whose, "budget_group", &at, &name, problems)?;
            budget_tree.same_cpu(&member.whose, &at, node, cpu, problems);
            Some(node)
        });
        let above = match tree.parents[index] {
            Some(parent) => policies[parent].as_deref(),
            None => policy,
        };
        if no_priority && above == Some("fp") {
            problems.add(&member.at, || {
                let cause = format!("{}the policy \"fp\" above it needs its priority", member.whose);
                (cause, "add priority = 1 (larger is more important)".to_owned())
            });
        }
        if let (Some(spec), Some(cpu)) = (spec, cpu) {
            groups.push(GroupSpec { parent: tree.parents[index], budget_group, cpu, ..spec });
        }
    }
    Groups { tree, policies, groups, budget_tree, budget_groups }
}

/// The tables under `[[task]]`, `[[group]]` or `[[budget_group]]`, each with its place.
fn tables<'a, 'i>(top: &Table<'a, 'i>, key: &str, problems: &mut Problems<'_>) -> Vec<(Span, &'a DeTable<'i>)> {
    let Some(found) = top.get(key) else {
        return Vec::new();
    };
    let called = key.replace('_', " ");
    let DeValue::Array(list) = found.value else {
        let help = format!("write [[{key}]] in double brackets, once per {called}");
        top.wrong_type(problems, key, &found, "a list of tables", help);
        return Vec::new();
    };
    let mut tables = Vec::with_capacity(list.len());
    for (number, element) in list.iter().enumerate() {
        match element.get_ref() {
            DeValue::Table(table) => tables.push((element.span(), table)),
            other => {
                let cause = format!("{called} {} is {}, not a table", number + 1, kind(other));
                let help = format!("describe each {called} below a [[{key}]] line");
                top.fault(problems, &element.span(), cause, help);
            }
        }
    }
    tables
}

fn empty(found: &Found<'_, '_>) -> bool {
    matches!(found.value, DeValue::Array(list) if list.is_empty())
}
