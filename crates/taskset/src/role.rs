//! Roles: a period and a budget under a name, one in each file.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::duration::quote;
use crate::format::{Cpu, Name, PolicyName};
use crate::problems::{Problem, Problems};
use crate::value::{ns, At, Positive, Span, Time, Whole, Word};
use crate::{checks, error, explain, load, policy, syntax, Body, Overrun, Spin, TaskSet};
use punctual_diagnostic::{is_printable, Diagnostic};

/// How the name of a role's file ends.
pub(crate) const EXTENSION: &str = "toml";

/// What a program gets that asks for a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// The stem of its file's name.
    pub name: String,
    /// For people: one line; may be empty.
    pub description: String,
    /// Time between releases, ns.
    pub period: u64,
    /// Execution time per period, ns.
    pub budget: u64,
    /// Relative deadline, ns; `None`: the period.
    pub deadline: Option<u64>,
    /// What happens on overrun; `None`: [`Overrun::default`].
    pub overrun: Option<Overrun>,
    /// The CPU of a program that runs by itself; `None`: that of its caller's choice.
    pub cpu: Option<u32>,
    /// The policy of a program that runs by itself; `None`: `edf`.
    pub policy: Option<String>,
    /// The scheduling group of the service in which its programs compete; `None`: none.
    pub group: Option<String>,
}

/// A role's file, its keys in the order that errors list them in.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct RoleKeys {
    description: Option<At<String>>,
    period: Option<At<Positive>>,
    budget: Option<At<Positive>>,
    deadline: Option<At<Positive>>,
    overrun: Option<At<Word<Overrun>>>,
    cpu: Option<At<Cpu>>,
    policy: Option<At<PolicyName>>,
    group: Option<At<Name>>,
}

impl Role {
    /// Reads a role's file, `NAME.toml`, of which there is a description in `docs/roles.md`.
    ///
    /// # Errors
    /// It cannot be read, is larger than [`LARGEST_FILE`](crate::LARGEST_FILE) or is not UTF-8; its
    /// name is none of a role; and all of [`Role::parse`].
    pub fn load(path: impl AsRef<Path>) -> Result<Role, Diagnostic> {
        let path = path.as_ref();
        let file = path.display().to_string();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        check_name(&name).map_err(|(cause, help)| error::whole(&file, cause, help))?;
        Role::parse(&name, &load::text_of(path, "role's file")?, &file)
    }

    /// Reads the text of a role's file. `file_name` is what errors call it.
    ///
    /// # Errors
    /// The first thing that is wrong with it, as for the file of a task set
    /// ([`TaskSet::parse`]), to whose values the same checks apply.
    pub fn parse(name: &str, text: &str, file_name: &str) -> Result<Role, Diagnostic> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let read = toml::Deserializer::parse(text)
            .map_err(|error| syntax::explain(text, &error))
            .and_then(|tree| {
                RoleKeys::deserialize(tree).map_err(|error| explain::form(text, &error))
            });
        let keys = read.map_err(|e| error::at(file_name, text, &e.at, e.whose + &e.cause, e.help));
        check(name, &keys?, text).map_err(|problem| {
            let e = explain::problem(text, problem);
            error::at(file_name, text, &e.at, e.cause, e.help)
        })
    }

    /// The text of a file that reads as this role, if a file of its name does.
    #[must_use]
    pub fn to_toml(&self) -> String {
        let keys = RoleKeys {
            description: Some(At::from(self.description.clone())).filter(|text| !text.is_empty()),
            period: Some(Time(self.period).into()),
            budget: Some(Time(self.budget).into()),
            deadline: self.deadline.map(|ns| Time(ns).into()),
            overrun: self.overrun.map(|overrun| Word(overrun).into()),
            cpu: self.cpu.map(|cpu| Whole(cpu.into()).into()),
            policy: self.policy.clone().map(|name| PolicyName(name).into()),
            group: self.group.clone().map(|name| Name(name).into()),
        };
        // Every form of the format is one of TOML's.
        toml::to_string(&keys).unwrap_or_default()
    }

    /// Refuses a name that is none of a role's.
    ///
    /// # Errors
    /// It is not 1 to [`LONGEST_NAME`](crate::LONGEST_NAME) printable characters, begins with a dot
    /// or contains a slash.
    pub fn check_name(name: &str) -> Result<(), Diagnostic> {
        check_name(name).map_err(|(cause, help)| Diagnostic::usage(cause, help))
    }
}

/// As of a task; and such that `NAME.toml` is a file of the folder that is searched, and no hidden
/// one, as the temporary files of editors are.
fn check_name(name: &str) -> Result<(), (String, String)> {
    checks::name("role", name)?;
    if name.starts_with('.') || name.contains('/') {
        return Err((
            format!("{} is not the name of a role: it begins with a dot or has a /", quote(name)),
            "give a name such as \"audio-render\"; the roles are in the output of punctual role \
             list"
                .to_owned(),
        ));
    }
    Ok(())
}

/// What must hold between the values.
fn check(name: &str, keys: &RoleKeys, text: &str) -> Result<Role, Problem> {
    let mut problems = Problems::new(text);
    let head: Span = 0..0;
    if let Some(given) = &keys.description {
        if !given.chars().all(is_printable) {
            let help = "write one line, of characters that can be shown";
            problems.fault(&given.span, "the description has unprintable characters", help);
        }
    }
    checks::times_at(&head, &keys.period, &keys.budget, &keys.deadline, &mut problems);
    if let Some(named) = &keys.policy {
        if let Err(texts) = policy::alone(&named.0) {
            problems.add(&named.span, || texts);
        }
    }
    let group = checks::name_at("group", &keys.group, &mut problems);
    if problems.count() == 0 {
        let period = "add the time between its releases, such as period = \"20ms\"";
        let budget = "add the execution time it may use per period, such as budget = \"5ms\"";
        let required = [
            (keys.period.is_some(), "a period", period),
            (keys.budget.is_some(), "a budget", budget),
        ];
        problems.missing(&head, &required);
    }
    let (period, budget) = (ns(&keys.period).unwrap_or(0), ns(&keys.budget).unwrap_or(0));
    let role = Role {
        name: name.to_owned(),
        description: keys.description.as_ref().map_or(String::new(), |text| text.value.clone()),
        period,
        budget,
        deadline: ns(&keys.deadline),
        overrun: keys.overrun.as_ref().map(|overrun| overrun.0),
        cpu: keys.cpu.as_ref().map(|cpu| cpu.unsigned()),
        policy: keys.policy.as_ref().map(|policy| policy.0.clone()),
        group: group.map(|group| group.value),
    };
    if let (0, Some(named)) = (problems.count(), &keys.policy) {
        // A policy that needs more of a task than a role has.
        let body = Body::Spin(Spin::For(budget));
        let single = TaskSet::single(period, budget, body).policy(&named.0);
        if let Err(Diagnostic { cause, .. }) = single.build() {
            let cause = format!("a role cannot have the policy {}: {cause}", quote(&named.0));
            problems.fault(&named.span, cause, "use \"edf\", \"rm\" or \"dm\"");
        }
    }
    problems.into_first().map_or(Ok(role), Err)
}
