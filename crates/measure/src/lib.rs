//! How deterministic this machine is, and what is in the way.
//!
//! [`doctor`] reads what stands in the way of real time and says how to help it.

pub mod doctor;
