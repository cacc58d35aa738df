//! `punctual measure`.

pub mod determinism;
