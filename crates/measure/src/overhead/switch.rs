//! RT-Linux, section 3: a switch between two real-time threads with the system call for it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{yield_now, Builder};
use std::time::Duration;

use punctual_sys::clock::monotonic_ns;
use punctual_sys::sched;

use super::result::SwitchCost;
use super::OverheadPlan;
use crate::cycles::{ticks, CycleRate};
use crate::distribution::Distribution;
use crate::periodic::FIFO_PRIORITY;

/// Yields of one thread in a batch, each with two switches: there and back.
const BATCH: u64 = 100;
/// A rest while the threads become ready.
const REST: Duration = Duration::from_millis(1);
/// Both threads end after this at the latest, ns.
const LIFE: u64 = 100_000_000;

/// Lets two SCHED_FIFO threads of one priority yield to each other, for some 50 ms.
///
/// # Errors
/// Why not, in one phrase.
pub(super) fn measure(plan: &OverheadPlan, rate: &CycleRate) -> Result<SwitchCost, String> {
    let (ready, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let refused = |e: std::io::Error| format!("SCHED_FIFO on CPU {}: {e}", plan.cpu);
    let begin = || sched::pin(0, plan.cpu).and_then(|()| sched::set_fifo(0, FIFO_PRIORITY));
    let end = monotonic_ns() + LIFE;
    let times = std::thread::scope(|scope| {
        let other = Builder::new().spawn_scoped(scope, || -> std::io::Result<()> {
            // The measuring thread may be on this CPU, and would never become SCHED_FIFO.
            while !ready.load(Relaxed) && monotonic_ns() < end {
                std::thread::sleep(REST);
            }
            begin()?;
            while !over.load(Relaxed) && monotonic_ns() < end {
                yield_now();
            }
            sched::set_other(0)
        })?;
        let measuring =
            Builder::new().spawn_scoped(scope, || -> std::io::Result<Distribution> {
                begin()?;
                ready.store(true, Relaxed);
                // The other thread is there by then.
                std::thread::sleep(10 * REST);
                let mut times = Distribution::new();
                while monotonic_ns() < end - LIFE / 2 {
                    let begun = ticks();
                    (0..BATCH).for_each(|_| yield_now());
                    times.add((ticks() - begun) / (2 * BATCH));
                }
                over.store(true, Relaxed);
                sched::set_other(0)?;
                Ok(times)
            })?;
        let panicked = |_| std::io::Error::other("a thread panicked");
        other.join().map_err(panicked)??;
        measuring.join().map_err(panicked)?
    });
    let spread = times.map_err(refused)?.spread().ok_or("the CPU was never free for it")?;
    Ok(SwitchCost {
        batches: spread.count,
        min: rate.ticked(spread.min_ns),
        average: rate.ticked(spread.average_ns),
        p50: rate.ticked(spread.p50_ns),
    })
}
