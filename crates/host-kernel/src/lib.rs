//! The dispatcher inside the kernel, from the same C files.
//!
//! `bpf/dispatcher.bpf.c` is `dispatcher/` with its data in a BPF arena. [`Kernel`] loads it; the
//! kernel's verifier proves each function then. [`selftest`] puts it and the native build through
//! the same work, so that a machine can be asked whether both decide alike before the scheduler is
//! trusted with it. Nothing here is attached to anything: the programs only run when called.

mod kernel;
mod privilege;
pub mod selftest;

pub use kernel::{Kernel, KernelError, ProgramStatistics};
pub use privilege::Missing;
