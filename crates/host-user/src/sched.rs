//! The levels of SCHED_FIFO that the dispatcher, the freezer thread and jobs have.

use std::io;

use punctual_sys::sched::{self, Children};

/// The dispatcher's own level, above every job.
pub const DISPATCHER: i32 = 99;
/// The freezer thread's level: below the dispatcher, above every job.
pub const FREEZER: i32 = 98;
/// The highest level of a job.
pub const HIGHEST: i32 = 96;
/// The lowest level of a job: above the kernel's interrupt threads (50) and what real-time programs
/// commonly choose. A budget is guaranteed against those, and bounds what it takes from them.
pub const LOWEST: i32 = 60;

/// Sets SCHED_FIFO at `level`, or SCHED_OTHER for 0, for a thread of this process; `tid` 0 is the
/// calling thread. Real-time safe.
///
/// Threads and processes that it creates do not inherit the class: no budget would hold them.
pub fn set_level(tid: i32, level: i32) -> io::Result<()> {
    sched::set_level(tid, level, Children::AreOrdinary)
}
