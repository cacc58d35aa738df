//! Priority bands (RED-Linux IV-E): jobs of a higher band precede those of all lower bands.

use crate::entry::shorter_first;

/// Half the distance between bands: no period or priority within a band reaches further.
const HALF: i64 = 1 << 60;

/// Larger than any of the middle band; within it the shorter one first.
pub(crate) fn high(ns: u64) -> i64 {
    2 * HALF + shorter_first(ns).max(-HALF + 1)
}

/// Between the two; larger first, as far as it fits.
pub(crate) fn middle(priority: i64) -> i64 {
    priority.clamp(-HALF + 1, HALF)
}

/// Smaller than any of the middle band; within it the shorter one first.
pub(crate) fn low(ns: u64) -> i64 {
    -HALF + shorter_first(ns).max(-HALF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_period_or_priority_leaves_its_band() {
        for ns in [1, 1_000_000, u64::MAX] {
            for priority in [i64::MIN, 0, i64::MAX] {
                assert!(high(ns) > middle(priority), "{ns} {priority}");
                assert!(middle(priority) > low(ns), "{ns} {priority}");
            }
        }
        assert!(high(1) > high(2) && low(1) > low(2) && middle(2) > middle(1));
    }
}
