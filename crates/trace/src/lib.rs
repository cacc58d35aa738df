//! What a host recorded: inputs and decisions ([`Record`], [`Trace`]), and the periods that they
//! made ([`Period`]), told while the run goes on ([`Told`]).

mod error;
mod file;
mod header;
pub mod kind;
mod period;
mod record;
mod task_end;
#[cfg(test)]
mod tests;
mod told;

pub use error::TraceError;
pub use file::*;
pub use header::{Header, TraceLimits};
pub use period::*;
pub use record::*;
pub use task_end::TaskEnd;
pub use told::Told;
