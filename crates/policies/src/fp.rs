//! Fixed priorities, as the task set gives them.

use punctual_dispatcher::Attribute;

use crate::Policy;

/// The task set's own priorities: larger first.
pub(crate) static POLICY: Policy = Policy {
    name: "fp",
    title: "fixed priority",
    source: "RED-Linux, IV-B",
    order: &[Attribute::Priority],
    priority: |t| t.priority,
    wakeup_rule: false,
};
