//! What suspends and resumes a task of a set that runs.

use std::sync::Arc;

use punctual_host_service::ServiceSuspension;
use punctual_host_user::Suspension;

/// Suspends and resumes one task.
#[derive(Debug, Clone)]
pub enum TaskSuspension {
    /// Of the user host: neither allocates nor locks.
    User(Arc<Suspension>),
    /// Of the service: waits for its answer.
    Service(ServiceSuspension),
    /// Of the kernel host, in turn with all else: [`RunningSet::suspend`](crate::RunningSet).
    Run,
}
