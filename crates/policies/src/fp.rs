//! Fixed priorities, as the task set gives them.

use punctual_dispatcher::Attribute;

use crate::{standard, PolicyEntry};

/// The task set's own priorities: larger first.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    name: "fp",
    title: "fixed priority",
    source: "RED-Linux, IV-B",
    limits: "deadlines up to the period",
    order: &[Attribute::Priority],
    priority: |u| u.priority,
    wakeup_rule: false,
    timers: false,
    make: standard::make,
};
