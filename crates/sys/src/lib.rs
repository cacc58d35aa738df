//! System calls, each once and typed, over rustix where it has them: scheduling attributes, CPU
//! clocks, counts of events, passing of descriptors, futexes, locks on files, locked memory,
//! pidfds, robust lists, children, cgroup hierarchies, context switches, timers of threads.
//!
//! A function that says *real-time safe* makes system calls alone: it neither allocates nor takes a
//! lock of this process, so that a dispatcher may call it, and the child of a fork.

pub mod cgroup;
pub mod clock;
pub mod event_count;
pub mod fd_passing;
pub mod file_lock;
pub mod futex;
mod huge_pages;
pub mod kernel;
pub mod memory;
pub mod peer;
pub mod perf;
pub mod pi_futex;
pub mod pidfd;
pub mod process;
pub mod robust_list;
pub mod sched;
pub mod thread_name;
pub mod thread_timer;
