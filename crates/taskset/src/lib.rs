//! Task-set files to plain data, and their errors.
//!
//! [`TaskSet::load`] reads a file, [`TaskSet::parse`] a text, [`TaskSet::single`] makes the set of
//! one task that the command line describes. All three make the same checks; whatever they return
//! can be handed to admission. The format is described in `docs/task-set.md`.

mod body;
mod checks;
mod duration;
mod error;
mod keys;
mod load;
mod model;
mod reader;
mod set;
mod single;
mod syntax;
mod task;

pub use checks::{LARGEST_CPU, LARGEST_PID, LEAST_PERIOD, LONGEST_NAME};
pub use duration::{fmt_ns, parse_duration, DurationError, DURATION_LIMIT};
pub use error::{Place, Position, Snippet, TaskSetError};
pub use load::LARGEST_FILE;
pub use model::*;
pub use single::Single;
