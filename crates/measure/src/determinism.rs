//! How deterministic a machine is, as rt-exec asks it (the PREEMPT_RT article): an executive at a
//! heart-beat rate releases real-time tasks by each primitive that programs use for it, and each
//! task keeps the best and the worst latency from its release to its first instruction. *Worst less
//! best is its determinism.*
//!
//! ```text
//! TASKS ── measure ──> executive, 16 task threads ──> TaskStatistics ──> DeterminismRun ──> table
//! ```
//!
//! The article has neither rt-exec's source nor definitions: what its columns and kinds mean is our
//! reading of its three tables, with the reasons in docs/measure.md.

mod executive;
mod figures;
mod kinds;
mod primitives;
mod run;
mod statistics;
mod table;
mod work;

pub use figures::{CpuUse, DeterminismResult, DeterminismRun, TaskFigures};
pub use kinds::ReleaseKind;
pub use run::{measure, DeterminismConfig};
pub use table::{figures_line, figures_table, machine_line, verdict};
