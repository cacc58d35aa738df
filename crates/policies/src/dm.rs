//! Deadline monotonic.

use punctual_dispatcher::Attribute;
use punctual_taskset::registry;

use crate::entry::shorter_first;
use crate::{standard, PolicyEntry};

/// The shorter the relative deadline, the larger the priority.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    info: &registry::DM,
    order: &[Attribute::Priority],
    priority: |u| shorter_first(u.deadline),
    wakeup_rule: false,
    timers: false,
    make: standard::make,
};
