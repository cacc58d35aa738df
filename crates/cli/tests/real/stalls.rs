//! A CPU that executes none of its tasks, nor their dispatcher, for a short time now and then, as while an
//! interrupt is handled or a hypervisor executes another virtual CPU.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The length of a stall.
const LENGTH: Duration = Duration::from_micros(150);
/// From one stall to the next.
const BETWEEN: Duration = Duration::from_millis(4);

/// Stalls of a CPU, until it is dropped.
pub struct Stalls {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stalls {
    /// By a thread at the dispatcher's own priority.
    pub fn start(cpu: u32) -> Stalls {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            to_highest_priority(cpu);
            while !stopped.load(Relaxed) {
                std::thread::sleep(BETWEEN);
                let end = Instant::now() + LENGTH;
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
        });
        Stalls { stop, thread: Some(thread) }
    }
}

impl Drop for Stalls {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The calling thread to this CPU and to SCHED_FIFO 99.
fn to_highest_priority(cpu: u32) {
    // SAFETY: both values live here, and the CPU is within its set.
    let refused = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut set);
        let p = libc::sched_param { sched_priority: 99 };
        libc::sched_setaffinity(0, std::mem::size_of_val(&set), &set) != 0
            || libc::sched_setscheduler(0, libc::SCHED_FIFO, &p) != 0
    };
    assert!(!refused, "{}", std::io::Error::last_os_error());
}
