//! Tasks with a server of their own, as the tests see them: budgets of a server are a period apart,
//! whatever the arrivals are.

use punctual_taskset::{Arrival, ServerKind, TaskSpec};

use crate::budget_groups::within;
use crate::self_suspension::known_suspension;

/// The most parts into which a sporadic server's budget may fall
/// (`crates/policies/src/servers/sporadic.rs`): each makes a release of its own in a period.
const PARTS_OF_SPORADIC: u64 = 5;

pub(crate) const SLEEPS_ON_SPORADIC: &str =
    "it may sleep in its job, and a sporadic server counts the deadline of the remaining budget \
     from the wake-up: nothing is promised to it, and the guarantees of other tasks hold";

/// Whether a task has no guarantee, although its server meets all deadlines.
pub(crate) fn is_best_effort(task: &TaskSpec) -> bool {
    task.server == Some(ServerKind::Sporadic) && known_suspension(&task.body).0
}

/// Whether a server gives a task that wakes in mid-job a deadline of its own, so that sleeping
/// makes it miss none.
pub(crate) fn restarts_at_wake_up(task: &TaskSpec) -> bool {
    matches!(task.server, Some(ServerKind::SoftConstantBandwidth | ServerKind::Sporadic))
}

/// Whether the response of a task has no bound, because its server may postpone deadlines or its
/// requests may queue. Each budget is executed by the deadline that the server assigns all the
/// same.
pub(crate) fn has_unbounded_response(task: &TaskSpec) -> bool {
    match task.server {
        None | Some(ServerKind::Adaptive) => false,
        Some(ServerKind::SoftConstantBandwidth) => true,
        Some(_) => !arrives_apart(task),
    }
}

/// Whether a task arrives a period after its last arrival at the earliest.
fn arrives_apart(task: &TaskSpec) -> bool {
    match &task.arrival {
        Arrival::Periodic => task.jitter == 0,
        Arrival::Sporadic { .. } => true,
        Arrival::Aperiodic { .. } => false,
        Arrival::List(times) => {
            times.windows(2).all(|pair| pair[1].saturating_sub(pair[0]) >= task.period)
        }
    }
}

/// Whether its server may begin two requests less than a period apart.
pub(crate) fn is_early(task: &TaskSpec) -> bool {
    task.server == Some(ServerKind::TotalBandwidth) && !arrives_apart(task)
}

/// The most that it executes on its server within `window`, ns.
pub(crate) fn most_within(task: &TaskSpec, kind: ServerKind, window: u64) -> u64 {
    // These use idle time, without a bound.
    if kind == ServerKind::SoftConstantBandwidth || is_early(task) {
        return window;
    }
    match kind {
        // Budget comes back in parts, each of which may be used late in its period.
        ServerKind::Sporadic => (window / task.period.max(1) + 2).saturating_mul(task.budget),
        _ => within(window, None, task.period, task.budget, task.deadline),
    }
    .min(window)
}

/// Whether its releases, their demand and their deadlines are those of a task without a server: an
/// adaptive budget is at most the task's.
pub(crate) fn is_plain(task: &TaskSpec) -> bool {
    task.server.is_none_or(|kind| kind == ServerKind::Adaptive)
}

/// The most releases that its server makes in a period, those at arrivals not included.
pub(crate) fn releases_each_period(kind: ServerKind) -> u64 {
    match kind {
        ServerKind::Adaptive => 0,
        ServerKind::Sporadic => PARTS_OF_SPORADIC,
        _ => 1,
    }
}
