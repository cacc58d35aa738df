//! Guaranteed CPU time for the threads of a Rust program, on a stock Linux kernel.
//!
//! A *task* has a *period* and a *budget*: in every period it may, and can, execute for its budget,
//! whatever else runs. If it needs more it waits for its next release, and delays no other task.
//! Threads of the program are tasks ([`TaskDraft::spawn`]), and so are commands
//! ([`TaskDraft::command`]) and running processes ([`TaskDraft::pid`]), which need no support for
//! this library.
//!
//! ```no_run
//! use punctual::{Overrun, Policy, Punctual};
//! use std::time::Duration;
//!
//! fn main() -> Result<(), punctual::Error> {
//!     let running = Punctual::on_cpu(1)
//!         .policy(Policy::Edf)
//!         .task("servo")
//!         .period(Duration::from_millis(1))
//!         .budget(Duration::from_micros(250))
//!         .overrun(Overrun::Skip)
//!         .spawn(|task| {
//!             for release in task.releases() {
//!                 if release.lost > 0 {
//!                     // The task was late and missed so many releases.
//!                 }
//!                 // Read the sensors, compute, set the motors; improve the estimate while there
//!                 // is time.
//!                 while task.remaining_budget() > Duration::from_micros(50) {
//!                     std::hint::spin_loop();
//!                 }
//!             }
//!         })
//!         .task("player")
//!         .period(Duration::from_millis(20))
//!         .budget(Duration::from_millis(5))
//!         .command(["ffmpeg", "-re", "-i", "clip.mpg", "-f", "null", "-"])
//!         .admit()?
//!         .start()?;
//!
//!     std::thread::sleep(Duration::from_secs(10));
//!     let outcome = running.stop()?;
//!     let servo = &outcome.results.tasks[0];
//!     println!("{}: {} of {} deadlines missed", servo.name, servo.misses, servo.periods);
//!     Ok(())
//! }
//! ```
//!
//! # From declaration to run
//!
//! ```text
//!   Punctual ──admit()──> Admitted ──start()──> Running ──stop() or drop──> everything restored
//!   declared: can be      fits: can be          runs: takes further
//!   refused               refused by the        tasks, reports, waits
//!                         machine only
//! ```
//!
//! Each step takes the one before, so a set that was not admitted cannot be started. Up to
//! [`Admitted::start`] nothing is changed on the machine; from then on a dispatcher thread per CPU
//! (SCHED_FIFO 99) decides, a guardian process restores everything if this program is killed, and
//! an ordinary thread does the housekeeping.
//!
//! # What a task may count on
//!
//! - Budgets are execution time, enforced to some tens of microseconds; the error is measured and
//!   settled in the next budget, so that the long run is exact.
//! - A task that wakes late, blocks, spins or panics takes nothing from the others' budgets.
//! - At most 90 % of a CPU is guaranteed, and only to tasks that meet their deadlines
//!   ([`Punctual::admit`]); ordinary programs have the rest, and all unused budgets.
//!
//! Locks of the standard library do not inherit budgets: a task that waits for a mutex held by a
//! parked task waits for that task's next budget. Share data by a [`Mutex`], which lends the
//! waiting task's budget to the holder, or by FIFOs ([`fifo`]), whose ends never wait for each
//! other. Tasks wait for each other by a [`Condvar`], a [`Semaphore`] or a [`Barrier`]. Programs
//! that were started separately share the locks of [`shared`].
//!
//! Privileges, overrun policies, costs and pitfalls are described in `docs/library.md`.

mod attached;
mod barrier;
mod ceiling;
mod condvar;
mod declare;
mod draft;
mod error;
mod group;
mod handle;
mod live_tasks;
mod mutex;
mod observer;
mod parameters;
mod policy;
mod requests;
mod running;
mod scope;
mod semaphore;
mod settings;
mod supervisor;
mod task;
mod time;

pub use attached::Attached;
pub use barrier::Barrier;
pub use ceiling::Ceiling;
pub use condvar::Condvar;
pub use declare::{Admitted, Punctual};
pub use draft::{DraftTarget, TaskDraft};
pub use group::{BudgetGroup, SchedulingGroup};
pub use handle::TaskHandle;
pub use mutex::{Mutex, MutexGuard};
pub use parameters::Parameters;
pub use policy::Policy;
pub use punctual_diagnostic::{Diagnostic as Error, Kind as ErrorKind};
pub use running::Running;
pub use scope::Scope;
pub use semaphore::Semaphore;
pub use task::{Released, Releases, Task};
pub use time::Time;

pub use punctual_analysis::{DomainLoad, Ppm};
pub use punctual_host_user::{LockError, WaitError};
pub use punctual_session::results::{Results, TaskResult};
pub use punctual_session::{
    HostChoice as Host, LoadedScheduler, NamedEvent as RunEvent, RunOutcome,
};
pub use punctual_taskset::{Overrun, TaskSet};
pub use punctual_trace::{JobEnd, Period, TaskEnd, NEVER};

/// FIFOs in shared memory between tasks and other programs, found by name (docs/fifo.md). Put and
/// get of a sole end are wait-free and real-time safe.
pub mod fifo {
    pub use punctual_ipc::{
        Access, Content, Error, Fifo, FifoAttr, FifoState, Lifetime, Name, Namespace, Reader,
        Writer, MAX_CAPACITY, MIN_CAPACITY,
    };
}

/// Locks between programs that were started separately, found by name (docs/locks.md). The kernel
/// lends the priority of a thread that waits, and hands over what a killed program holds.
pub mod shared {
    pub use punctual_ipc::{
        lock_names, remove_lock, ConditionWait, Lifetime, LockKind, LockOutcome, Name, Namespace,
        SharedBarrier, SharedCondvar, SharedLockError, SharedLockOwner, SharedLockState,
        SharedLockUse, SharedMutex, SharedMutexGuard, SharedSemaphore, MOST_HELD, MOST_PARTIES,
        MOST_UNITS,
    };
}

/// Jobs that the program adds to its tasks under [`Policy::Jobs`]: docs/library.md, "Jobs of the
/// program". Times are CLOCK_MONOTONIC ns, as of [`Time::as_nanos`].
pub mod jobs {
    pub use punctual_program_jobs::{
        AddedJobEnd, Attribute, GroupJobs, JobError, JobEvent, JobEvents, JobParams, JobPlace,
        JobRefusal, NoEvent, ProgramGroups, TaskJobs,
    };
}

/// What mutexes and condition variables are made of, for locks without guards (libpunctual).
pub mod raw {
    pub use punctual_host_user::{LendingMutex, LockCeiling, ThreadTask, WaitQueue, Waited};
}

/// Figures of a run, and tables and lines that show them.
pub mod results {
    pub use punctual_report::{headline, live, plain_line, side_by_side, table, verdicts, View};
    pub use punctual_session::results::*;
}
