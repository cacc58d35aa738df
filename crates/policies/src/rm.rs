//! Rate monotonic.

use punctual_dispatcher::Attribute;
use punctual_taskset::registry;

use crate::entry::shorter_first;
use crate::{standard, PolicyEntry};

/// Priority 1/P, stored as -P (papers/notes.md: an order, not a number).
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    info: &registry::RM,
    order: &[Attribute::Priority],
    priority: |u| shorter_first(u.period),
    wakeup_rule: false,
    timers: false,
    make: standard::make,
};
