//! The floor under every dispatcher in user space: a bare SCHED_FIFO 99 thread that wakes by
//! clock_nanosleep at given instants, reads one CPU clock and changes one priority, while a
//! spinning SCHED_FIFO task and an ordinary background load run beneath.

use crate::threads::{self, Load};
use crate::Failure;
use punctual_host_user::now;
use punctual_sys::clock::{sleep_until, CpuClock};
use punctual_sys::sched::{pin, thread_id};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

/// What a window of it, or of the dispatcher, came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// Length, ns.
    pub wall: u64,
    pub events: u64,
    /// CPU clock of the thread itself, ns.
    pub own: u64,
    /// Wall time that neither tasks nor load got, ns.
    pub lost: u64,
}

impl Cost {
    pub fn own_per_event(&self) -> f64 {
        self.own as f64 / self.events.max(1) as f64
    }

    pub fn lost_per_event(&self) -> f64 {
        self.lost as f64 / self.events.max(1) as f64
    }
}

/// Counters at one moment, all in ns.
#[derive(Clone, Copy, Default)]
pub struct Reading {
    pub wall: u64,
    pub events: u64,
    pub own: u64,
    /// Execution time of tasks and load.
    pub others: u64,
}

impl Reading {
    pub fn until(&self, later: &Reading) -> Cost {
        Cost {
            wall: later.wall - self.wall,
            events: later.events - self.events,
            own: later.own - self.own,
            lost: (later.wall - self.wall).saturating_sub(later.others - self.others),
        }
    }
}

/// Levels between which the task is moved.
const LEVELS: [i32; 2] = [50, 51];
/// The task spins as large a share as Table 2's set, in a cycle so long that its own sleeping and
/// waking cost nothing beside the events.
const SPINS: u64 = 70_000_000;
const CYCLE: u64 = 100_000_000;
/// How late the end may be read, ns.
const MARGIN: u64 = 100_000_000;
/// Why a window has to be repeated.
pub const TOO_BUSY: &str = "the machine was too busy to read the clocks in time";
/// Left out at the beginning.
const WARM_UP: u64 = 100_000_000;

/// Replays `instants` (ns from the first), never waking nearer than `granularity`.
pub fn window(cpu: u32, instants: &[u64], granularity: u64) -> Result<Cost, Failure> {
    let length = instants.last().copied().unwrap_or(0);
    let life = length + 500_000_000;
    let load = Load::ordinary(cpu, life);
    let task = Load::fifo(cpu, LEVELS[0], life, SPINS, CYCLE);
    let tid = task.tid();
    let events = Arc::new(AtomicU64::new(0));
    let origin = now() + 50_000_000;
    let (ready, is_ready) = std::sync::mpsc::channel();
    let (was_read, is_read) = std::sync::mpsc::channel::<()>();
    let bare = {
        let (events, instants) = (events.clone(), instants.to_vec());
        std::thread::Builder::new().name("bare".into()).spawn(move || -> std::io::Result<()> {
            pin(0, cpu)?;
            threads::set_level(0, 99)?;
            let _ = ready.send(thread_id());
            let clock = CpuClock::of_thread(tid);
            for (n, &at) in instants.iter().enumerate() {
                sleep_until((origin + at).max(now() + granularity));
                std::hint::black_box(clock.read().unwrap_or(0));
                drop(threads::set_level(tid, LEVELS[(n + 1) % 2]));
                events.store(n as u64 + 1, Relaxed);
            }
            // Its clock goes with it.
            let _ = is_read.recv();
            Ok(())
        })?
    };
    let own = CpuClock::of_thread(
        is_ready.recv().map_err(|_| "the bare thread may not have SCHED_FIFO 99")?,
    );
    let read = || Reading {
        wall: now(),
        events: events.load(Relaxed),
        own: own.read().unwrap_or(0),
        others: CpuClock::of_thread(tid).read().unwrap_or(0)
            + CpuClock::of_thread(load.tid()).read().unwrap_or(0),
    };
    sleep_until(origin + WARM_UP);
    let begin = read();
    sleep_until(origin + length.saturating_sub(20_000_000));
    let end = read();
    drop(was_read);
    bare.join().map_err(|_| "the bare thread panicked")??;
    // Read so late, by a busy machine, that the load beneath has ended.
    if end.wall > origin + length + MARGIN {
        return Err(TOO_BUSY.into());
    }
    Ok(begin.until(&end))
}
