//! Deadline monotonic.

use punctual_dispatcher::Attribute;

use crate::Policy;

/// The shorter the relative deadline, the larger the priority.
pub(crate) static POLICY: Policy = Policy {
    name: "dm",
    title: "deadline monotonic",
    source: "Leung and Whitehead 1982",
    order: &[Attribute::Priority],
    priority: |t| crate::shorter_first(t.deadline),
    wakeup_rule: false,
};
