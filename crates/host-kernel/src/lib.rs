//! The dispatcher inside the kernel, from the same C files.
//!
//! `bpf/selftest/dispatcher.bpf.c` is `dispatcher/` with its data in a BPF arena. [`Kernel`] loads
//! it; the kernel's verifier proves each function then. [`selftest`] puts it and the native build
//! through the same work, so that a machine can be asked whether both decide alike before the
//! scheduler is trusted with it; its programs only run when called.
//!
//! `bpf/scheduler.bpf.c` is a sched_ext scheduler around the same dispatcher. [`KernelHost`] loads
//! it, has it schedule a task set, and takes it away again; [`machine`] says what a machine needs
//! for it, [`accepts()`] what a set.
//!
//! ```text
//!  host ─┬─ tasks: synthetic, adopted (barrier)        processes of the tasks
//!        ├─ loaded; scheduler: object, programs;       the scheduler, what wakes it, and its end
//!        │      probe, timer_process; guard
//!        │             start                             how soon it is there, step by step
//!        ├─ domain: joining, members, gsi (abi),       a thread per CPU: commands, events, records
//!        │      ring, reader, request_doorbell
//!        │             added_jobs                        jobs of the program: what hands them out
//!        └─ run_state: periods, lateness, trace_file          results and traces
//! ```

mod abi;
mod added_jobs;
mod adopted;
mod choose;
mod costs;
mod diagnostics;
mod domain;
mod exit_reason;
mod gsi;
mod guard;
mod host;
mod joining;
mod kernel;
mod kernel_btf;
mod lateness;
mod lending;
mod limits;
mod link_in_children;
mod loaded;
pub mod machine;
mod members;
mod page_waits;
mod periods;
mod policy_swap;
mod privilege;
mod probe;
mod programs;
mod reader;
mod request_doorbell;
mod ring;
mod run_state;
mod scheduler;
pub mod selftest;
mod start;
mod start_barrier;
mod synthetic;
mod tasks;
mod timer_process;
mod verifier_log;

pub use choose::best_for;
pub use costs::capacity;
pub use host::{AddedProgram, KernelHost, Options, Outcome};
pub use kernel::{Kernel, KernelError, ProgramStatistics, SchedulerLoad};
pub use lateness::Lateness;
pub use limits::accepts;
pub use loaded::LoadedScheduler;
pub use privilege::Missing;
pub use punctual_process::Output;
pub use punctual_trace::RunEvent;

pub use start::Start;
