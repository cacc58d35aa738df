//! The limits of a dispatcher, which a trace's header carries for its replay.

use serde::{Deserialize, Serialize};

/// Limits of a dispatcher, fixed at its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Jobs at one time (server jobs and segments are jobs), 1 to 2^20.
    pub jobs: u32,
    /// Tasks, 1 to 2^20.
    pub tasks: u32,
    /// Reservations, at most 2^20.
    pub reservations: u32,
    /// Scheduling groups, 1 to 1,024; group 0 is one of them.
    pub groups: u32,
    /// Budget-group nodes, at most 1,024, numbered from 1.
    pub budget_groups: u32,
    /// Timers that allocators ask for, at most 2^20.
    pub timers: u32,
    /// Levels of either tree, 1 to 64.
    pub depth: u32,
    /// Events that may wait to be taken: a power of two.
    pub events: u32,
    /// Records in the trace ring, 32 bytes each: a power of two.
    pub records: u32,
    /// Windows of all reservations together (the time-driven table), at most 2^20.
    pub windows: u32,
}

impl Limits {
    /// Levels of groups where nothing else is said.
    pub const DEPTH: u32 = 16;

    /// Room for so many periodic tasks in group 0, one job each, and the last 65,536 trace records.
    pub fn for_tasks(tasks: u32) -> Limits {
        Limits {
            jobs: tasks + 1,
            tasks,
            reservations: tasks,
            groups: 1,
            budget_groups: 0,
            timers: 0,
            depth: Limits::DEPTH,
            events: (8 * (tasks + 8)).next_power_of_two(),
            records: 1 << 16,
            windows: 0,
        }
    }

    /// Records that one instant makes at most, at which every job may end and begin: a power of
    /// two.
    pub fn records_at_once(&self) -> u32 {
        self.jobs.saturating_mul(16).clamp(1 << 12, 1 << 24).next_power_of_two()
    }
}
