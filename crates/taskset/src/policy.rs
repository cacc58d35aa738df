//! The key `policy`.

use std::path::Path;

use crate::duration::quote;
use crate::explain::{meant, nearest};
use crate::format::{Policy, PolicyName, PolicyTable};
use crate::objective::checked_releases;
use crate::problems::Problems;
use crate::registry::{load_plugin, names, policies, SERVERS};
use crate::value::{ns, At, Span};
use crate::{
    fair, reclaim, Arrival, GroupSpec, Objective, PolicyInfo, PolicySpec, ReleaseAttributes,
    TaskSpec,
};
use punctual_diagnostic::Diagnostic;

/// Policies of later versions, by the nearest of this one.
const LATER: [(&str, &str); 1] = [("edf", "pfair pd2")];

/// How a set writes a policy with an order.
const WITH_ORDER: &str = "write policy = { name = \"objective\", order = \"finish - budget\" }";

/// Checks the policy of the top of a file in `folder`, or of a group; `None` when it is absent or
/// at fault.
pub(crate) fn check(
    policy: &Option<At<Policy>>,
    folder: &Path,
    problems: &mut Problems<'_>,
) -> Option<PolicySpec> {
    let found = policy.as_ref()?;
    let (at, PolicyName(name), order, quantum, reclaim) = match &found.value {
        Policy::Name(name) => (&found.span, name, &None, &None, &None),
        Policy::Table(table @ PolicyTable { plugin: Some(_), .. }) => {
            return plugin(table, folder, problems)
        }
        Policy::Table(PolicyTable { name: Some(name), order, quantum, reclaim, .. }) => {
            (&name.span, &name.value, order, quantum, reclaim)
        }
        Policy::Table(PolicyTable { name: None, .. }) => {
            problems.fault(
                &found.span,
                "the policy has no name",
                "add its name, policy = { name = \"edf\" }, or policy = { plugin = \"./mine.so\" }",
            );
            return None;
        }
    };
    let info = match known(name) {
        Ok(info) => info,
        Err(texts) => {
            problems.add(at, || texts);
            return None;
        }
    };
    let &PolicyInfo { name, takes_order, takes_weights, .. } = info;
    fair::quantum(name, takes_weights, quantum, problems);
    let reclaim = reclaim::check(info, reclaim, problems);
    match order {
        None if takes_order => {
            problems.fault(at, needs_order(name), WITH_ORDER);
            None
        }
        None => Some(PolicySpec { quantum: ns(quantum), reclaim, ..PolicySpec::named(name) }),
        Some(order) if !takes_order => {
            let cause = format!("the policy {} has an order of its own", quote(name));
            problems.fault_of_key(&order.span, cause, "remove it, or use the policy \"objective\"");
            None
        }
        Some(order) => match Objective::compile(order) {
            Ok(objective) => Some(PolicySpec::objective(objective)),
            Err(fault) => {
                let at = problems.part(&order.span, order, &fault.at);
                problems.fault(&at, format!("order: {}", fault.cause), fault.help);
                None
            }
        },
    }
}

/// Loads the policy of a table that names its file.
fn plugin(table: &PolicyTable, folder: &Path, problems: &mut Problems<'_>) -> Option<PolicySpec> {
    let file = table.plugin.as_ref()?;
    let keys = [
        (table.name.as_ref().map(|name| &name.span), "the name of a plugin's policy is in it"),
        (table.order.as_ref().map(|order| &order.span), "a plugin's policy has its own order"),
        (table.quantum.as_ref().map(|q| &q.span), "a plugin's policy takes no quantum"),
        (table.reclaim.as_ref().map(|r| &r.span), "a plugin's policy does not reclaim"),
    ];
    if let Some((at, cause)) = keys.into_iter().find_map(|(at, cause)| Some((at?, cause))) {
        problems.fault_of_key(at, cause, "remove it");
        return None;
    }
    let path = folder.join(&file.value);
    match load_plugin(&path) {
        Ok(info) => Some(PolicySpec { plugin: Some(path), ..PolicySpec::named(info.name) }),
        Err(Diagnostic { cause, help, .. }) => {
            problems.fault(&file.span, cause, help);
            None
        }
    }
}

fn needs_order(name: &str) -> String {
    format!("the policy {} needs its order", quote(name))
}

/// Checks that the order of a task's policy has a value at its releases.
pub(crate) fn check_task(
    policy: Option<&PolicySpec>,
    task: &TaskSpec,
    duration: Option<u64>,
    at: &Span,
    problems: &mut Problems<'_>,
) {
    let Some(order) = policy.and_then(|policy| policy.order.as_ref()) else { return };
    let attributes = ReleaseAttributes::of_task(task, task.offset);
    let checked = match &task.arrival {
        Arrival::List(times) => order.check(&attributes, times.iter().copied()),
        _ => order.check(&attributes, checked_releases(task.offset, task.period, duration)),
    };
    if let Err(texts) = checked {
        problems.add(at, || texts);
    }
}

/// Checks that the order of the policy above a group has a value for its server.
pub(crate) fn check_group(
    above: Option<&PolicySpec>,
    group: &GroupSpec,
    at: &Span,
    problems: &mut Problems<'_>,
) {
    let Some(order) = above.and_then(|policy| policy.order.as_ref()) else { return };
    if order.uses_release() {
        let cause = format!(
            "the order {} above it uses \"release\" or \"finish\", which its server has not",
            quote(order.text())
        );
        let help = "use period, deadline, budget, priority and offset, or the policy \"edf\" above";
        problems.fault(at, cause, help);
        return;
    }
    for server in ReleaseAttributes::of_servers(group) {
        if let Err(texts) = order.check(&server, [server.offset]) {
            problems.add(at, || texts);
        }
    }
}

/// Refuses a policy that is none by its name alone, with cause and help.
pub(crate) fn alone(name: &str) -> Result<(), (String, String)> {
    if known(name)?.takes_order {
        return Err((needs_order(name), format!("{WITH_ORDER} in the file")));
    }
    Ok(())
}

/// Refuses a policy that this version does not have, with cause and help.
fn known(name: &str) -> Result<&'static PolicyInfo, (String, String)> {
    let all = policies();
    if let Some(info) = all.iter().find(|policy| policy.name == name) {
        return Ok(info);
    }
    let names = names(all);
    let lower = name.to_lowercase();
    if let Some(instead) = meant(&lower, &LATER, &names) {
        let cause =
            format!("this version of Punctual does not have the policy {} yet", quote(name));
        return Err((cause, format!("use {} instead", quote(instead))));
    }
    let cause = format!("unknown policy {}", quote(name));
    if let Some(server) = SERVERS.into_iter().find(|server| is_named(server, &lower)) {
        let server_key = format!("server = {}", quote(server.name));
        let help = match server.tables.contains(&"group") {
            true => format!("give a [[group]] {server_key}, and any policy for its tasks"),
            false => format!("give a [[task]] {server_key}, under \"edf\""),
        };
        return Err((cause, help));
    }
    let aliases: Vec<_> = all.iter().map(|policy| (policy.name, policy.aliases)).collect();
    let help = match meant(&lower, &aliases, &names).or_else(|| nearest(&lower, &names)) {
        Some(meant) => format!("did you mean {}?", quote(meant)),
        None => {
            let quoted: Vec<String> = names.iter().map(|name| quote(name)).collect();
            format!("use one of {}", quoted.join(", "))
        }
    };
    Err((cause, help))
}

/// By its name, or by another one.
fn is_named(info: &PolicyInfo, name: &str) -> bool {
    info.name == name || info.aliases.split_whitespace().any(|alias| alias == name)
}
