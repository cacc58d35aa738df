//! Scheduling policies in shared objects, in C or any language that can export a structure
//! (RED-Linux IV-D.2: the allocator is a module of its own): `policy = { plugin = "./mine.so" }`.
//!
//! The interface is `include/punctual_policy.h`; [`abi`] has it for Rust. [`enable`] lets task sets
//! name plugins; [`load`] loads one.

pub mod abi;
mod context;
mod library;
mod policy;

pub use library::load;

/// The header of the interface.
pub const HEADER: &str = include_str!("../include/punctual_policy.h");

/// Lets task sets name plugins from now on.
pub fn enable() {
    punctual_taskset::registry::load_plugins_by(load);
}
