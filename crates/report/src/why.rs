//! Why deadlines were missed, in sentences.

mod document;
mod sentence;
mod text;

pub use document::{MissRow, ShareRow, SpanRow, WhyResult};
pub use text::{all, one};
