//! A page of memory that a thread shares with its dispatcher in another process: the thread says
//! that its job is done, and waits for its next release; the dispatcher says what was released.
//!
//! ```text
//!  service                                    client
//!  NewPage::make ──────descriptor──────────>  ClientPage::open
//!  NewPage::seal <─────Reserve──────────────
//!  DispatcherPage::of                         ask ─> await_answer ─> PageRelease
//! ```
//!
//! Waits are counted. `asked` is the client's: how many waits its thread has begun. `answered` is
//! the dispatcher's: the waits up to this one return. The first wait is the one for the first
//! release, and the dispatcher counts it as asked for.
//!
//! There is no doorbell: a thread that waits leaves its CPU to the next level, and the dispatcher
//! finds the wait at its next event, which is the thread's next release at the latest. A wait that
//! is late, after an overrun, must not block until then; so the dispatcher answers those that it
//! will find late in advance, with each release.
//!
//! Where the dispatcher is inside the kernel, it sees each sched_yield of the thread, which is the
//! wait. The page then has what the thread cannot see itself: when its releases come, and that its
//! reservation has ended (`yield_wait`). Of what the client writes nothing is read.
//!
//! # Memory that another process can write
//!
//! Of what the client writes the dispatcher reads `asked` and `asked_at` alone, and both are the
//! client's affair: a wrong count ends the jobs of the thread, a wrong time is in its own periods.
//! What the dispatcher wrote it never reads back.
//!
//! A dispatcher must not take a page fault here: the kernel would have it wait for locks that an
//! ordinary thread can hold. So the client must not be able to take the page away:
//!
//! | by | what prevents it |
//! |---|---|
//! | truncation | F_SEAL_SHRINK, F_SEAL_GROW |
//! | punching a hole (fallocate, MADV_REMOVE), which these two permit | F_SEAL_FUTURE_WRITE |
//! | collapsing it into a huge page (MADV_COLLAPSE), which all seals permit | a reference to the page, held by a pipe |
//! | reclaim | mlock |
//!
//! F_SEAL_FUTURE_WRITE also refuses new writable mappings, so the client makes its own before it
//! reserves; [`NewPage::seal`] refuses a page that was taken away until then.

mod client;
mod dispatcher;
mod memory;
mod schedule;
mod words;
mod yield_wait;

pub use client::{ClientPage, PageRelease, WaitAnswer};
pub use dispatcher::DispatcherPage;
pub use memory::{NewPage, SealedPage};

#[cfg(test)]
mod tests;
