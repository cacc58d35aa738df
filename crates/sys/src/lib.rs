//! System calls that the standard library and rustix lack, each once and typed: scheduling attributes, CPU clocks,
//! futexes, locked memory.
//!
//! A function that says *real-time safe* makes system calls alone: it neither allocates nor takes a lock of this process,
//! so that a dispatcher may call it, and the child of a fork.

pub mod clock;
pub mod futex;
pub mod memory;
pub mod sched;
