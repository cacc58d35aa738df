//! Rate monotonic.

use punctual_dispatcher::Attribute;

use crate::entry::shorter_first;
use crate::{standard, PolicyEntry};

/// Priority 1/P, stored as -P (papers/notes.md: an order, not a number).
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    name: "rm",
    title: "rate monotonic",
    source: "Liu and Layland 1973; RED-Linux Table 1",
    limits: "deadlines up to the period",
    order: &[Attribute::Priority],
    priority: |u| shorter_first(u.period),
    wakeup_rule: false,
    timers: false,
    make: standard::make,
};
