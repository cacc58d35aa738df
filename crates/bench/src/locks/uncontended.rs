//! Lock and unlock of a mutex that no other task wants: CPU time of a pair, in a task.

use super::pthread::PthreadMutex;
use crate::side_by_side::{in_turns, Subject, Windows};
use crate::{tools, Bench, Failure};
use punctual::{Ceiling, Mutex, Task};
use punctual_sys::clock::thread_cpu_ns;
use std::hint::black_box;
use std::time::Duration;

/// The subjects have a task of the same kind around them, and one job for all pairs.
const PERIOD: Duration = Duration::from_millis(200);
const BUDGET: Duration = Duration::from_millis(160);

pub fn windows(bench: &Bench) -> Result<Windows<f64>, Failure> {
    let pairs = if bench.quick { 500_000 } else { 2_000_000 };
    let subjects = vec![
        Subject::new("pthread", || {
            let mutex = PthreadMutex::new(libc::PTHREAD_PRIO_NONE)?;
            in_task(bench.cpu, move |_| {
                per_pair(pairs, || {
                    mutex.lock();
                    black_box(&mutex);
                    mutex.unlock();
                })
            })
        }),
        Subject::new("punctual", || {
            let mutex = Mutex::new(0u64);
            in_task(bench.cpu, move |task| {
                per_pair(pairs, || {
                    let held = mutex.lock(task).expect("it is free");
                    black_box(&*held);
                })
            })
        }),
        Subject::new("with a ceiling", || {
            let mutex = Mutex::with_ceiling(0u64, Ceiling::Deadline(PERIOD));
            in_task(bench.cpu, move |task| {
                per_pair(pairs, || {
                    let held = mutex.lock(task).expect("it is free");
                    black_box(&*held);
                })
            })
        }),
        Subject::new("libpunctual", || super::calls::per_pair(bench.cpu, PERIOD, BUDGET, pairs)),
        Subject::new("std::sync", || {
            let mutex = std::sync::Mutex::new(0u64);
            in_task(bench.cpu, move |_| {
                per_pair(pairs, || {
                    black_box(&*mutex.lock().expect("no panic"));
                })
            })
        }),
    ];
    in_turns(bench, "locks, not contended", subjects)
}

fn per_pair(pairs: u64, mut pair: impl FnMut()) -> f64 {
    let mut begun = 0;
    // The first tenth is not timed.
    for n in 0..pairs + pairs / 10 {
        if n == pairs / 10 {
            begun = thread_cpu_ns();
        }
        pair();
    }
    (thread_cpu_ns() - begun) as f64 / pairs as f64
}

fn in_task(
    cpu: u32,
    measure: impl FnOnce(&Task<'_>) -> f64 + Send + 'static,
) -> Result<f64, Failure> {
    let running = tools::start(cpu)?;
    let task = running.task("locks").period(PERIOD).budget(BUDGET).spawn(measure)?;
    let found = task.join().map_err(|end| format!("the task ended: {end:?}"))?;
    running.stop()?;
    Ok(found)
}
