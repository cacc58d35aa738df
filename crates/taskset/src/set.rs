//! The checks of a whole file: from what it has to a task set.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::Path;

use crate::duration::quote;
use crate::format::Set;
use crate::problems::{Lines, Problem, Problems};
use crate::recording::Recordings;
use crate::tree::{Tree, BUDGET_GROUPS, GROUPS};
use crate::value::{At, Span};
use crate::{
    cpus, group, policy, registry, server, task, BudgetGroupSpec, DomainSpec, GroupSpec, Overrides,
    PolicySpec, TaskSet, TaskSpec,
};

const NO_TASKS: (&str, &str) = (
    "the set has no tasks",
    "add [[task]] with name, period, budget and one of work, command, pid",
);

/// Checks all of a file. `text` is what it was read from, `file_name` what its errors call it.
///
/// # Errors
/// The first problem in file order.
pub(crate) fn check(
    mut file: Set,
    file_name: &str,
    text: &str,
    mut recordings: Recordings,
    options: &Overrides,
) -> Result<TaskSet, Problem> {
    let mut problems = Problems::new(text);
    for table in file.task.iter_mut().flat_map(|list| &mut list.value) {
        task::apply_role(&mut table.value.0, &options.roles, &mut problems);
    }
    let file = &file;
    let domains = cpus::domains(file, file_name, text, &mut problems);
    let policy = policy::check(&file.policy, recordings.folder(), &mut problems);
    if let Some(duration) = file.duration.as_ref().filter(|duration| duration.0 == 0) {
        let help = "make it longer, or leave it out: the set then runs until all tasks have ended";
        problems.fault(&duration.span, "the duration is 0", help);
    }
    if let Some(empty) = file.task.as_ref().filter(|list| list.is_empty()) {
        problems.add(&empty.span, || NO_TASKS);
    }
    let groups = groups(
        file,
        recordings.folder(),
        domains.as_deref(),
        policy.as_ref(),
        &mut problems,
        &mut Lines::new(text),
    );
    let context = task::Context {
        domains: domains.as_deref(),
        policy: policy.as_ref(),
        groups: &groups.tree,
        group_policies: &groups.policies,
        budget_groups: &groups.budget_tree,
    };
    let mut tasks = Vec::new();
    let (mut names, mut pids) = (HashMap::new(), HashMap::new());
    let mut lines = Lines::new(text);
    for table in file.task.iter().flat_map(|list| list.iter()) {
        let (name, spec) =
            task::check(table, &table.span, &context, &mut recordings, &mut problems);
        if let Some((name, line)) = name.and_then(|name| second(&mut names, name, &problems)) {
            problems.add(&name.span, || {
                let cause = format!("name {} is taken by the task on line {line}", quote(&name));
                (cause, "give each task a name of its own")
            });
        }
        let pid = table.pid.as_ref().filter(|_| !options.recorded);
        let pid = pid.map(|pid| At { span: pid.span.clone(), value: pid.0 });
        if let Some((pid, line)) = pid.and_then(|pid| second(&mut pids, pid, &problems)) {
            problems.add(&pid.span, || {
                let cause =
                    format!("pid {} is adopted by the task on line {line} already", pid.value);
                (cause, "name each process in one task only")
            });
        }
        if let Some(spec) = &spec {
            let duration = file.duration.as_ref().map(|duration| duration.0);
            policy::check_task(
                context.policy_of(spec.group),
                spec,
                duration,
                &table.span,
                &mut problems,
            );
        }
        let line = Some(lines.at(table.span.start));
        tasks.extend(spec.map(|spec| TaskSpec { line, ..spec }));
    }

    // As in a task: absence is reported only where nothing else is wrong.
    if problems.count() == 0 {
        let missing = if file.task.is_none() {
            Some(NO_TASKS)
        } else if domains.is_none() {
            Some(("the set names no CPU", "add a line such as cpu = 1 at the top"))
        } else if policy.is_none() {
            Some((
                "the set names no policy",
                "add policy = \"edf\" at the top (or \"rm\", \"dm\", \"fp\")",
            ))
        } else {
            None
        };
        missing.into_iter().for_each(|texts| problems.add(&(0..0), || texts));
    }
    let Groups { groups, budget_groups, .. } = groups;
    match problems.into_first() {
        Some(first) => Err(first),
        None => {
            let mut set = TaskSet {
                domains: domains.unwrap_or_default(),
                policy: policy.unwrap_or_else(|| PolicySpec::named("")),
                duration: file.duration.as_ref().map(|duration| duration.0),
                tasks,
                groups,
                budget_groups,
            };
            set.apply_weights();
            Ok(set)
        }
    }
}

