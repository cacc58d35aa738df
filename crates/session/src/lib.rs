//! A task set's life on any host, each step a type:
//!
//! ```text
//!   Session ──admit()──> AdmittedSet ──start()──> RunningSet ──finish()──> RunOutcome
//!   host chosen,         the set fits             poll(): periods,         results
//!   set checked                                   ends, warnings
//! ```
//!
//! Up to [`AdmittedSet::start`] nothing is changed on the machine. The command and the library are
//! faces over this crate; `report` prints the results.

mod admitted;
mod baseline;
mod driver;
mod host_choice;
mod kernel;
mod options;
mod policy_change;
pub mod results;
mod running;
mod service;
mod sim;
mod suspension;
mod task_change;
mod task_thread;
mod traces;
mod user;

pub use admitted::{AdmittedSet, Session};
pub use baseline::Unsupported;
pub use driver::Execution;
pub use host_choice::{service_accepts, HostChoice};
pub use options::RunOptions;
pub use policy_change::{with_policies, ChangedPolicies};
pub use punctual_host_kernel::LoadedScheduler;
pub use punctual_host_user::SuspensionError;
pub use punctual_process::Output;
pub use punctual_trace::Interval;
pub use punctual_trace::RunEvent;
pub use results::HostKind;
pub use running::{NamedEvent, RunOutcome, RunningSet, StartOutcome};
pub use suspension::TaskSuspension;
pub use task_change::{has_reservation, with_change};
pub use task_thread::{is_task_thread, EnteredThread, TaskThread, ThreadBody, ThreadEntry};
pub use traces::TraceFiles;
