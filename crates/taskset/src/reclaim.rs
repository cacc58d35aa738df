//! The key `reclaim` of a policy, and what bounds it.

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
