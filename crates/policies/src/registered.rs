//! The table of policies: those of Punctual, and those of the program beside them.

use std::sync::{PoisonError, RwLock};

use punctual_diagnostic::Diagnostic;
use punctual_dispatcher::MOST_ATTRIBUTES;
use punctual_taskset::registry;

use crate::{PolicyEntry, POLICIES};

static ALL: RwLock<&'static [&'static PolicyEntry]> = RwLock::new(POLICIES);

/// All policies: those of Punctual, then those of the program, in the order in which it registered
/// them.
#[must_use]
pub fn policies() -> &'static [&'static PolicyEntry] {
    *ALL.read().unwrap_or_else(PoisonError::into_inner)
}

/// The policy of that name.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static PolicyEntry> {
    policies().iter().copied().find(|policy| policy.info.name == name)
}

/// Adds policies of the program, for the life of the process. To be called before a set is read:
/// task-set files, errors, listings and all hosts take the names from here.
///
/// # Errors
/// An invalid name, or that of another policy or a kind of server; an ordering without attributes,
/// or of more than [`MOST_ATTRIBUTES`]. Nothing is registered then.
///
/// # Examples
/// ```
/// use punctual_policies::{by_name, per_release, register, PolicyEntry, PolicyInfo};
/// # use punctual_policies::{JobParams, MemberParams, Release, ReleasePolicy};
/// # struct Shortest;
/// # impl ReleasePolicy for Shortest {
/// #     fn first(&mut self, _: &MemberParams, release: &Release) -> JobParams {
/// #         let (start, finish, budget) = (release.at, release.deadline, release.left);
/// #         JobParams { start, finish, budget, priority: 0 }
/// #     }
/// # }
/// static INFO: PolicyInfo = PolicyInfo { name: "shortest", ..PolicyInfo::POLICY };
/// static SHORTEST: PolicyEntry =
///     PolicyEntry::new(&INFO, |entry, _| Ok(per_release(entry, Shortest)));
///
/// register(&[&SHORTEST]).unwrap();
/// assert!(by_name("shortest").is_some());
/// let error = register(&[&SHORTEST]).unwrap_err();
/// assert!(error.cause.contains("two policies of this name"));
/// ```
pub fn register(policies: &[&'static PolicyEntry]) -> Result<(), Diagnostic> {
    for PolicyEntry { info, order, .. } in policies {
        if !(1..=MOST_ATTRIBUTES).contains(&order.len()) {
            return Err(Diagnostic::usage(
                format!("the policy \"{}\" is ordered by {} attributes", info.name, order.len()),
                format!("order it by 1 to {MOST_ATTRIBUTES} attributes"),
            ));
        }
    }
    let mut all = ALL.write().unwrap_or_else(PoisonError::into_inner);
    let infos: Vec<_> = policies.iter().map(|entry| entry.info).collect();
    registry::register(&infos)?;
    *all = all.iter().chain(policies).copied().collect::<Vec<_>>().leak();
    Ok(())
}
