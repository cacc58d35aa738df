//! Programs whose threads wait for mutexes with priority inheritance, as roles of this test binary
//! (`adversarial`). The mutexes are words of their own that name any owner. Each ends by itself.

use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use super::{read, spin, LIFE};

const US: Duration = Duration::from_micros(1);

/// Executes on this CPU: with `nap`, half a millisecond at a time.
pub fn own(cpu: u32, nap: bool) {
    punctual_sys::sched::pin(0, cpu).expect("it is permitted");
    let end = Instant::now() + LIFE;
    while Instant::now() < end {
        spin(500 * US);
        if nap {
            std::thread::sleep(30 * US);
        }
    }
}

/// Waits for a mutex of this owner, in the way that `attack` names.
pub fn wait(attack: &str, owner: u32) {
    let mutex: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(owner)));
    let again = move |time: Duration, pause: Duration| {
        let end = Instant::now() + LIFE;
        while Instant::now() < end {
            lock(mutex, Some(time));
            std::thread::sleep(pause);
        }
    };
    match attack {
        "always" => lock(mutex, None),
        "mostly" => again(700 * US, 200 * US),
        "time-out" => again(50 * US, US),
        "requeued" => requeued(mutex),
        "in-turns" => {
            for n in 0..4 {
                std::thread::spawn(move || {
                    std::thread::sleep(n * 300 * US);
                    again(300 * US, 900 * US);
                });
            }
        }
        "many" => {
            for _ in 0..4 {
                std::thread::spawn(|| lock(mutex, None));
            }
        }
        "beside-execution" => {
            std::thread::spawn(|| lock(mutex, None));
            spin(LIFE);
        }
        "new-threads" => {
            let end = Instant::now() + LIFE;
            while Instant::now() < end {
                std::thread::spawn(|| lock(mutex, Some(4_000 * US)));
                std::thread::sleep(4_000 * US);
            }
        }
        _ => std::process::exit(99),
    }
    std::thread::sleep(LIFE);
}

/// Two threads that share a mutex: each holds it for 300 us in 2 ms.
pub fn share() {
    static MUTEX: AtomicU32 = AtomicU32::new(0);
    let work = || {
        let end = Instant::now() + LIFE;
        while Instant::now() < end {
            lock(&MUTEX, None);
            let until = read(libc::CLOCK_THREAD_CPUTIME_ID) + 300_000;
            while read(libc::CLOCK_THREAD_CPUTIME_ID) < until {}
            unlock(&MUTEX);
            let now = read(libc::CLOCK_MONOTONIC);
            std::thread::sleep(Duration::from_nanos(2_000_000 - now % 2_000_000));
        }
    };
    std::thread::spawn(work);
    work();
}

/// Locks the mutex as the C library does.
fn lock(mutex: &AtomicU32, time: Option<Duration>) {
    // SAFETY: a system call without memory.
    let own = unsafe { libc::gettid() } as u32;
    if mutex.compare_exchange(0, own, SeqCst, SeqCst).is_ok() {
        return;
    }
    // This call's time is of the clock of the day.
    let until = time.map(|time| {
        let ns = read(libc::CLOCK_REALTIME) + time.as_nanos() as u64;
        let (sec, nsec) = (ns / 1_000_000_000, ns % 1_000_000_000);
        libc::timespec { tv_sec: sec as i64, tv_nsec: nsec as i64 }
    });
    let until = until.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word and the time live as long as the call.
    unsafe { libc::syscall(libc::SYS_futex, mutex.as_ptr(), libc::FUTEX_LOCK_PI, 0, until) };
}

fn unlock(mutex: &AtomicU32) {
    // SAFETY: a system call without memory.
    let own = unsafe { libc::gettid() } as u32;
    if mutex.compare_exchange(own, 0, SeqCst, SeqCst).is_err() {
        // SAFETY: the word lives as long as the call.
        unsafe { libc::syscall(libc::SYS_futex, mutex.as_ptr(), libc::FUTEX_UNLOCK_PI) };
    }
}

/// Waits by a condition variable, from which another thread passes it on to the mutex. Being frozen
/// ends such a wait, and it begins again.
fn requeued(mutex: &'static AtomicU32) {
    static CONDITION: AtomicU32 = AtomicU32::new(0);
    let end = Instant::now() + LIFE;
    let (condition, mutex) = (CONDITION.as_ptr() as usize, mutex.as_ptr() as usize);
    std::thread::spawn(move || {
        while Instant::now() < end {
            std::thread::sleep(500 * US);
            let requeue = libc::FUTEX_CMP_REQUEUE_PI;
            // SAFETY: both words live as long as the program.
            unsafe { libc::syscall(libc::SYS_futex, condition, requeue, 1, 1usize, mutex, 0) };
        }
    });
    let (wait, none) = (libc::FUTEX_WAIT_REQUEUE_PI, ptr::null::<libc::timespec>());
    while Instant::now() < end {
        // SAFETY: both words live as long as the program.
        unsafe { libc::syscall(libc::SYS_futex, condition, wait, 0, none, mutex, 0) };
    }
}
