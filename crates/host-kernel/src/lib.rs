//! The dispatcher inside the kernel, from the same C files.
//!
//! `bpf/dispatcher.bpf.c` is `dispatcher/` with its data in a BPF arena. [`Kernel`] loads it; the
//! kernel's verifier proves each function then. [`selftest`] puts it and the native build through
//! the same work, so that a machine can be asked whether both decide alike before the scheduler is
//! trusted with it; its programs only run when called.
//!
//! `bpf/scheduler.bpf.c` is a sched_ext scheduler around the same dispatcher. [`run()`] loads it, has it schedule a task
//! set, and takes it away again; [`machine`] says what a machine needs for it.

mod follow;
mod kernel;
pub mod machine;
mod orders;
mod privilege;
mod run;
mod run_error;
mod scheduler;
pub mod selftest;
mod tasks;

pub use kernel::{Kernel, KernelError, ProgramStatistics};
pub use privilege::Missing;
pub use run::{accepts, run, RunOptions, RunOutcome};
pub use run_error::RunError;
