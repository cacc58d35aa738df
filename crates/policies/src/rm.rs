//! Rate monotonic.

use punctual_dispatcher::Attribute;

use crate::Policy;

/// Priority 1/P, stored as -P (papers/notes.md: an order, not a number).
pub(crate) static POLICY: Policy = Policy {
    name: "rm",
    title: "rate monotonic",
    source: "Liu and Layland 1973; RED-Linux Table 1",
    order: &[Attribute::Priority],
    priority: |t| crate::shorter_first(t.period),
    wakeup_rule: false,
};
