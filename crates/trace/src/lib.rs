//! What a host recorded: inputs and decisions ([`Record`], [`Trace`]), and the periods that they
//! made ([`Period`]), reported during the run ([`RunEvent`]).

mod error;
mod file;
mod header;
pub mod kind;
mod limits;
mod of_hosts;
mod period;
mod record;
mod run_event;
mod sink;
mod task_end;
#[cfg(test)]
mod tests;

pub use error::TraceError;
pub use file::*;
pub use header::{Cut, Header};
pub use limits::Limits;
pub use period::*;
pub use record::*;
pub use run_event::{Interval, PolicyStop, RunEvent};
pub use sink::{TraceBuffer, TraceSink};
pub use task_end::TaskEnd;
