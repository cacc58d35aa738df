//! From unlocking to the running of a waiter of higher priority, on one CPU: tasks with
//! `punctual::Mutex` beside SCHED_FIFO threads with a mutex of priority inheritance.
//!
//! In each period the holder locks the mutex and spins until the waiter, which preempts it, is
//! about to wait; so it unlocks when it executes for the waiter.

use super::pthread::PthreadMutex;
use crate::side_by_side::{in_turns, Subject, Windows};
use crate::threads::set_level;
use crate::{tools, Bench, Failure};
use punctual::{Mutex, Policy, Punctual};
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::sched::pin;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Of both, ns.
const PERIOD: u64 = 2_000_000;
/// The waiter comes so much later than the holder, ns.
const OFFSET: u64 = 200_000;
/// Not counted at the beginning of a window.
const SKIPPED: usize = 20;
/// SCHED_FIFO, of the holder and of the waiter.
const LEVELS: [i32; 2] = [50, 51];
/// The holder spins no longer than this, ns.
const PATIENCE: u64 = 5 * PERIOD;

/// What holder and waiter share beside the mutex.
#[derive(Default)]
struct Exchange {
    /// The waiter is about to lock.
    comes: AtomicBool,
    /// When the holder began to unlock, ns.
    unlocked: AtomicU64,
    over: AtomicBool,
}

impl Exchange {
    /// In the holder, just before unlocking: the waiter waits; false: it did not come.
    fn await_waiter(&self) -> bool {
        let until = monotonic_ns() + PATIENCE;
        while !self.comes.load(Ordering::Acquire) {
            if self.over.load(Ordering::Relaxed) || monotonic_ns() > until {
                return false;
            }
            spin_loop();
        }
        self.comes.store(false, Ordering::Relaxed);
        self.unlocked.store(monotonic_ns(), Ordering::Release);
        true
    }

    /// In the waiter: locks by `lock`, and returns how long the hand-over took; `None`: the mutex
    /// was free.
    fn lock<G>(&self, lock: impl FnOnce() -> G) -> (G, Option<u64>) {
        self.unlocked.store(0, Ordering::Relaxed);
        self.comes.store(true, Ordering::Release);
        let guard = lock();
        let now = monotonic_ns();
        self.comes.store(false, Ordering::Relaxed);
        let at = self.unlocked.load(Ordering::Acquire);
        (guard, (at > 0).then(|| now - at))
    }
}

/// Medians and p99s of the windows, ns.
pub fn windows(bench: &Bench) -> Result<Windows<[f64; 2]>, Failure> {
    let count = if bench.quick { 300 } else { 1_000 };
    let cpu = bench.cpu;
    let subjects = vec![
        Subject::new("pthread, inheriting", || threads(cpu, count)),
        Subject::new("punctual", || tools::patiently(|| tasks(cpu, count))),
    ];
    in_turns(bench, "locks, hand-over", subjects)
}

fn tasks(cpu: u32, count: usize) -> Result<[f64; 2], Failure> {
    let period = Duration::from_nanos(PERIOD);
    let offset = Duration::from_nanos(OFFSET);
    let mutex = Arc::new(Mutex::new(()));
    let exchange = Arc::new(Exchange::default());
    let mut set = Punctual::on_cpu(cpu).policy(Policy::DeadlineMonotonic);
    let (held, shared) = (mutex.clone(), exchange.clone());
    set.add("holder").period(period).budget(period * 3 / 10).spawn(move |task| {
        for _ in task.releases() {
            let guard = held.lock(task).expect("no deadlock");
            shared.await_waiter();
            drop(guard);
        }
    });
    let waiter = set.add("waiter").period(period).deadline(period / 2).budget(period / 10);
    let waiter = waiter.start(offset).spawn(move |task| {
        let mut times = Vec::with_capacity(count + SKIPPED);
        for _ in task.releases().take(8 * count) {
            let (guard, time) = exchange.lock(|| mutex.lock(task).expect("no deadlock"));
            drop(guard);
            times.extend(time);
            if times.len() == times.capacity() {
                break;
            }
        }
        exchange.over.store(true, Ordering::Relaxed);
        times
    });
    let running = set.admit()?.start()?;
    let times = waiter.join().map_err(|end| format!("the waiter ended: {end:?}"))?;
    running.stop()?;
    quantiles(times)
}

fn threads(cpu: u32, count: usize) -> Result<[f64; 2], Failure> {
    let mutex = &PthreadMutex::new(libc::PTHREAD_PRIO_INHERIT)?;
    let exchange = &Exchange::default();
    let origin = monotonic_ns() + 10 * PERIOD;
    let times = thread::scope(|scope| {
        let holder = scope.spawn(move || {
            let placed = pin(0, cpu).and_then(|()| set_level(0, LEVELS[0]));
            let mut next = origin;
            while placed.is_ok() && !exchange.over.load(Ordering::Relaxed) {
                sleep_until(next);
                mutex.lock();
                exchange.await_waiter();
                mutex.unlock();
                next += PERIOD;
            }
            placed
        });
        let waiter = scope.spawn(move || {
            let placed = pin(0, cpu).and_then(|()| set_level(0, LEVELS[1]));
            let mut times = Vec::with_capacity(count + SKIPPED);
            let mut next = origin + OFFSET;
            for _ in 0..8 * count {
                sleep_until(next);
                let ((), time) = exchange.lock(|| mutex.lock());
                mutex.unlock();
                times.extend(time);
                next += PERIOD;
                if times.len() == times.capacity() || placed.is_err() {
                    break;
                }
            }
            exchange.over.store(true, Ordering::Relaxed);
            placed.map(|()| times)
        });
        holder.join().map_err(|_| "the holder panicked")??;
        Ok::<_, Failure>(waiter.join().map_err(|_| "the waiter panicked")??)
    })?;
    quantiles(times)
}

fn quantiles(mut times: Vec<u64>) -> Result<[f64; 2], Failure> {
    let times = times.get_mut(SKIPPED..).filter(|t| !t.is_empty()).ok_or("the holder was free")?;
    times.sort_unstable();
    Ok([times.len() / 2, times.len() * 99 / 100].map(|at| times[at] as f64))
}
