//! The same task set under the kernel's own policies: the columns of `run --compare
//! fifo,deadline,other`.
//!
//! ```text
//!              priority                     on
//! watchdogs    FIFO 99                      each CPU used, and one other: end the run at its bound
//! observers    FIFO 99 (beside DEADLINE:    each CPU used: read CPU clocks at period boundaries
//!              a reservation)
//! tasks        the baseline's policy            their CPU
//! caller       unchanged                    anywhere: reads the observers' records from a ring
//! ```
//!
//! The kernel's policies enforce nothing between the task and the machine, so a runaway under
//! SCHED_FIFO may keep its CPU for good. Four things bound it, each for when the one before fails:
//! tasks look at a stop flag; the watchdogs, above every task, demote all tasks to SCHED_OTHER at
//! the end of the run or when `stop` is set; RLIMIT_RTTIME ends the process some seconds later; and
//! SIGKILL of the process takes threads and background load along, and the guardian kills the
//! commands with whatever they started.
//!
//! # What counts
//! - `received`: difference of the task's CPU clock between two of its period boundaries.
//! - `woken_late`: the observer read it more than max(50 us, 1 % of the budget) after the boundary,
//!   at either end.
//! - `miss`: of a task that ends, its job was not done at its deadline. Of one that never ends, it
//!   received less than 99 % of its budget in the period, after the observer's own lateness is
//!   taken off.
//! - `ready_throughout`: it was never done, or not done in the period, or received its whole
//!   budget; never a task whose jobs contain sleeps, because the observer does not see when it
//!   sleeps.
//! - `overrun`: not done at its deadline, or received more than 105 % of its budget.
//! - Of a command only execution time is known, nothing about readiness or misses.

mod command;
mod judge;
mod observer;
mod plan;
mod refusal;
mod run;
mod shared;
mod sys;
mod watchdog;
mod worker;

pub use refusal::Unsupported;
pub use run::{start, Baseline, BaselineHost, BaselineRun, BaselineStart, Options};
