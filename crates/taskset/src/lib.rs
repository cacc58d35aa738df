//! Task-set files to plain data, and their errors.
//!
//! [`TaskSet::load`] reads a file, [`TaskSet::parse`] a text, [`TaskSet::single`] makes the set of
//! one task that the command line describes. All three make the same checks, on which the analysis
//! of a set relies. The format is described in `docs/task-set.md`. [`RoleFolders`] finds the roles
//! of a machine, periods and budgets by name (`docs/roles.md`).

mod arrival;
mod arrival_gaps;
mod change;
mod checks;
mod costs;
mod cpus;
mod domain;
mod duration;
mod error;
mod explain;
mod fair;
mod format;
mod group;
mod load;
mod model;
mod objective;
mod policy;
mod problems;
mod reclaim;
mod recording;
pub mod registry;
mod role;
mod role_folders;
mod rt_app;
mod schema;
mod server;
mod set;
mod single;
mod syntax;
mod task;
mod tree;
mod value;
mod windows;
mod work;
mod write;

pub use arrival_gaps::ArrivalGaps;
pub use change::TaskChange;
pub use checks::{
    LARGEST_CPU, LARGEST_PID, LEAST_PERIOD, LONGEST_NAME, MOST_BUDGET_GROUPS, MOST_GROUPS,
    MOST_LEVELS,
};
pub use costs::{CostBasis, Costs};
pub use domain::{cpus_name, DomainId, DomainSpec};
pub use duration::{fmt_ns, parse_duration, DurationError, DURATION_LIMIT};
pub use fair::{FairShare, DEFAULT_QUANTUM, LEAST_QUANTUM, LONGEST_QUANTUM, MOST_WEIGHT};
pub use load::{Loaded, Overrides, LARGEST_FILE};
pub use model::*;
pub use objective::{Objective, ObjectiveError, ReleaseAttributes, LONGEST_OBJECTIVE};
pub use reclaim::PART_FOR_TASKS;
pub use recording::{LARGEST_RECORDING, MOST_RECORDED};
pub use registry::{AdmissionTest, GroupDemand, MemberDemand, PolicyInfo};
pub use role::Role;
pub use role_folders::{FoundRole, RoleFolders, ROLES_VARIABLE, ROLE_FOLDERS};
pub use schema::json_schema;
pub use single::Single;
pub use work::MOST_STEPS;
