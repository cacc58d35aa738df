//! Task-set files to plain data, and their errors.

mod model;

pub use model::*;
