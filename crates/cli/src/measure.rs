//! `punctual measure`.

pub mod determinism;
pub mod latency;
pub mod overhead;
