//! librtlinux: the interface of RT-Linux, over Punctual.
//!
//! `include/rtlinux` has the headers, with RT-Linux's names; docs/rtlinux.md is made of them.
//!
//! ```text
//! api         the calls, one file for each header or part of one; c/ has those that must be C
//! run         rtlinux-run: a program whose entry is init_module, or one for RTload
//! loader      programs that this one has loaded: started, scheduled, reaped
//! loaded      this program, where it was loaded itself
//! hard        threads that are tasks of Punctual
//! fifo        the FIFOs by their numbers, and their handlers
//! waiting     how the thread of a task waits: for its period, suspended, asleep
//! thread      the threads of this program, and the calling one
//! ```
//!
//! A panic would be a defect of Punctual; it ends the program at the border to C.

mod api;
mod cancellation;
mod fifo;
mod hard;
mod loaded;
mod loader;
mod priority;
mod run;
mod thread;
mod waiting;
