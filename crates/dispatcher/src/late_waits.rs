//! Late waits, by the rule of `dispatcher/late_wait.h`: for allocators that make jobs themselves.

use crate::ffi;

/// Late waits are counted up to here (RTAI paper, 3.3.2: "a reasonable limit").
pub const MAX_DELAYED: u32 = 30_000;

/// The late waits of a task, after a release of it has ended without its wait; `waits` if it has
/// ever waited.
pub fn after_release(late: u32, waits: bool) -> u32 {
    // SAFETY: numbers only; so below.
    unsafe { ffi::pd_late_waits_after_release(late, waits.into()) }
}

/// 1 if one of the late waits is that of the latest release, which has `ended`.
pub fn own(late: u32, ended: bool) -> u32 {
    // SAFETY: as above.
    unsafe { ffi::pd_late_waits_own(late, ended.into()) }
}

/// Whether a wait is that of an earlier release, and is ignored.
pub fn is_late(late: u32, ended: bool) -> bool {
    // SAFETY: as above.
    unsafe { ffi::pd_late_waits_is(late, ended.into()) != 0 }
}
