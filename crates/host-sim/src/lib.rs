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
//! let text = r#"
//!     cpu = 0
//!     policy = "edf"
//!     task = [
//!         { name = "a", period = "4ms", budget = "2ms", work = { spin = "2ms" } },
//!         { name = "b", period = "6ms", budget = "3ms", work = { spin = "3ms" } },
//!     ]
//! "#;
//! let set = TaskSet::parse(text, "a text").unwrap();
//! let end = hyperperiod(&set).unwrap();
//! let mut misses = Misses::default();
//! let outcome = Simulation::new(&set, Options::default()).unwrap().run(end, &mut misses).unwrap();
//! // Two of the releases are at the end itself.
//! assert_eq!((end, misses.0, outcome.count.releases), (12_000_000, 0, 5 + 2));
//! ```

mod engine;
mod error;
mod gantt;
mod horizon;
mod inputs;
mod program;
mod record;
mod replay;
mod simulation;
mod task;

pub use engine::Count;
pub use gantt::Gantt;
pub use horizon::{horizon, hyperperiod, Horizon};
pub use program::{ProgramStep, RecordedProgram};
pub use punctual_trace::Interval;
pub use replay::{replay, Difference, ReplayError, Replayed};
pub use simulation::{Options, SimulatedRun, Simulation, Watcher};
