//! Admission against simulation: random sets, small enough to be simulated until everything has
//! come round. How many is `PUNCTUAL_SETS`, the first seed `PUNCTUAL_SEED`; a set that fails is
//! named with its seed.

mod admitted;
mod costs;
mod random;
mod reclaiming;
mod resource_model;
mod served;
mod shares;
mod timed;
mod tree;
mod watch;

pub use admitted::check_admitted;
pub use costs::{costs, enlarged};
pub use random::{flat, Flat, Random};
pub use reclaiming::reclaiming;
pub use resource_model::{model_accepts, served_by_deadline};
pub use served::{with_adaptive_budgets, with_servers};
pub use shares::with_shares;
pub use timed::{table, timed};
pub use tree::hierarchy;
pub use watch::{simulate, simulate_with, Seen};

/// How many sets to try: `PUNCTUAL_SETS`, or so many.
pub fn sets(by_default: u64) -> u64 {
    number("PUNCTUAL_SETS").unwrap_or(by_default)
}

/// The seeds of the sets to try.
pub fn seeds(by_default: u64) -> std::ops::Range<u64> {
    let first = number("PUNCTUAL_SEED").unwrap_or(0);
    first..first + sets(by_default)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
