//! The workloads of RED-Linux's Table 6, and the loads that make them: stress-ng where it is
//! installed, else our own.
//!
//! A load is an ordinary process on the measured CPU. It has a process group of its own, dies with
//! the thread that started it, ends by itself after its life, and its files have no names.

mod built_in;
mod console;
mod process;
mod stress_ng;

use serde::{Deserialize, Serialize};
use std::fmt;

pub(crate) use process::{become_load, LoadProcess, Rounds};
use punctual_workload::BackgroundLoad;

/// A row of Table 6, and one for the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// Nothing beside the job.
    Idle,
    /// Page faults.
    Memory,
    /// The caps-lock light goes on and off.
    CapsLock,
    /// The virtual console changes.
    Console,
    /// A file is read and written.
    IoBoth,
    /// A file is written.
    IoWrite,
    /// A file is read.
    IoRead,
    /// Files of /proc are read.
    Procfs,
    /// Processes are created and end.
    Fork,
    /// Datagrams on the loopback interface.
    Network,
    /// Pictures are filled and copied in memory; for the square wave, in no table.
    Graphics,
    /// An ordinary job (SCHED_OTHER) beside a CPU-bound process.
    NonRealTime,
}

impl Workload {
    /// The rows, in the paper's order; the network, which it does not have, before the last.
    pub const ALL: [Workload; 11] = [
        Workload::Idle,
        Workload::Memory,
        Workload::CapsLock,
        Workload::Console,
        Workload::IoBoth,
        Workload::IoWrite,
        Workload::IoRead,
        Workload::Procfs,
        Workload::Fork,
        Workload::Network,
        Workload::NonRealTime,
    ];

    /// Its name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Workload::Idle => "idle",
            Workload::Memory => "memory",
            Workload::CapsLock => "caps-lock",
            Workload::Console => "console",
            Workload::IoBoth => "io-both",
            Workload::IoWrite => "io-write",
            Workload::IoRead => "io-read",
            Workload::Procfs => "procfs",
            Workload::Fork => "fork",
            Workload::Network => "network",
            Workload::Graphics => "graphics",
            Workload::NonRealTime => "non-real-time",
        }
    }

    /// The workload of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Workload> {
        Workload::ALL.into_iter().find(|workload| workload.name() == name)
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What makes the loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// stress-ng(1).
    StressNg,
    /// Punctual.
    BuiltIn,
}

/// A workload that runs; ended when dropped.
#[derive(Debug)]
pub struct RunningLoad {
    kind: Kind,
    /// What makes it; `None`: nothing runs.
    pub generator: Option<Generator>,
}

#[derive(Debug)]
enum Kind {
    Nothing,
    CpuBound { _process: BackgroundLoad },
    Process(LoadProcess),
}

impl RunningLoad {
    /// Starts a workload on `cpu`, to live at most `life` ns; `generator`: made by it alone, or
    /// with `None` by stress-ng where it is installed.
    ///
    /// # Errors
    /// Why this machine cannot have it, in one phrase.
    pub fn start(
        workload: Workload,
        cpu: u32,
        life: u64,
        generator: Option<Generator>,
    ) -> Result<RunningLoad, String> {
        let running = |kind, generator| Ok(RunningLoad { kind, generator });
        match workload {
            Workload::Idle => return running(Kind::Nothing, None),
            Workload::NonRealTime => {
                let load = BackgroundLoad::start(cpu, life)
                    .map_err(|e| format!("no process can be made: {e}"))?;
                return running(Kind::CpuBound { _process: load }, Some(Generator::BuiltIn));
            }
            _ => {}
        }
        if generator != Some(Generator::BuiltIn) {
            if let Some(load) = stress_ng::start(workload, cpu, life)? {
                return running(Kind::Process(load), Some(Generator::StressNg));
            }
        }
        if generator == Some(Generator::StressNg)
            && !matches!(workload, Workload::CapsLock | Workload::Console)
        {
            return Err("stress-ng is not installed (package stress-ng)".to_owned());
        }
        let load = LoadProcess::fork(built_in::prepare(workload)?, cpu, life)?;
        running(Kind::Process(load), Some(Generator::BuiltIn))
    }

    /// How the load ended before its time, if it did: what was measured then is not under load.
    pub fn early_end(&mut self) -> Option<String> {
        match &mut self.kind {
            Kind::Process(load) => load.early_end(),
            Kind::Nothing | Kind::CpuBound { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn names_are_found_again() {
        for workload in Workload::ALL {
            assert_eq!(Workload::named(workload.name()), Some(workload));
        }
        assert_eq!(Workload::named("disk"), None);
    }

    /// Loads that need no console.
    const PLAIN: [Workload; 8] = [
        Workload::Memory,
        Workload::IoBoth,
        Workload::IoWrite,
        Workload::IoRead,
        Workload::Procfs,
        Workload::Fork,
        Workload::Network,
        Workload::Graphics,
    ];

    #[test]
    fn built_in_loads_execute_and_are_gone_when_dropped() {
        for workload in PLAIN {
            let mut load =
                RunningLoad::start(workload, 0, 60_000_000_000, Some(Generator::BuiltIn))
                    .unwrap_or_else(|why| panic!("{workload}: {why}"));
            let Kind::Process(process) = &load.kind else { panic!("{workload} is a process") };
            let (pid, clock) = (process.pid(), process.clock());
            let limit = Instant::now() + Duration::from_secs(60);
            while clock.read().unwrap_or(0) < 1_000_000 {
                assert!(Instant::now() < limit, "{workload} does not execute");
                assert_eq!(load.early_end(), None, "{workload}");
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(load);
            // SAFETY: signal 0 only asks whether the process exists.
            assert_eq!(unsafe { libc::kill(pid, 0) }, -1, "{workload} is left");
        }
    }

    #[test]
    fn a_load_ends_by_itself_after_its_life_and_that_is_reported() {
        let mut load = RunningLoad::start(Workload::Procfs, 0, 1_000_000, Some(Generator::BuiltIn))
            .expect("it starts");
        let limit = Instant::now() + Duration::from_secs(60);
        let end = loop {
            if let Some(end) = load.early_end() {
                break end;
            }
            assert!(Instant::now() < limit, "it does not end");
            std::thread::sleep(Duration::from_millis(1));
        };
        assert!(end.contains("ended"), "{end}");
    }

    #[test]
    fn a_console_load_starts_or_says_why_not() {
        // Not started here: a test must not switch the consoles of the machine.
        for prepared in
            [console::why_no_console(), console::why_no_caps_lock()].into_iter().flatten()
        {
            assert!(!prepared.is_empty());
        }
    }
}
