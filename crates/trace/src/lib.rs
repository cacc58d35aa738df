//! What a host recorded: inputs and decisions ([`Record`], [`Trace`]), and the periods that they
//! made ([`Period`]).

mod file;
mod period;
mod record;

pub use file::*;
pub use period::*;
pub use record::*;
