//! Programs with known wake-ups and execution times, as roles of this test binary (`adversarial`).
//! Each ends by itself.

use std::time::Duration;

use crate::adversarial::read;

const US: u64 = 1_000;

/// Executes so long on the calling thread's own CPU clock, ns.
pub fn execute(ns: u64) {
    let until = read(libc::CLOCK_THREAD_CPUTIME_ID) + ns;
    while read(libc::CLOCK_THREAD_CPUTIME_ID) < until {}
}

/// Until a time of CLOCK_MONOTONIC, ns.
pub fn sleep_until(time: u64) {
    let time = libc::timespec {
        tv_sec: (time / 1_000_000_000) as i64,
        tv_nsec: (time % 1_000_000_000) as i64,
    };
    // SAFETY: reads one timespec of ours.
    unsafe {
        libc::clock_nanosleep(
            libc::CLOCK_MONOTONIC,
            libc::TIMER_ABSTIME,
            &time,
            std::ptr::null_mut(),
        )
    };
}

/// `count` jobs: each `period` us it executes each of `parts` us, with a pause of 200 us between
/// two. Prints how many of its jobs were done later than a period after their release, but for the
/// first tenth, in which it starts up.
pub fn periodic(period: u64, count: u64, parts: &[u64]) {
    let begin = read(libc::CLOCK_MONOTONIC);
    let mut late = 0;
    for n in 1..=count {
        let release = begin + n * period * US;
        sleep_until(release);
        for (k, &part) in parts.iter().enumerate() {
            if k > 0 {
                std::thread::sleep(Duration::from_micros(200));
            }
            execute(part * US);
        }
        let done = read(libc::CLOCK_MONOTONIC);
        late += u64::from(n > count / 10 && done > release + period * US);
    }
    println!("late {late} of {}", count - count / 10);
}

/// So many threads, each of which does `periodic`.
pub fn periodic_threads(threads: u64, period: u64, count: u64, work: u64) {
    let start = |_| std::thread::spawn(move || periodic(period, count, &[work]));
    for thread in (0..threads).map(start).collect::<Vec<_>>() {
        thread.join().unwrap();
    }
}

/// `count` wake-ups, 1 to 40 ms apart in a scattered order, 300 us of execution each.
pub fn scattered(count: u64) {
    let mut time = read(libc::CLOCK_MONOTONIC);
    for n in 0..count {
        time += (1 + n * 17 % 40) * 1_000 * US;
        sleep_until(time);
        execute(300 * US);
    }
}
