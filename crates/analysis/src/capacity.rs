//! What a host offers of each of its CPUs.

use punctual_taskset::Costs;

use crate::cap::JobCap;
use crate::utilization::{Ppm, WHOLE};

/// The most of a CPU that budgets may be, 90 %. The rest runs the dispatcher, kernel threads and
/// ordinary programs; it is below the kernel's limit for real-time tasks, 95 %.
pub const LIMIT: Ppm = Ppm(900_000);

/// As [`LIMIT`], where the dispatcher is inside the kernel: 95 %. That host itself leaves a
/// twentieth of each CPU to best-effort tasks.
pub const KERNEL_LIMIT: Ppm = Ppm(950_000);

/// What a host offers of each of its CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// The most of a CPU that budgets may be.
    pub limit: Ppm,
    /// The most of a CPU that budgets and the host's own work may be together.
    pub total: Ppm,
    /// What the host takes for its own work, and the least budget that it enforces.
    pub costs: Costs,
    /// What jobs may execute at most in a shorter time.
    pub cap: Option<JobCap>,
}

impl Capacity {
    /// A host that takes no time itself, with [`LIMIT`]: pure theory.
    pub const THEORY: Capacity =
        Capacity { limit: LIMIT, total: Ppm(WHOLE), costs: Costs::NONE, cap: None };
}
