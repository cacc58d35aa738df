//! Other policies for a set that runs: what a file may change, and whether the set still fits.

use punctual_diagnostic::Diagnostic;
use punctual_taskset::{GroupSpec, PolicySpec, ServerSpec, TaskSet, TaskSpec};

use crate::results::PolicyChange;
use crate::{HostKind, Session};

/// What a running set becomes by a file that was read again.
#[derive(Debug, Clone)]
pub struct ChangedPolicies {
    /// As it will run: admitted.
    pub set: TaskSet,
    /// It does not fit, and runs because the caller insists.
    pub overload: bool,
}

/// The running set with the policies of `read`, admitted as the set itself was; `None` if no policy
/// is another one. `file` is the set as its file had it before, `running` as it runs: its budgets
/// may have been changed since. The caller then gives the result to
/// [`RunningSet::swap_policies`](crate::RunningSet::swap_policies).
///
/// # Errors
/// `read` differs from `file` in anything but policies; a policy or the host does not support the
/// set; the set would not fit any more, and not `overload`.
pub fn with_policies(
    running: &TaskSet,
    file: &TaskSet,
    read: &TaskSet,
    host: HostKind,
    overload: bool,
) -> Result<Option<ChangedPolicies>, Diagnostic> {
    if let Some(found) = difference(file, read) {
        return Err(found);
    }
    if changes(file, read, 0).is_empty() {
        return Ok(None);
    }
    let mut changed = read.clone();
    for (task, now) in changed.tasks.iter_mut().zip(&running.tasks) {
        task.budget = now.budget;
    }
    let admitted = Session::of_running(changed, host)?.admit(overload)?;
    let overload = admitted.is_overload();
    Ok(Some(ChangedPolicies { set: admitted.set().clone(), overload }))
}

/// The policies that differ between two sets with the same groups; the swap was at `at_ns` from the
/// start of the run.
pub(crate) fn changes(from: &TaskSet, to: &TaskSet, at_ns: u64) -> Vec<PolicyChange> {
    let groups = (0..from.groups.len()).map(Some);
    let differ = |group: &Option<usize>| from.policy_of(*group) != to.policy_of(*group);
    let change = |group: Option<usize>| PolicyChange {
        at_ns,
        group: group.map(|group| from.groups[group].name.clone()),
        from: described(from.policy_of(group)),
        to: described(to.policy_of(group)),
        cause: None,
    };
    [None].into_iter().chain(groups).filter(differ).map(change).collect()
}

/// A policy's name, with its order or its option where it has one.
fn described(policy: &PolicySpec) -> String {
    match (&policy.order, policy.reclaim) {
        (Some(order), _) => format!("{} ({})", policy.name, order.text()),
        (None, true) => format!("{} (reclaim)", policy.name),
        (None, false) => policy.name.clone(),
    }
}

const HELP: &str = "a reload changes policies alone: undo this change, or start the set again";

fn refused(place: &str, line: Option<u32>, what: &str, help: &str) -> Diagnostic {
    let line = line.map_or_else(String::new, |line| format!(", line {line}"));
    Diagnostic::usage(format!("{place}{line}: {what}"), help)
}

