//! liblxrt: the interface of RTAI LXRT (real-time tasks of Linux programs), over Punctual.
//!
//! `include/rtai` has the headers, with RTAI's names; docs/rtai.md is made of them.
//!
//! ```text
//! api         the calls, one file for each header or part of one
//! semaphore   what they do to the objects
//! message, proxy
//! mailbox
//! bits
//! message_queue
//! fifos       of Punctual, by number
//! task
//! watchdog    what is done about tasks that overrun their periods
//! blocking    how the thread of a task waits
//! current     the task of the calling thread
//! hard        hard tasks and budgets: threads that are tasks of Punctual
//! arena       the memory with all objects of all programs of a user
//! ```
//!
//! A panic would be a defect of Punctual; it ends the program at the border to C.

#[cfg(not(target_pointer_width = "64"))]
compile_error!("a handle is a pointer of 64 bits that no memory has");

mod api;
mod arena;
mod bits;
mod blocking;
mod current;
mod fifos;
mod hard;
mod mailbox;
mod message;
mod message_queue;
mod proxy;
mod rte;
mod semaphore;
mod task;
mod watchdog;
