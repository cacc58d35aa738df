//! A CPU that executes none of its tasks, nor their dispatcher, for a short time now and then, as
//! while an interrupt is handled or a hypervisor executes another virtual CPU.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use punctual_sys::sched;

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
            sched::pin(0, cpu)
                .and_then(|()| sched::set_fifo(0, 99))
                .expect("this machine permits it");
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
