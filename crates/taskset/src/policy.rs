//! The key `policy`.

use crate::duration::quote;
use crate::explain::{meant, nearest};
use crate::format::{Policy, PolicyName, PolicyTable};
use crate::problems::Problems;
use crate::registry::{names, POLICIES, SERVERS};
use crate::value::At;

/// Policies of later versions, by the nearest of this one.
const LATER: [(&str, &str); 2] =
    [("edf", "wfq cbs tbs cus adaptive pfair pd2 share"), ("rm", "sporadic")];

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
    let policies = names(&POLICIES);
    if policies.contains(&name) {
        return Ok(());
    }
    let lower = name.to_lowercase();
    if let Some(instead) = meant(&lower, &LATER, &policies) {
        let cause =
            format!("this version of Punctual does not have the policy {} yet", quote(name));
        return Err((cause, format!("use {} instead", quote(instead))));
    }
    let cause = format!("unknown policy {}", quote(name));
    if names(&SERVERS).contains(&lower.as_str()) {
        let help =
            format!("give a [[group]] server = {}, and any policy for its tasks", quote(&lower));
        return Err((cause, help));
    }
    let aliases = POLICIES.map(|policy| (policy.name, policy.aliases));
    let help = match meant(&lower, &aliases, &policies).or_else(|| nearest(&lower, &policies)) {
        Some(meant) => format!("did you mean {}?", quote(meant)),
        None => format!("use one of {}", policies.map(quote).join(", ")),
    };
    Err((cause, help))
}
