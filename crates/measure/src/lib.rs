//! Instruments that measure a machine.

pub mod determinism;
pub mod require;
