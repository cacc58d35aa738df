//! Instruments: measure a machine as it is, with and without load.

pub mod cycles;
pub mod cyclictest;
pub mod determinism;
pub mod distribution;
pub mod latency;
pub mod loads;
pub mod noise;
pub mod overhead;
mod periodic;
pub mod require;
mod running;
