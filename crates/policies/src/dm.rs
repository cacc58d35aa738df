//! Deadline monotonic.

use punctual_dispatcher::Attribute;

use crate::entry::shorter_first;
use crate::{standard, PolicyEntry};

/// The shorter the relative deadline, the larger the priority.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    name: "dm",
    title: "deadline monotonic",
    source: "Leung and Whitehead 1982",
    limits: "deadlines up to the period",
    order: &[Attribute::Priority],
    priority: |u| shorter_first(u.deadline),
    wakeup_rule: false,
    timers: false,
    make: standard::make,
};
