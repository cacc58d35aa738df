//! Threads of this process that load a CPU. Each ends by itself after its time at the latest.

use punctual_host_user::now;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::Arc;
use std::thread::JoinHandle;

/// SCHED_FIFO at `level` on `cpu`, or SCHED_OTHER for level 0; `tid` 0 is the caller.
pub fn set_level(tid: i32, level: i32) -> std::io::Result<()> {
    let param = libc::sched_param { sched_priority: level };
    let policy = if level > 0 { libc::SCHED_FIFO } else { libc::SCHED_OTHER };
    // SAFETY: `param` is valid for the call.
    match unsafe { libc::sched_setscheduler(tid, policy, &param) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Lets the calling thread run on these CPUs only.
pub fn pin(cpus: impl IntoIterator<Item = u32>) -> std::io::Result<()> {
    // SAFETY: the set is valid for the call; CPU_SET checks the number.
    let code = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        for cpu in cpus {
            libc::CPU_SET(cpu as usize, &mut set);
        }
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    match code {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// A clock, ns.
pub fn read(clock: libc::clockid_t) -> u64 {
    let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `t` is valid for the call.
    unsafe { libc::clock_gettime(clock, &mut t) };
    t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
}

/// CPU clock of a thread of this process (clock_getres(2): per thread, scheduler's).
pub fn clock_of(tid: i32) -> libc::clockid_t {
    (!tid << 3) | 6
}

/// Sleeps until then, CLOCK_MONOTONIC ns.
pub fn sleep_until(at: u64) {
    let t = libc::timespec { tv_sec: (at / 1_000_000_000) as _, tv_nsec: (at % 1_000_000_000) as _ };
    // SAFETY: `t` is valid for the call.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &t, std::ptr::null_mut()) };
}

/// A thread that spins until dropped.
pub struct Load {
    tid: i32,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    /// An ordinary hog.
    pub fn hog(cpu: u32, life: u64) -> Load {
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
                let placed = pin([cpu]).and_then(|()| set_level(0, level));
                // SAFETY: no arguments.
                tid.store(unsafe { libc::gettid() }, Ordering::SeqCst);
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

/// Tid of this process's thread of that name.
pub fn named(name: &str) -> Option<i32> {
    std::fs::read_dir("/proc/self/task").ok()?.flatten().find_map(|entry| {
        let comm = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (comm.trim_end() == name).then(|| entry.file_name().to_str()?.parse().ok()).flatten()
    })
}
