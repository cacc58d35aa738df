//! Earliest deadline first.

use punctual_dispatcher::Attribute;
use punctual_taskset::registry;

use crate::{reclaiming, standard, PolicyEntry};

/// The finish of a job decides; priorities are not looked at.
pub(crate) static POLICY: PolicyEntry = PolicyEntry {
    info: &registry::EDF,
    order: &[Attribute::Finish],
    priority: |_| 0,
    wakeup_rule: true,
    timers: false,
    make: standard::make,
};

/// With the option `reclaim`.
pub(crate) static RECLAIMING: PolicyEntry =
    PolicyEntry { timers: true, make: reclaiming::make, ..POLICY };
