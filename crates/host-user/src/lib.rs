//! The user host: a dispatcher's decisions carried out on any Linux, without set-up.
//!
//! One dispatcher thread per CPU ([`Host`]); tasks are threads of this process ([`ThreadTask`]),
//! commands, or running processes.

mod add_spec;
mod added_jobs;
mod calibrate;
mod ceiling;
mod children;
mod command_ring;
mod costs;
mod deferred_charges;
mod direct;
mod dispatch;
mod doorbell;
mod engine;
mod follow;
mod freezer;
mod holder;
mod host;
mod housekeep;
mod inheritance;
mod lending;
mod levels;
mod member;
mod mutex;
mod no_idle;
mod overrun_signal;
mod page_waits;
mod park_signal;
mod pause;
mod policy_swap;
mod queued;
mod register;
mod reports;
mod sched;
mod self_suspension;
mod signal;
mod start;
mod stats;
mod stuck_policy;
mod suspension;
mod task;
mod task_control;
mod time_slices;
mod trace;
mod unresponsive;
mod wait_queue;

pub use calibrate::Precision;
pub use ceiling::MOST_CEILINGS;
pub use costs::capacity;
pub use host::{EngineCost, Finished, Host, HostOptions, STACK};
pub use mutex::{LendingMutex, LockError};
pub use no_idle::NoIdle;
pub use overrun_signal::{call_overrun_handlers, OverrunHandler};
pub use punctual_dispatcher::Dispatcher;
pub use punctual_policies::LockCeiling;
pub use punctual_process::Output;
pub use punctual_sys::clock::monotonic_ns as now;
pub use punctual_trace::RunEvent;
pub use stats::EngineReading;
pub use suspension::{Suspension, SuspensionError};
pub use task::{is_thread_task, CurrentRelease, Entry, ThreadTask};
pub use wait_queue::{WaitError, WaitQueue, Waited};