/// What of two sets is not the same, policies apart.
fn difference(file: &TaskSet, read: &TaskSet) -> Option<Diagnostic> {
    let of_set = |what: &str| Some(refused("the set", None, what, HELP));
    let cpus = |set: &TaskSet| set.domains.iter().map(|d| d.cpus.clone()).collect::<Vec<_>>();
    if cpus(file) != cpus(read) {
        return of_set("its CPUs are not those of the running set");
    }
    if file.duration != read.duration {
        return of_set("its duration is not that of the running set");
    }
    let tasks = file.tasks.iter().map(|t| &t.name).eq(read.tasks.iter().map(|t| &t.name));
    let groups = file.groups.iter().map(|g| &g.name).eq(read.groups.iter().map(|g| &g.name));
    if !tasks || !groups {
        return of_set("its tasks and groups are not those of the running set, in the same order");
    }
    let groups = (0..read.groups.len()).map(Some);
    let of_policy = |group: Option<usize>| {
        let (a, b) = (file.policy_of(group), read.policy_of(group));
        let weighted = a.takes_weights() && b.takes_weights();
        let (place, line) = match group {
            None => ("the policy".to_owned(), None),
            Some(g) => (format!("group \"{}\"", read.groups[g].name), read.groups[g].line),
        };
        let what = "its quantum is not that of the running set";
        (weighted && a.quantum_ns() != b.quantum_ns()).then(|| refused(&place, line, what, HELP))
    };
    if let Some(found) = [None].into_iter().chain(groups).find_map(of_policy) {
        return Some(found);
    }
    let of_task = |(a, b): (&TaskSpec, &TaskSpec)| {
        let what = format!("its {} is not that of the running set", task_key(a, b)?);
        Some(refused(&format!("task \"{}\"", b.name), b.line, &what, HELP))
    };
    let of_group = |(a, b): (&GroupSpec, &GroupSpec)| {
        let (key, help) = group_key(a, b)?;
        let what = format!("its {key} is not that of the running set");
        Some(refused(&format!("group \"{}\"", b.name), b.line, &what, help))
    };
    let found = file.tasks.iter().zip(&read.tasks).find_map(of_task);
    found.or_else(|| file.groups.iter().zip(&read.groups).find_map(of_group)).or_else(|| {
        let nodes = |set: &TaskSet| {
            let mut nodes = set.budget_groups.clone();
            nodes.iter_mut().for_each(|node| node.line = None);
            nodes
        };
        if nodes(file) == nodes(read) {
            return None;
        }
        of_set("its budget groups are not those of the running set")
    })
}

fn task_key(a: &TaskSpec, b: &TaskSpec) -> Option<&'static str> {
    let mut b = TaskSpec { line: a.line, ..b.clone() };
    if a.weight.is_some() && b.weight.is_some() {
        // They follow from all weights of the group.
        (b.period, b.budget, b.deadline) = (a.period, a.budget, a.deadline);
    }
    let keys = [
        ("weight", a.weight == b.weight),
        ("period", a.period == b.period),
        ("budget", a.budget == b.budget),
        ("min_budget", a.min_budget == b.min_budget),
        ("deadline", a.deadline == b.deadline),
        ("offset", a.offset == b.offset),
        ("priority", a.priority == b.priority),
        ("arrival", a.arrival == b.arrival),
        ("group", a.group == b.group),
        ("budget group", a.budget_group == b.budget_group),
        ("server", a.server == b.server),
        ("promotion", a.promotion == b.promotion),
        ("mandatory part", a.mandatory == b.mandatory),
        ("CPU", a.domain == b.domain),
        ("overrun policy", a.overrun == b.overrun),
        ("work", a.body == b.body),
    ];
    let first = keys.into_iter().find(|(_, same)| !same).map(|(key, _)| key);
    first.or_else(|| (b != *a).then_some("description"))
}

/// The key, and what helps.
fn group_key(a: &GroupSpec, b: &GroupSpec) -> Option<(&'static str, &'static str)> {
    let kind = |server: &ServerSpec| match server {
        ServerSpec::Periodic { kind, .. } => Some(*kind),
        ServerSpec::Windows { .. } => None,
    };
    if kind(&a.server) != kind(&b.server) {
        return Some((
            "server",
            "without the key \"server\" it follows from the policy above: write it with the value \
             that the running set has; or start the set again",
        ));
    }
    let keys = [
        ("parent", a.parent == b.parent),
        ("server", a.server == b.server),
        ("priority", a.priority == b.priority),
        ("budget group", a.budget_group == b.budget_group),
        ("CPU", a.domain == b.domain),
    ];
    keys.into_iter().find(|(_, same)| !same).map(|(key, _)| (key, HELP))
}

#[cfg(test)]
#[path = "policy_change/tests.rs"]
mod tests;
