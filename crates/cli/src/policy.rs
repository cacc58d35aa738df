//! `punctual policy`: which scheduling policies and kinds of server there are.

use std::fmt::Write;

use punctual_diagnostic::Diagnostic;
use punctual_policies::{Attribute, PolicyEntry, PolicyInfo, SERVERS};
use serde::Serialize;

use crate::args_policy::{List, Show};
use crate::output::Outcome;
use crate::plugin::policy_named;

/// The result of `punctual policy list --json` and `punctual policy show --json`.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PolicyResult {
    /// All, or the one that was asked for.
    policies: Vec<Description>,
}

/// A policy, or a kind of server.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Description {
    /// Its name in task sets.
    name: &'static str,
    /// The key of a task set that takes it.
    key: Key,
    /// Whether the set gives its `order`, in a table beside `name`.
    takes_order: bool,
    /// Whether its tasks have a `weight` in place of `period` and `budget`, and the set may give
    /// its `quantum`, in a table beside `name`.
    takes_weights: bool,
    /// Whether its tasks may reclaim unused budget: `reclaim = true`, in a table beside `name`.
    takes_reclaim: bool,
    /// The tables of a set that may name it; a set may name a policy at its top as well.
    tables: &'static [&'static str],
    /// What it is.
    title: &'static str,
    /// Where it was published; empty for a policy of the program without a source.
    source: &'static str,
    /// What it can schedule.
    limits: &'static str,
    /// What its group's members are ordered by, the first attribute first.
    order: Vec<&'static str>,
    /// Whether a member that becomes ready in the middle of its period is cut to its bandwidth.
    wakeup_rule: bool,
}

/// A key of a task set.
#[derive(Serialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(test, derive(schemars::JsonSchema))]
enum Key {
    /// `policy`, at the top and in groups.
    Policy,
    /// `server`, in its tables.
    Server,
}

impl Description {
    fn of(entry: &PolicyEntry, key: Key) -> Description {
        let PolicyEntry { info, order, wakeup_rule, .. } = *entry;
        let PolicyInfo { name, title, source, limits, tables, .. } = *info;
        let PolicyInfo { takes_order, takes_weights, takes_reclaim, .. } = *info;
        let order = order.iter().map(|attribute| attribute_name(*attribute)).collect();
        Description {
            name,
            key,
            takes_order,
            takes_weights,
            takes_reclaim,
            tables,
            title,
            source,
            limits,
            order,
            wakeup_rule,
        }
    }

    /// For people; `file`: of the plugin that it is in.
    fn text(&self, file: Option<&str>) -> String {
        let mut text = format!("{}: {}\n\n", self.name, self.title);
        let mut row = |what: &str, value: &str| {
            let _ = writeln!(text, "{what:<13} {value}");
        };
        row("in a task set", &self.in_a_set(file));
        if !self.source.is_empty() {
            row("source", self.source);
        }
        row("schedules", self.limits);
        if !self.order.is_empty() {
            row("ordered by", &format!("{}, then arrival", self.order.join(", ")));
        }
        if self.wakeup_rule {
            row(
                "wake-up rule",
                "on becoming ready in mid-period, the rest is cut to the bandwidth (CBS)",
            );
        }
        text
    }

    fn in_a_set(&self, file: Option<&str>) -> String {
        if let Some(file) = file {
            return format!("policy = {{ plugin = {file:?} }}, at the top or in a [[group]]");
        }
        match self.key {
            Key::Policy if self.takes_order => {
                let table = format!("{{ name = \"{}\", order = \"EXPRESSION\" }}", self.name);
                format!("policy = {table}, at the top or in a [[group]]")
            }
            Key::Policy if self.takes_weights => format!(
                "policy = \"{}\", or {{ name = \"{}\", quantum = \"4ms\" }}, at the top or in a \
                 [[group]]",
                self.name, self.name
            ),
            Key::Policy if self.takes_reclaim => format!(
                "policy = \"{}\", at the top or in a [[group]]; at the top also {{ name = \"{}\", \
                 reclaim = true }}, so that tasks take the budgets that others do not use",
                self.name, self.name
            ),
            Key::Policy => format!("policy = \"{}\", at the top or in a [[group]]", self.name),
            Key::Server => {
                let tables: Vec<String> =
                    self.tables.iter().map(|table| format!("a [[{table}]]")).collect();
                format!("server = \"{}\" in {}", self.name, tables.join(" or "))
            }
        }
    }
}

fn attribute_name(attribute: Attribute) -> &'static str {
    match attribute {
        Attribute::Start => "start",
        Attribute::Finish => "finish",
        Attribute::Budget => "budget",
        Attribute::Priority => "priority",
    }
}

/// `punctual policy list`.
pub fn list(_: &List) -> Outcome<PolicyResult> {
    let (groups, servers) = (punctual_policies::policies().len(), SERVERS.len());
    let verdict = format!("{groups} scheduling policies, {servers} kinds of server.");
    let policies = all();
    let text = format!("{verdict}\n\n{}", table(&policies));
    Outcome { verdict, ok: true, code: 0, result: PolicyResult { policies }, text, error: None }
}

/// `punctual policy show`.
pub fn show(args: &Show) -> Result<Outcome<PolicyResult>, Diagnostic> {
    let name = policy_named(&args.name)?;
    let file = (name != args.name).then_some(args.name.as_str());
    let mut policies = all();
    let names: Vec<&str> = policies.iter().map(|p| p.name).collect();
    let Some(place) = names.iter().position(|of| *of == name) else {
        return Err(Diagnostic::usage(
            format!("there is no policy {:?}", args.name),
            format!("use one of {}", names.join(", ")),
        ));
    };
    let policy = policies.swap_remove(place);
    let (verdict, text) = (format!("{}: {}.", policy.name, policy.title), policy.text(file));
    let result = PolicyResult { policies: vec![policy] };
    Ok(Outcome { verdict, ok: true, code: 0, result, text, error: None })
}

/// `punctual policy header`.
pub fn header() -> Outcome<()> {
    let (verdict, text) = (String::new(), punctual_plugin::HEADER.trim_end().to_owned());
    Outcome { verdict, ok: true, code: 0, result: (), text, error: None }
}

/// Of Punctual and of the program.
fn all() -> Vec<Description> {
    let of = |entries: &[&PolicyEntry], key| -> Vec<Description> {
        entries.iter().map(|entry| Description::of(entry, key)).collect()
    };
    let mut policies = of(punctual_policies::policies(), Key::Policy);
    policies.extend(of(SERVERS, Key::Server));
    policies
}

/// The names, what they are, and where they are from.
fn table(policies: &[Description]) -> String {
    let width = |of: fn(&Description) -> &str| policies.iter().map(|p| of(p).len()).max();
    let (name, title) = (width(|p| p.name).unwrap_or(0), width(|p| p.title).unwrap_or(0));
    let mut text = String::new();
    for key in [Key::Policy, Key::Server] {
        let heading = if key == Key::Policy { "policy" } else { "\nserver" };
        let _ = writeln!(text, "{heading}");
        for p in policies.iter().filter(|p| p.key == key) {
            let row = format!("  {:<name$}  {:<title$}  {}", p.name, p.title, p.source);
            let _ = writeln!(text, "{}", row.trim_end());
        }
    }
    text
}
