//! libpunctual: the crate [`punctual`] for programs in C.
//!
//! `include/punctual.h` and `include/gsi.h` declare and describe the calls; the man pages are made
//! of them. Each function here has the name of its call. What C can do that Rust cannot is refused
//! here: bad handles (`handle`), bad structures (`plain`), calls from a thread that is no task
//! (`current`).
//!
//! A panic would be a defect of Punctual; it ends the program at the border to C.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a handle is a pointer of 64 bits that no memory has");

mod barrier;
mod cond;
mod current;
mod end_table;
mod error;
mod fifo;
mod fifo_end;
mod fork;
mod group;
mod gsi;
mod gsi_allocator;
mod gsi_job;
mod gsi_table;
mod handle;
mod job;
mod lock_error;
mod mutex;
mod mutex_table;
mod names;
mod observer;
mod plain;
mod program;
mod semaphore;
mod set;
mod shared_barrier;
mod shared_cond;
mod shared_lock;
mod shared_mutex;
mod shared_sem;
mod shared_table;
mod stats;
mod task;
mod task_change;
mod thread;

#[cfg(test)]
mod gsi_header;
#[cfg(test)]
mod header;
