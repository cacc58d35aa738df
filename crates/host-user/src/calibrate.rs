//! How finely this machine can be steered: measured at start, on the CPU itself.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Arc;

use crate::sched;
use punctual_sys::sched::pin;
use punctual_sys::{clock, futex};

/// What a CPU's timers are good for, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision {
    /// From a timer's time to the dispatcher's running, with the CPU busy: median.
    pub wake: u64,
    /// Remaining time under this counts as none; the timer is never armed nearer.
    pub granularity: u64,
}

const WAKES: usize = 21;
const AHEAD: u64 = 150_000;

/// The thread beneath ends by itself after this, ns.
const LIMIT: u64 = 200_000_000;

/// Measures the calling thread's CPU, to which it is pinned at the dispatcher's level. Takes some 6
/// ms; a thread beneath keeps the CPU from idling meanwhile. It is not waited for: a program that
/// keeps the CPU from it would keep us waiting.
pub fn measure(cpu: u32) -> Precision {
    let stop = Arc::new(AtomicBool::new(false));
    let limit = clock::monotonic_ns() + LIMIT;
    let spinner = {
        let stop = stop.clone();
        std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            // It was made by a real-time thread: down first, then spin.
            let below = sched::set_level(0, sched::LOWEST).and_then(|()| pin(0, cpu));
            while below.is_ok() && !stop.load(Ordering::Relaxed) && clock::monotonic_ns() < limit {
                std::hint::spin_loop();
            }
        })
    };
    let word = AtomicU32::new(0);
    let mut late = [0; WAKES];
    for l in &mut late {
        let at = clock::monotonic_ns() + AHEAD;
        futex::wait(&word, 0, at);
        *l = clock::monotonic_ns().saturating_sub(at);
    }
    stop.store(true, Ordering::Relaxed);
    drop(spinner);
    late.sort_unstable();
    precision(late[WAKES / 2])
}

/// Arming nearer than a wake takes makes a storm of timers; far above it, budgets grow coarse.
fn precision(wake: u64) -> Precision {
    Precision { wake, granularity: wake.clamp(6_000, 25_000) }
}
