//! Keeping CPUs from idling: in a virtual machine the first wake-up on an idle CPU is late by the
//! host's exit and entry.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread::JoinHandle;

use punctual_diagnostic::Diagnostic;
use punctual_sys::sched::{pin, set_idle};
use punctual_sys::thread_name;

/// Spinning threads at SCHED_IDLE, one for each CPU; they stop when this is dropped.
#[derive(Debug)]
pub struct NoIdle {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl NoIdle {
    /// Starts one on each of these CPUs. They take only time that is left, and power.
    ///
    /// # Errors
    /// No thread can be made, or not be put on its CPU.
    pub fn start(cpus: &[u32]) -> Result<NoIdle, Diagnostic> {
        let mut no_idle = NoIdle { stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        for &cpu in cpus {
            let stop = no_idle.stop.clone();
            let spin = move || {
                let placed = set_idle(0).and_then(|()| pin(0, cpu));
                while placed.is_ok() && !stop.load(Relaxed) {
                    std::hint::spin_loop();
                }
            };
            let thread = std::thread::Builder::new()
                .name(thread_name::of_cpu(thread_name::NO_IDLE, cpu))
                .stack_size(64 << 10)
                .spawn(spin)
                .map_err(|e| {
                    Diagnostic::machine(format!("no thread can be made: {e}"), "raise RLIMIT_NPROC")
                })?;
            no_idle.threads.push(thread);
        }
        Ok(no_idle)
    }
}

impl Drop for NoIdle {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            drop(thread.join());
        }
    }
}
