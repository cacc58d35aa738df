//! Inside a virtual machine: the kernel's own policies, measured from user space, and the program
//! that is measured under ours. What it sees is written to standard output or a file; crate::kernel
//! reads it.

use std::fmt::Write as _;
use std::path::Path;

use punctual_host_user::now;
use punctual_sys::clock::{sleep_until, thread_cpu_ns};
use punctual_sys::sched::{pin, Attributes, Children};
use punctual_workload::BackgroundLoad;
use serde_json::{json, Value};

use crate::threads::{apart, set_level};
use crate::Failure;

pub const PERIOD: u64 = 2_000_000;
pub const BUDGET: u64 = 1_000_000;
/// Left out at the beginning of each sample.
pub const SKIPPED: usize = 10;
const PERIODS: u64 = 500;
/// Bursts that are written down: the run's first second and more.
const BURSTS: usize = 600;
/// Who did not execute for so long, ns, was stopped meanwhile. An interrupt takes less.
const GAP: u64 = 15_000;
const LOAD_LIFE: u64 = 60_000_000_000;

/// Of SCHED_FIFO and SCHED_DEADLINE, beside a background load on the only CPU, ns.
pub fn baselines() -> Result<Value, Failure> {
    settle();
    let _load = BackgroundLoad::start(0, LOAD_LIFE)?;
    let fifo = apart(|| {
        pin(0, 0)?;
        set_level(0, 99)?;
        Ok(wakeups())
    })?;
    let deadline = apart(|| {
        reserve()?;
        Ok(wakeups())
    })?;
    let bursts = apart(|| {
        reserve()?;
        Ok(spin(BURSTS))
    })?;
    Ok(json!({ "fifo_wakeup_ns": fifo, "deadline_wakeup_ns": deadline,
        "deadline_bursts_ns": lengths(&bursts) }))
}

/// Until the kernel does nothing by itself.
pub fn settle() {
    while busy_with_self_tests() {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

/// The kernel tests its ciphers for some seconds after boot.
fn busy_with_self_tests() -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return false };
    let names =
        processes.flatten().filter_map(|p| std::fs::read_to_string(p.path().join("comm")).ok());
    names.into_iter().any(|name| name.starts_with("cryptomgr"))
}

/// SCHED_DEADLINE for the calling thread: BUDGET in each PERIOD.
fn reserve() -> Result<(), Failure> {
    let wanted = Attributes::deadline(BUDGET, PERIOD, PERIOD, Children::Inherit);
    wanted.give(0).map_err(|e| format!("SCHED_DEADLINE: {e}").into())
}

/// How late a sleeper sees the time that it waited for.
fn wakeups() -> Vec<u64> {
    let begin = now() + PERIOD;
    let late = |n: u64| {
        sleep_until(begin + n * PERIOD);
        now() - (begin + n * PERIOD)
    };
    // The first ones touch what no one touched before.
    (0..PERIODS + SKIPPED as u64).map(late).skip(SKIPPED).collect()
}

/// When a burst of execution began, and the thread's CPU clock then.
type Burst = (u64, u64);

/// Spins through so many bursts; whatever stops us decides how long each is.
fn spin(count: usize) -> Vec<Burst> {
    let mut bursts = Vec::with_capacity(count);
    let mut last = now();
    while bursts.len() < count {
        let at = now();
        if at - last > GAP {
            bursts.push((at, thread_cpu_ns()));
        }
        last = at;
    }
    bursts
}

/// Execution from one burst's beginning to the next one's.
fn lengths(bursts: &[Burst]) -> Vec<u64> {
    bursts.windows(2).skip(SKIPPED).map(|pair| pair[1].1 - pair[0].1).collect()
}

/// The program under measurement: writes down when its bursts began, and spins on for ever.
pub fn burst(file: &Path) -> Result<(), Failure> {
    let mut text = String::new();
    for (at, _) in spin(BURSTS) {
        writeln!(text, "{at}")?;
    }
    std::fs::write(file, text)?;
    loop {
        std::hint::spin_loop();
    }
}
