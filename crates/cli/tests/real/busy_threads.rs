//! Roles of this test binary (see adversarial.rs) with threads that keep each other from the CPU.
//! Each thread writes its progress into its own line of a file, as a decimal number.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::Arc;
use std::time::{Duration, Instant};

use punctual_sys::sched;

use crate::adversarial::{read, LIFE};

/// The characters of a line, with its end.
const LINE: usize = 21;

struct Progress(File);

impl Progress {
    fn into(path: &str, threads: usize) -> Progress {
        let Ok(file) = File::create(path) else { std::process::exit(98) };
        let progress = Progress(file);
        (0..threads).for_each(|n| progress.write(n, 0));
        progress
    }

    fn write(&self, thread: usize, value: u64) {
        let _ = self.0.write_all_at(format!("{value:020}\n").as_bytes(), (thread * LINE) as u64);
    }
}

/// Runs `life` in so many threads, this one among them, until the first of them returns.
fn in_threads(count: usize, life: impl Fn(usize) + Send + Sync + 'static) {
    let life = Arc::new(life);
    for n in 1..count {
        let life = life.clone();
        std::thread::spawn(move || life(n));
    }
    life(0);
}

fn busy(clock: libc::clockid_t, time: Duration) {
    let until = read(clock) + time.as_nanos() as u64;
    while read(clock) < until {}
}

/// Threads that wait for each other in a barrier, spinning; the progress is in rounds.
pub fn barrier(path: &str, threads: usize) {
    let (progress, end) = (Progress::into(path, threads), Instant::now() + LIFE);
    let (arrived, round) = (AtomicU64::new(0), AtomicU64::new(0));
    in_threads(threads, move |n| {
        while Instant::now() < end {
            let this = round.load(SeqCst);
            if arrived.fetch_add(1, SeqCst) + 1 == threads as u64 {
                arrived.store(0, SeqCst);
                round.store(this + 1, SeqCst);
            }
            // No PAUSE: see `execute_briefly`.
            while round.load(SeqCst) == this {}
            progress.write(n, this + 1);
        }
    });
}

/// Threads that try a lock and call sched_yield while it is taken; the progress is in critical
/// sections. Half of the time is spent in these.
pub fn yielding_lock(path: &str, threads: usize) {
    const SECTION: Duration = Duration::from_micros(100);
    let (progress, end) = (Progress::into(path, threads), Instant::now() + LIFE);
    let lock = AtomicBool::new(false);
    in_threads(threads, move |n| {
        for done in 1.. {
            while lock.swap(true, SeqCst) {
                // SAFETY: a system call without memory.
                unsafe { libc::sched_yield() };
            }
            busy(libc::CLOCK_THREAD_CPUTIME_ID, SECTION);
            lock.store(false, SeqCst);
            busy(libc::CLOCK_THREAD_CPUTIME_ID, SECTION);
            progress.write(n, done);
            if Instant::now() > end {
                return;
            }
        }
    });
}

/// Threads that spin, each at a SCHED_FIFO priority that it gives itself (0: none); the progress is
/// their CPU time, ns.
pub fn priorities(path: &str, priorities: Vec<i32>) {
    let (progress, end) = (Progress::into(path, priorities.len()), Instant::now() + LIFE);
    in_threads(priorities.len(), move |n| {
        if priorities[n] > 0 {
            let _ = sched::set_fifo(0, priorities[n]);
        }
        while Instant::now() < end {
            busy(libc::CLOCK_THREAD_CPUTIME_ID, Duration::from_micros(100));
            progress.write(n, read(libc::CLOCK_THREAD_CPUTIME_ID));
        }
    });
}
