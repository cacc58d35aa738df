//! Results: statistics per task, tables for people, JSON for programs.
//!
//! ```text
//! hosts, baselines --Period--> Collector --snapshot()--> Results --> table, live, plain_line, side_by_side
//!                                                       `------> Envelope (docs/run.schema.json)
//! ```
//!
//! ```
//! use punctual_report::{table, Collector, Host, Run, TaskInfo, View};
//!
//! let tasks = vec![TaskInfo::new("servo", 1_000_000, 250_000, 1_000_000)];
//! let mut collector = Collector::new(Run::new(Host::User, "edf", &[1]), tasks);
//! // for each period: collector.record(&period);
//! collector.finish(10_000_000_000); // when the run ended, CLOCK_MONOTONIC
//! let results = collector.snapshot();
//! println!("{}", table(&results, &View::default()));
//! std::process::exit(results.exit_code());
//! ```

pub mod analysis;
mod balance;
mod collector;
mod compare;
mod envelope;
mod grid;
mod groups;
mod headline;
mod live;
mod machine;
mod results;
mod spread;
mod table;
mod units;

pub use collector::{Collector, Run, TaskInfo};
pub use compare::{side_by_side, verdicts};
pub use envelope::{Envelope, ErrorInfo, ErrorPlace, SCHEMA};
pub use headline::headline;
pub use live::{live, plain_line};
pub use results::{
    BudgetReceived, DispatcherStats, GroupKind, GroupResult, Host, HostCostBasis, HostCosts, KernelDispatcherStats,
    Late, LoadResult, Machine, NotPossible, Results, RunResult, TaskKind, TaskResult, TimeSpread, Totals,
};
pub use table::{figures, table, verdict, View};

#[cfg(test)]
mod tests;
