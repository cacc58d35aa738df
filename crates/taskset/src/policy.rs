//! The key `policy`, and the names it takes.

use crate::duration::quote;
use crate::explain::nearest;
use crate::format::{Policy, PolicyName, PolicyTable};
use crate::problems::Problems;
use crate::value::At;

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

/// Checks the policy of the top of a file, or of a group: its name, or `None` when it is absent or at fault.
pub(crate) fn check(policy: &Option<At<Policy>>, problems: &mut Problems<'_>) -> Option<String> {
    let found = policy.as_ref()?;
    let (at, PolicyName(name)) = match &found.value {
        Policy::Name(name) => (&found.span, name),
        Policy::Table(PolicyTable { name: Some(name) }) => (&name.span, &name.value),
        Policy::Table(PolicyTable { name: None }) => {
            problems.fault(&found.span, "the policy has no name", "add its name: policy = { name = \"edf\" }");
            return None;
        }
    };
    let known = known(name).map_err(|texts| problems.add(at, || texts));
    known.is_ok().then(|| name.clone())
}

/// Refuses a policy that this version does not have, with cause and help.
pub(crate) fn known(name: &str) -> Result<(), (String, String)> {
    if POLICIES.contains(&name) {
        return Ok(());
    }
    let lower = name.to_lowercase();
    if let Some((_, instead)) = LATER_POLICIES.iter().find(|(later, _)| *later == lower) {
        let cause = format!("this version of Punctual does not have the policy {} yet", quote(name));
        return Err((cause, format!("use {} instead", quote(instead))));
    }
    let cause = format!("unknown policy {}", quote(name));
    if SERVERS.contains(&lower.as_str()) {
        let help = format!("give a [[group]] server = {}, and any policy for its tasks", quote(&lower));
        return Err((cause, help));
    }
    let alias = POLICY_ALIASES.iter().find(|(alias, _)| *alias == lower);
    let meant = alias.map(|(_, meant)| *meant).or_else(|| nearest(&lower, &POLICIES));
    let help = match meant {
        Some(meant) => format!("did you mean {}?", quote(meant)),
        None => "use one of \"rm\", \"dm\", \"edf\", \"fp\", \"td\", \"imprecise\", \"dual\"".to_owned(),
    };
    Err((cause, help))
}