/// A value that was met before, and the line of the first.
fn second<T: Hash + Eq + Clone>(
    met: &mut HashMap<T, Span>,
    found: At<T>,
    problems: &Problems<'_>,
) -> Option<(At<T>, usize)> {
    match met.get(&found.value) {
        Some(first) => {
            let line = problems.line_if_first(&found.span, first);
            Some((found, line))
        }
        None => {
            met.insert(found.value, found.span);
            None
        }
    }
}

/// The groups and budget groups of a file, and what tasks need to name them.
struct Groups<'d> {
    tree: Tree<'d>,
    policies: Vec<Option<PolicySpec>>,
    groups: Vec<GroupSpec>,
    budget_tree: Tree<'d>,
    budget_groups: Vec<BudgetGroupSpec>,
}

fn groups<'d>(
    file: &Set,
    folder: &Path,
    domains: Option<&'d [DomainSpec]>,
    policy: Option<&PolicySpec>,
    problems: &mut Problems<'_>,
    lines: &mut Lines<'_>,
) -> Groups<'d> {
    let nodes = file.budget_group.iter().flat_map(|list| list.iter());
    let (members, specs): (Vec<_>, Vec<_>) =
        nodes.map(|table| group::check_budget_group(table, &table.span, domains, problems)).unzip();
    let budget_tree = Tree::build(&BUDGET_GROUPS, &members, domains, problems);
    let mut budget_groups = Vec::with_capacity(specs.len());
    for (index, spec) in specs.into_iter().enumerate() {
        let (parent, line) = (budget_tree.parents[index], Some(lines.at(members[index].at.start)));
        if let (Some(spec), Some(domain)) = (spec, budget_tree.domains[index]) {
            budget_groups.push(BudgetGroupSpec { parent, domain, line, ..spec });
        }
    }

    let tables: Vec<_> = file.group.iter().flat_map(|list| list.iter()).collect();
    let checked =
        tables.iter().map(|table| group::check(table, folder, &table.span, domains, problems));
    let (members, rest): (Vec<_>, Vec<_>) =
        checked.map(|group| (group.member, (group.spec, group.policy, group.sound))).unzip();
    let tree = Tree::build(&GROUPS, &members, domains, problems);
    let policies: Vec<Option<PolicySpec>> =
        rest.iter().map(|(_, policy, _)| policy.clone()).collect();
    let mut groups = Vec::with_capacity(rest.len());
    for (index, (spec, _, sound)) in rest.into_iter().enumerate() {
        let (table, domain, parent) = (tables[index], tree.domains[index], tree.parents[index]);
        let budget_group = table.budget_group.as_ref().and_then(|name| {
            let node = budget_tree.find("budget_group", name, problems)?;
            budget_tree.same_domain(&name.span, node, domain, problems);
            Some(node)
        });
        let above = parent.map_or(policy, |parent| policies[parent].as_ref());
        if sound {
            server::of_group(table, above, problems);
        }
        if let Some(above) = above.filter(|above| sound && above.takes_weights()) {
            let at = table.parent.as_ref().map_or(&table.span, |parent| &parent.span);
            let cause = format!("the policy {} above it schedules tasks only", quote(&above.name));
            problems.fault(at, cause, "give it another parent, or \"edf\" to the one above");
        }
        if sound && table.priority.is_none() && above.is_some_and(|p| p.name == registry::FP.name) {
            let help = "add priority = 1 (larger is more important)";
            problems.fault(&table.span, "the policy \"fp\" above it needs its priority", help);
        }
        let line = Some(lines.at(table.span.start));
        if let (Some(mut spec), Some(domain)) = (spec, domain) {
            group::under(above, table, &mut spec);
            policy::check_group(above, &spec, &table.span, problems);
            groups.push(GroupSpec { parent, budget_group, domain, line, ..spec });
        }
    }
    Groups { tree, policies, groups, budget_tree, budget_groups }
}
