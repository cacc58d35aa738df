//! From a writer to a reader that sleeps on another CPU: beside a futex alone.

use super::{attr, Message};
use crate::side_by_side::{figure, in_turns, Subject, Windows};
use crate::threads::set_level;
use crate::{Bench, Failure};
use punctual_ipc::{Access, Content, Fifo};
use punctual_sys::clock::{monotonic_ns, sleep_until};
use punctual_sys::futex;
use punctual_sys::sched::pin;
use std::hint::black_box;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;

/// How long the writer leaves the reader to fall asleep, ns.
const PAUSE: u64 = 200_000;
/// Not counted at the beginning of a window.
const SKIPPED: usize = 20;
/// SCHED_FIFO, of both threads.
const LEVEL: i32 = 50;

/// From just before the put to the reader's return, ns: the windows' medians, and their p99s.
pub fn wakeups(bench: &Bench, peer: u32) -> Result<[Windows<f64>; 2], Failure> {
    let count = if bench.quick { 500 } else { 3_000 };
    let cpus = [bench.cpu, peer];
    let subjects = vec![
        Subject::new("futex", || of_futex(cpus, count)),
        Subject::new("bytes", || of_fifo(cpus, count)),
    ];
    let all = in_turns(bench, "fifo, blocked reader", subjects)?;
    Ok([0, 1].map(|k| figure(&all, k)))
}

fn of_fifo(cpus: [u32; 2], count: usize) -> Result<[f64; 2], Failure> {
    let fifo = Fifo::unnamed(attr(Content::Bytes))?;
    let mut writer = fifo.writer(Access::Exclusive)?;
    let mut reader = fifo.reader(Access::Exclusive)?;
    let mut into: Message = [0; 64];
    window(
        cpus,
        count,
        |_| writer.put(&[1; 64]).expect("there is room"),
        |_| {
            reader.get_until(&mut into, u64::MAX).expect("a message");
            black_box(&into);
        },
    )
}

/// The least that a wake-up takes: no timeout, no data.
fn of_futex(cpus: [u32; 2], count: usize) -> Result<[f64; 2], Failure> {
    let word = &AtomicU32::new(0);
    let wake = |n| {
        word.store(n + 1, Ordering::Release);
        futex::wake_shared(word);
    };
    let wait = |n| {
        while word.load(Ordering::Acquire) == n {
            futex::wait_shared(word, n, u64::MAX);
        }
    };
    window(cpus, count, wake, wait)
}

/// Median and p99 of so many wake-ups. Both threads count them; each wake ends one wait.
fn window(
    [cpu, peer]: [u32; 2],
    count: usize,
    mut wake: impl FnMut(u32) + Send,
    mut wait: impl FnMut(u32) + Send,
) -> Result<[f64; 2], Failure> {
    let count = count + SKIPPED;
    // When the reader returned; 0: not yet.
    let returned = &AtomicU64::new(0);
    let mut times = thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let placed = pin(0, peer).and_then(|()| set_level(0, LEVEL));
            for n in 0..count as u32 {
                wait(n);
                returned.store(monotonic_ns(), Ordering::Release);
            }
            placed
        });
        let writer = scope.spawn(move || {
            let placed = pin(0, cpu).and_then(|()| set_level(0, LEVEL));
            let mut times = Vec::with_capacity(count);
            sleep_until(monotonic_ns() + PAUSE);
            for n in 0..count as u32 {
                returned.store(0, Ordering::Relaxed);
                let begun = monotonic_ns();
                wake(n);
                loop {
                    sleep_until(monotonic_ns() + PAUSE);
                    match returned.load(Ordering::Acquire) {
                        0 => continue,
                        at => times.push(at - begun),
                    }
                    break;
                }
            }
            placed.map(|()| times)
        });
        reader.join().map_err(|_| "the reader panicked")??;
        Ok::<_, Failure>(writer.join().map_err(|_| "the writer panicked")??)
    })?;
    let times = &mut times[SKIPPED..];
    times.sort_unstable();
    Ok([times.len() / 2, times.len() * 99 / 100].map(|at| times[at] as f64))
}
