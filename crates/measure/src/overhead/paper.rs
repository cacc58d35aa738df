//! The papers' figures as they were printed, and what they are in cycles of the papers' machines.

use serde::{Deserialize, Serialize};

use crate::cycles::{CycleRate, MeasuredTime};

/// A machine of a paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PaperMachine {
    /// The processor, as the paper names it.
    pub cpu: &'static str,
    /// Its clock, kHz.
    pub khz: u64,
}

impl PaperMachine {
    const fn new(cpu: &'static str, khz: u64) -> PaperMachine {
        PaperMachine { cpu, khz }
    }

    /// A time of the paper with its cycles.
    #[must_use]
    pub fn time(&self, ns: u64) -> MeasuredTime {
        CycleRate::of(self.khz).time(ns)
    }
}

const PIII_500: PaperMachine = PaperMachine::new("Pentium III 500", 497_550);
const CELERON_400: PaperMachine = PaperMachine::new("Celeron 400", 399_060);
const PII_266: PaperMachine = PaperMachine::new("Pentium II 266", 266_670);
/// Of RED-Linux's tables.
pub const RED_LINUX: PaperMachine = PaperMachine::new("Pentium III 1 GHz", 1_000_000);
/// Of RT-Linux's square wave.
pub const RT_LINUX: PaperMachine = PaperMachine::new("Pentium 120 MHz", 120_000);

/// Which tasks RTAI's tables are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PaperTasks {
    /// Table 2: RTAI tasks, inside the kernel.
    Rtai,
    /// Table 3: LXRT tasks, in user space.
    Lxrt,
}

/// A row of RTAI's Tables 2 and 3.
#[derive(Debug, Clone, Copy)]
pub struct PaperEvent {
    /// The table.
    pub tasks: PaperTasks,
    /// The machine, of the paper's Table 1.
    pub machine: PaperMachine,
    /// Mean overhead of a timer expiration, ns.
    pub average_ns: u64,
    /// The greatest, ns.
    pub max_ns: u64,
}

const fn event(
    tasks: PaperTasks,
    machine: PaperMachine,
    average_ns: u64,
    max_ns: u64,
) -> PaperEvent {
    PaperEvent { tasks, machine, average_ns, max_ns }
}

/// "System overheads of the implementation for real-time RTAI tasks", and "LXRT tasks".
pub const RTAI_TABLES_2_3: [PaperEvent; 6] = [
    event(PaperTasks::Rtai, PIII_500, 5_780, 7_000),
    event(PaperTasks::Rtai, CELERON_400, 6_880, 8_000),
    event(PaperTasks::Rtai, PII_266, 6_380, 10_000),
    event(PaperTasks::Lxrt, PIII_500, 19_820, 35_000),
    event(PaperTasks::Lxrt, CELERON_400, 27_080, 56_000),
    event(PaperTasks::Lxrt, PII_266, 34_690, 96_000),
];

/// A row of RED-Linux's Table 5.
#[derive(Debug, Clone, Copy)]
pub struct PaperDecision {
    /// Jobs in the dispatcher.
    pub jobs: u32,
    /// The shortest delay, ns.
    pub min_ns: u64,
    /// The mean, ns.
    pub average_ns: u64,
    /// The longest, ns.
    pub max_ns: u64,
}

/// "Dispatcher Delays (In Microseconds)".
pub const RED_LINUX_TABLE_5: [PaperDecision; 3] = [
    PaperDecision { jobs: 1, min_ns: 240, average_ns: 1_140, max_ns: 22_390 },
    PaperDecision { jobs: 10, min_ns: 280, average_ns: 1_270, max_ns: 24_650 },
    PaperDecision { jobs: 100, min_ns: 440, average_ns: 4_110, max_ns: 96_590 },
];

impl PaperDecision {
    /// The paper's row for so many jobs.
    #[must_use]
    pub fn of(jobs: u32) -> Option<PaperDecision> {
        RED_LINUX_TABLE_5.into_iter().find(|row| row.jobs == jobs)
    }
}

/// RTAI's Fig. 6 has so many periods of each task.
pub const FIG_6_PERIODS: u64 = 500;
/// "During the entire experiment, no more than 3 violations were observed over 500 periods."
pub const FIG_6_VIOLATIONS: u64 = 3;
/// "In about 10% of the periods, the MPEG player received a budget that was different."
pub const FIG_6_PLAYER_PPM: u64 = 100_000;

/// Time between the edges of RT-Linux's square wave, of each task, ns.
pub const SQUARE_WAVE_PERIOD: u64 = 100_000;
/// "A square wave with a maximum variation of 15 usec even during very heavy system load", ns.
pub const SQUARE_WAVE_VARIATION: u64 = 15_000;
/// Context switch of a real-time process with the system call for it, cycles of a 486, "calculated;
/// no cache and TLB misses was assumed".
pub const SWITCH_CYCLES: u64 = 224;
