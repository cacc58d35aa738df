//! Earliest deadline first.

use punctual_dispatcher::Attribute;

use crate::{standard, PolicyEntry};

/// The finish of a job decides; priorities are not looked at.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    name: "edf",
    title: "earliest deadline first",
    source: "Liu and Layland 1973; RED-Linux Table 1",
    limits: "deadlines up to the period",
    order: &[Attribute::Finish],
    priority: |_| 0,
    wakeup_rule: true,
    timers: false,
    make: standard::make,
};
