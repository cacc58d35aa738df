//! What Punctual changes on a machine: recorded before the change, restored after any end of a
//! run, SIGKILL included.
//!
//! ```text
//!   CpuLock::take ─> Journal::create ─> Guardian::start      before anything is changed
//!        CgroupBase::create ─> Park::for_command ─> spawn    a command: killed at the end
//!                          └─> Park::for_process ─> adopt    a running one: restored at the end
//!        Commands                                  all of these for a host that parks nothing
//!   Park::{park, resume, usage_ns}, Threads::set_level       the dispatcher's part: real-time safe
//!   Threads::{end_slice, requeue, restore_order}             likewise: its threads' time slices
//!   Threads::sample_waits, AdoptedThread::sample_wait        likewise: whose level others inherit
//!   Park::rescan, Threads::rescan, Guardian::restart         the housekeeper's, an ordinary thread
//!   restore(&journal) ─> Guardian::dismiss                   the orderly end
//! ```
//!
//! After SIGKILL of the owner the guardian restores; after that of the guardian the owner starts
//! another one; when both are killed at one instant, [`clean`] restores later. Functions say
//! whether they are real-time safe; those that are neither allocate nor lock nor panic, and return
//! [`std::io::Error`] made from an error number.
#![forbid(clippy::panic)]
#![deny(clippy::unwrap_in_result)]

mod adopt;
mod adopted_thread;
mod cgroup;
mod child;
mod clean;
mod command_spec;
mod commands;
mod cpuset;
mod demote;
mod enforcement;
mod exec;
mod exec_clock;
mod frozen;
mod guardian;
mod inject;
mod journal;
mod liveness;
mod lock;
mod own_priority;
mod owner_state;
mod park;
mod privilege;
mod proc;
mod rcu;
mod restore;
mod slot;
mod spawn;
mod spawn_failure;
mod stop;
mod supervise;
mod threads;
mod threads_back;
mod turns;
mod wait_place;
mod waiters;

pub use adopt::{adopt, adopt_with_children, check_adoptable, check_adoptable_thread, Adopted};
pub use adopted_thread::{adopt_thread, AdoptedThread};
pub use cgroup::{Cgroup, CgroupBase};
pub use clean::{clean, leftovers, Leftover};
pub use command_spec::{CommandSpec, Hold, Output, Stream};
pub use commands::{Commands, HeldCommand};
pub use enforcement::Enforcing;
pub use frozen::FrozenProcess;
pub use guardian::Guardian;
pub use journal::{directory as state_directory, Journal, Purpose};
pub use lock::{CpuLock, InheritedLocks, SERVICE};
pub use own_priority::OWN_LEVELS;
pub use park::Park;
pub use privilege::check_privileges;
pub use proc::{descendants, is_kernel_thread, pids, threads_of, Identity};
pub use rcu::rcu_threads;
pub use restore::{restore, RestoreReport};
pub use spawn::{spawn, Spawned};
pub use stop::{StopGroup, LEADER_LEVEL};
pub use threads::Threads;
pub use turns::Executed;
pub use wait_place::ObservedWait;
pub use waiters::WaitSample;
