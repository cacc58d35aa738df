//! What the libraries with classic interfaces (RTAI's, RT-Linux's) have in common: the sets in
//! which the threads and processes of a program are tasks of Punctual.
//!
//! ```text
//! ClassicSets     those of this program, one for each CPU that its tasks execute on, each made
//!   CpuSet        when the first task needs it: by the service, or with a dispatcher of its own
//!     TaskShare   what a task has: a budget of its own, or a part of the group's
//! InterfaceNames  what the interface calls itself, its group and its settings
//! PiMutex         what threads of all priorities share
//! ```
//!
//! By the service, where one listens, each task is a reservation of its own. Else this program has
//! a dispatcher, with a scheduling group for the tasks that have no budget: they share its budget,
//! and have fixed priorities among them, so that a runaway one cannot lock the machine.

mod pi_mutex;
mod report;
mod set;
mod sets;
mod settings;

pub use pi_mutex::PiMutex;
pub use report::report_refusal;
pub use set::{budget_signal_is_handled, CpuSet, MemberId, TaskShare};
pub use sets::ClassicSets;
pub use settings::InterfaceNames;
