//! Threads of this process: those that measure, and those that load a CPU. Each of the latter ends
//! by itself after its time at the latest.

use crate::Failure;
use punctual_host_user::now;
use punctual_sys::clock::sleep_until;
use punctual_sys::sched::{self, Children};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// SCHED_FIFO at `level`, or SCHED_OTHER for level 0; `tid` 0 is the caller.
pub fn set_level(tid: i32, level: i32) -> std::io::Result<()> {
    sched::set_level(tid, level, Children::Inherit)
}

/// A thread that spins until dropped.
pub struct Load {
    tid: i32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// An ordinary one.
    pub fn ordinary(cpu: u32, life: u64) -> Load {
        Load::start(cpu, 0, life, u64::MAX, u64::MAX)
    }

    /// SCHED_FIFO at `level`, spinning for `on` ns in every `cycle`.
    pub fn fifo(cpu: u32, level: i32, life: u64, on: u64, cycle: u64) -> Load {
        Load::start(cpu, level, life, on, cycle)
    }

    fn start(cpu: u32, level: i32, life: u64, on: u64, cycle: u64) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let tid = Arc::new(AtomicI32::new(0));
        let end = now() + life;
        let thread = {
            let (stop, tid) = (stop.clone(), tid.clone());
            std::thread::spawn(move || {
                let placed = sched::pin(0, cpu).and_then(|()| set_level(0, level));
                tid.store(sched::thread_id(), Ordering::SeqCst);
                let mut begin = now();
                while placed.is_ok() && !stop.load(Ordering::Relaxed) && now() < end {
                    while now() - begin < on && !stop.load(Ordering::Relaxed) && now() < end {
                        std::hint::spin_loop();
                    }
                    begin = begin.saturating_add(cycle);
                    sleep_until(begin.min(end));
                }
            })
        };
        while tid.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        Load { tid: tid.load(Ordering::SeqCst), stop, thread: Some(thread) }
    }

    /// Its thread.
    pub fn tid(&self) -> i32 {
        self.tid
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// Measures in a thread of its own, whose policy and CPU end with it.
pub fn apart<T: Send>(measure: impl FnOnce() -> Result<T, Failure> + Send) -> Result<T, Failure> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| measure().map_err(|e| e.to_string()));
        thread.join().map_err(|_| "a measuring thread panicked")?.map_err(Failure::from)
    })
}

/// Tid of this process's thread of that name.
pub fn named(name: &str) -> Option<i32> {
    std::fs::read_dir("/proc/self/task").ok()?.flatten().find_map(|entry| {
        let comm = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (comm.trim_end() == name).then(|| entry.file_name().to_str()?.parse().ok()).flatten()
    })
}
