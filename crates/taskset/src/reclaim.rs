//! The key `reclaim` of a policy, and what bounds it.

use crate::format::Policy;
use crate::problems::Problems;
use crate::value::At;
use crate::PolicyInfo;

/// The part of a CPU that hosts promise to tasks at most, as a fraction (docs/check.md): what tasks
/// at the top are sure of, and may reclaim.
pub const PART_FOR_TASKS: (u64, u64) = (9, 10);

/// Checks the key `reclaim` of a policy.
pub(crate) fn check(
    info: &PolicyInfo,
    reclaim: &Option<At<bool>>,
    problems: &mut Problems<'_>,
) -> bool {
    let Some(found) = reclaim else { return false };
    if !info.takes_reclaim {
        let cause = format!("the policy \"{}\" does not reclaim unused budget", info.name);
        problems.fault_of_key(&found.span, cause, "remove it, or use \"edf\"");
        return false;
    }
    found.value
}

/// Refuses the key in the policy of a group.
pub(crate) fn refuse_in_group(policy: &Option<At<Policy>>, problems: &mut Problems<'_>) {
    let Some(Policy::Table(table)) = policy.as_ref().map(|policy| &policy.value) else { return };
    if let Some(found) = table.reclaim.as_ref().filter(|found| found.value) {
        let cause = "only the policy at the top can reclaim: a group has no CPU of its own";
        problems.fault_of_key(&found.span, cause, "remove it, or put the tasks at the top");
    }
}
