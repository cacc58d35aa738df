//! Task-set files to plain data, and their errors.
//!
//! [`TaskSet::load`] reads a file, [`TaskSet::parse`] a text, [`TaskSet::single`] makes the set of
//! one task that the command line describes. All three make the same checks, on which the analysis
//! of a set relies. The format is described in `docs/task-set.md`.

mod arrival;
mod body;
mod checks;
mod costs;
mod cpus;
mod duration;
mod error;
mod group;
mod keys;
mod load;
mod model;
mod policy;
mod reader;
mod recording;
mod rt_app;
mod set;
mod single;
mod spin;
mod syntax;
mod task;
mod tree;
mod windows;

pub use body::MOST_STEPS;
pub use checks::{LARGEST_CPU, LARGEST_PID, LEAST_PERIOD, LONGEST_NAME, MOST_BUDGET_GROUPS, MOST_GROUPS, MOST_LEVELS};
pub use costs::{CostBasis, Costs};
pub use duration::{fmt_ns, parse_duration, DurationError, DURATION_LIMIT};
pub use load::{Loaded, LARGEST_FILE};
pub use model::*;
pub use recording::{LARGEST_RECORDING, MOST_RECORDED};
pub use single::Single;
