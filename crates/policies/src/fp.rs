//! Fixed priorities, as the task set gives them.

use punctual_dispatcher::Attribute;
use punctual_taskset::registry;

use crate::{standard, PolicyEntry};

/// The task set's own priorities: larger first.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    info: &registry::FP,
    order: &[Attribute::Priority],
    priority: |u| u.priority,
    wakeup_rule: false,
    timers: false,
    make: standard::make,
};
