//! The simulator: a host in exact virtual time, with the same dispatcher and the same policies as
//! the other hosts (design, "Host: sim").
//!
//! ```
//! use punctual_host_sim::{hyperperiod, Options, Simulation, Watcher};
//! use punctual_taskset::TaskSet;
//! use punctual_trace::Period;
//!
//! #[derive(Default)]
//! struct Misses(u64);
//! impl Watcher for Misses {
//!     fn period(&mut self, period: &Period) {
//!         self.0 += u64::from(period.miss);
//!     }
//! }
//!
//! let text = "cpu = 0\npolicy = \"edf\"\n[[task]]\nname = \"a\"\nperiod = \"4ms\"\nbudget = \"2ms\"\n\
//!     work = { spin = \"2ms\" }\n[[task]]\nname = \"b\"\nperiod = \"6ms\"\nbudget = \"3ms\"\nwork = { spin = \"3ms\" }";
//! let set = TaskSet::parse(text, "a text").unwrap();
//! let end = hyperperiod(&set).unwrap();
//! let mut misses = Misses::default();
//! let outcome = Simulation::new(&set, Options::default()).unwrap().run(end, &mut misses).unwrap();
//! assert_eq!((end, misses.0, outcome.count.releases), (12_000_000, 0, 5 + 2)); // two of them at the end
//! ```

mod engine;
mod error;
mod gantt;
mod horizon;
mod inputs;
mod record;
mod replay;
mod simulation;
mod task;

pub use engine::Count;
pub use gantt::Gantt;
pub use horizon::{horizon, hyperperiod, Horizon};
pub use punctual_trace::Interval;
pub use replay::{replay, Difference, ReplayError, Replayed};
pub use simulation::{Options, Outcome, Simulation, Watcher};
