//! The key `policy`, and the names it takes.

use toml::de::DeValue;

use crate::duration::quote;
use crate::keys::{nearest, Scope};
use crate::reader::{Problems, Span, Table};

/// The policies of this version.
pub(crate) const POLICIES: [&str; 7] = ["rm", "dm", "edf", "fp", "td", "imprecise", "dual"];

/// Other names of those policies.
const POLICY_ALIASES: [(&str, &str); 15] = [
    ("rate-monotonic", "rm"),
    ("rate_monotonic", "rm"),
    ("rms", "rm"),
    ("deadline-monotonic", "dm"),
    ("deadline_monotonic", "dm"),
    ("earliest-deadline-first", "edf"),
    ("deadline", "edf"),
    ("fixed-priority", "fp"),
    ("fifo", "fp"),
    ("time-driven", "td"),
    ("table", "td"),
    ("cyclic", "td"),
    ("imprecise-computation", "imprecise"),
    ("dual-priority", "dual"),
    ("dual_priority", "dual"),
];

/// Policies of later versions, each with the nearest of this one.
const LATER_POLICIES: [(&str, &str); 9] = [
    ("wfq", "edf"),
    ("cbs", "edf"),
    ("tbs", "edf"),
    ("cus", "edf"),
    ("sporadic", "rm"),
    ("adaptive", "edf"),
    ("pfair", "edf"),
    ("pd2", "edf"),
    ("share", "edf"),
];

/// Kinds of server, which are no policies.
const SERVERS: [&str; 2] = ["polling", "deferrable"];

/// Reads the key `policy` of the top of a file, or of a group; `None` when it is absent or at fault.
pub(crate) fn read(top: &Table<'_, '_>, problems: &mut Problems<'_>) -> Option<String> {
    let found = top.get("policy")?;
    match found.value {
        DeValue::String(name) => known_policy(top, problems, &found.at, name),
        DeValue::Table(entries) => {
            let table =
                Table { entries, at: found.at.clone(), scope: Scope::Policy, whose: format!("{}policy: ", top.whose) };
            let before = problems.count();
            table.check_keys(problems);
            if table.get("name").is_none() && problems.count() == before {
                let help = "add its name: policy = { name = \"edf\" }";
                top.fault(problems, &found.at, "the policy has no name", help);
            }
            let (at, name) = table.string(problems, "name", "edf")?;
            known_policy(top, problems, &at, name)
        }
        _ => {
            let help = "write its name in quotes: policy = \"edf\"";
            top.wrong_type(problems, "policy", &found, "a name", help);
            None
        }
    }
}

fn known_policy(top: &Table<'_, '_>, problems: &mut Problems<'_>, at: &Span, name: &str) -> Option<String> {
    if POLICIES.contains(&name) {
        return Some(name.to_owned());
    }
    let (cause, help) = refuse_policy(name);
    top.fault(problems, at, cause, help);
    None
}

/// The cause and help for a policy that this version does not have.
pub(crate) fn refuse_policy(name: &str) -> (String, String) {
    let lower = name.to_lowercase();
    if let Some((_, instead)) = LATER_POLICIES.iter().find(|(later, _)| *later == lower) {
        let cause = format!("this version of Punctual does not have the policy {} yet", quote(name));
        return (cause, format!("use {} instead", quote(instead)));
    }
    let cause = format!("unknown policy {}", quote(name));
    if SERVERS.contains(&lower.as_str()) {
        let help = format!("give a [[group]] server = {}, and any policy for its tasks", quote(&lower));
        return (cause, help);
    }
    let alias = POLICY_ALIASES.iter().find(|(alias, _)| *alias == lower);
    let meant = alias.map(|(_, meant)| *meant).or_else(|| nearest(&lower, &POLICIES));
    let help = match meant {
        Some(meant) => format!("did you mean {}?", quote(meant)),
        None => "use one of \"rm\", \"dm\", \"edf\", \"fp\", \"td\", \"imprecise\", \"dual\"".to_owned(),
    };
    (cause, help)
}
