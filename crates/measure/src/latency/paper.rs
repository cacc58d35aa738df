//! Table 6 as it was printed.

use crate::loads::Workload;

/// The machine of the paper's tables.
pub const TABLE_6_MACHINE: &str = "Pentium III, 1 GHz, 128 MB, RED-Linux (2.4), 2002";

/// A row of Table 6; us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaperRow {
    /// Its workload.
    pub workload: Workload,
    /// The shortest.
    pub min_us: u64,
    /// The mean.
    pub average_us: u64,
    /// The longest.
    pub max_us: u64,
}

const fn row(workload: Workload, min_us: u64, average_us: u64, max_us: u64) -> PaperRow {
    PaperRow { workload, min_us, average_us, max_us }
}

/// "Kernel Latency (In Microseconds)".
pub const TABLE_6: [PaperRow; 10] = [
    row(Workload::Idle, 1, 1, 37),
    row(Workload::Memory, 1, 4, 87),
    row(Workload::CapsLock, 1, 2, 9166),
    row(Workload::Console, 1, 1, 63),
    row(Workload::IoBoth, 1, 1, 94),
    row(Workload::IoWrite, 1, 1, 49),
    row(Workload::IoRead, 1, 1, 75),
    row(Workload::Procfs, 1, 2, 115),
    row(Workload::Fork, 1, 4, 117),
    row(Workload::NonRealTime, 14304, 19880, 21144),
];

impl PaperRow {
    /// The paper's row of a workload; `None` for the network, which it did not measure.
    #[must_use]
    pub fn of(workload: Workload) -> Option<PaperRow> {
        TABLE_6.into_iter().find(|row| row.workload == workload)
    }
}
