//! Scheduling policies in shared objects, in C or any language that can export a structure
//! (RED-Linux IV-D.2: the allocator is a module of its own): `policy = { plugin = "./mine.so" }`.
//!
//! The interface is `include/punctual_policy.h`; [`abi`] has it for Rust. [`enable`] lets task sets
//! name plugins; [`load`] loads one.
//!
//! The smaller budget first, as a `cdylib`:
//!
//! ```
//! use punctual_plugin::abi::{PluginAttributes, PluginPolicy};
//!
//! unsafe extern "C" fn smaller_budget_first(of: *const PluginAttributes) -> i64 {
//!     // SAFETY: Punctual passes attributes that outlive the call.
//!     -(unsafe { (*of).budget } as i64)
//! }
//!
//! #[no_mangle]
//! #[allow(non_upper_case_globals)]
//! pub static punctual_policy: PluginPolicy = PluginPolicy {
//!     name: c"shortest".as_ptr(),
//!     title: c"the smaller budget first".as_ptr(),
//!     priority: Some(smaller_budget_first),
//!     ..PluginPolicy::NONE
//! };
//! ```

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
