//! A task set's life on any host, each step a type:
//!
//! ```text
//!   Session ──admit()──> Admitted ──start()──> RunningSet ──poll() ...──> finish() ──> Outcome
//!   host chosen, set     it fits               periods, ends,                       results
//!   checked for it                             warnings
//! ```
//!
//! Up to [`Admitted::start`] nothing is changed on the machine. The command and the library are
//! faces over this crate; `report` prints the results.

mod admitted;
mod baseline;
mod budget_change;
mod driver;
mod kernel;
mod options;
pub mod results;
mod running;
mod sim;
mod traces;
mod user;

pub use admitted::{Admitted, Session};
pub use baseline::Refusal;
pub use budget_change::with_budget;
pub use driver::{Execution, ThreadBody};
pub use options::Options;
pub use punctual_host_user::{Entry, ThreadTask};
pub use punctual_process::Output;
pub use punctual_trace::Interval;
pub use punctual_trace::RunEvent;
pub use results::HostKind;
pub use running::{Event, Outcome, RunningSet, StartOutcome};
pub use traces::TraceFiles;
