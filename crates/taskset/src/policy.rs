//! The key `policy`, and the names it takes.

use crate::duration::quote;
use crate::explain::{meant, nearest};
use crate::format::{Policy, PolicyName, PolicyTable};
use crate::problems::Problems;
use crate::value::At;

/// The policies of this version.
pub(crate) const POLICIES: [&str; 7] = ["rm", "dm", "edf", "fp", "td", "imprecise", "dual"];

/// Other names of those policies.
const ALIASES: [(&str, &str); 7] = [
    ("rm", "rate-monotonic rate_monotonic rms"),
    ("dm", "deadline-monotonic deadline_monotonic"),
    ("edf", "earliest-deadline-first deadline"),
    ("fp", "fixed-priority fifo"),
    ("td", "time-driven table cyclic"),
    ("imprecise", "imprecise-computation"),
    ("dual", "dual-priority dual_priority"),
];

/// Policies of later versions, by the nearest of this one.
const LATER: [(&str, &str); 2] =
    [("edf", "wfq cbs tbs cus adaptive pfair pd2 share"), ("rm", "sporadic")];

/// Kinds of server, which are no policies.
const SERVERS: [&str; 2] = ["polling", "deferrable"];

/// Checks the policy of the top of a file, or of a group: its name, or `None` when it is absent or
/// at fault.
pub(crate) fn check(policy: &Option<At<Policy>>, problems: &mut Problems<'_>) -> Option<String> {
    let found = policy.as_ref()?;
    let (at, PolicyName(name)) = match &found.value {
        Policy::Name(name) => (&found.span, name),
        Policy::Table(PolicyTable { name: Some(name) }) => (&name.span, &name.value),
        Policy::Table(PolicyTable { name: None }) => {
            problems.fault(
                &found.span,
                "the policy has no name",
                "add its name: policy = { name = \"edf\" }",
            );
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
    if let Some(instead) = meant(&lower, &LATER, &POLICIES) {
        let cause =
            format!("this version of Punctual does not have the policy {} yet", quote(name));
        return Err((cause, format!("use {} instead", quote(instead))));
    }
    let cause = format!("unknown policy {}", quote(name));
    if SERVERS.contains(&lower.as_str()) {
        let help =
            format!("give a [[group]] server = {}, and any policy for its tasks", quote(&lower));
        return Err((cause, help));
    }
    let help = match meant(&lower, &ALIASES, &POLICIES).or_else(|| nearest(&lower, &POLICIES)) {
        Some(meant) => format!("did you mean {}?", quote(meant)),
        None => {
            "use one of \"rm\", \"dm\", \"edf\", \"fp\", \"td\", \"imprecise\", \"dual\"".to_owned()
        }
    };
    Err((cause, help))
}
