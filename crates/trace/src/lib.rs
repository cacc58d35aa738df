//! What a host recorded: inputs and decisions, and the periods they made.

mod period;

pub use period::*;
