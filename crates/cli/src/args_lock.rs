//! The arguments of `punctual lock`.

use clap::{Args, Subcommand};
use punctual_ipc::Name;

#[derive(Args)]
#[command(
    after_help = "Mutexes, condition variables, semaphores and barriers between programs lie \
in shared memory, in a folder of the user that is closed to others. Programs make them; \
docs/locks.md has the rules.

First steps:
  punctual lock list                        # which there are, who holds them, how many wait
  punctual lock remove bus                  # one that programs left behind

Exit codes: 0 done; 2 bad usage, or there is no such lock; 4 the machine does not permit it."
)]
pub struct LockCommand {
    #[command(subcommand)]
    pub action: LockAction,
}

#[derive(Subcommand)]
pub enum LockAction {
    /// All locks between programs of this user
    List(ListLocks),
    /// Remove the name of a lock; programs that have it open keep it
    Remove(RemoveLocks),
}

impl LockAction {
    pub fn json(&self) -> bool {
        match self {
            Self::List(list) => list.json,
            Self::Remove(remove) => remove.json,
        }
    }
}

#[derive(Args)]
pub struct ListLocks {
    /// The list as JSON on standard output
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct RemoveLocks {
    /// Their names
    #[arg(required = true, value_name = "NAME")]
    pub names: Vec<Name>,
    /// What was removed as JSON on standard output
    #[arg(long)]
    pub json: bool,
}
