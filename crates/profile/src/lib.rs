//! `punctual profile`: which reservation a program needs.
//!
//! ```text
//!   program ─> observe ─> ProgramActivity ─> jobs, rhythm ─> propose ─> ProfileResult
//!              switches   bursts             period          replays in the simulator
//! ```
//!
//! What is measured ends with [`activity::ProgramActivity`]; all that follows is computed from it,
//! in whole numbers, and is the same for the same recording.

pub mod activity;
pub mod jobs;
pub mod observe;
mod profile;
pub mod propose;
pub mod replay;
mod result;
pub mod rhythm;

pub use profile::{evaluate, Wish};
pub use result::{Candidate, Pattern, ProfileResult, Proposal, ThreadResult};
