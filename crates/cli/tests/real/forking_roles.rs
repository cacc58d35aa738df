//! Roles of this test binary (see adversarial.rs) that fork: families, storms, daemons.

use std::time::{Duration, Instant};

use super::{fork, in_child, many_threads, spin, LIFE};

/// Children, a grandchild whose parent has ended, threads in each, some busy and some asleep.
pub fn family() {
    for n in 0..2 {
        in_child(move || {
            if n == 0 {
                in_child(|| many_threads(2));
            }
            many_threads(2);
        });
    }
    in_child(|| in_child(|| std::thread::sleep(LIFE)));
    std::thread::spawn(|| std::thread::sleep(LIFE));
    many_threads(2);
}

/// At most forty children at a time, each busy for a moment.
pub fn fork_storm() {
    let end = Instant::now() + LIFE;
    let mut alive = 0;
    while Instant::now() < end {
        if alive < 40 {
            in_child(|| spin(Duration::from_millis(3)));
            alive += 1;
        }
        // SAFETY: nothing is written.
        let reaped = |flags| unsafe { libc::waitpid(-1, std::ptr::null_mut(), flags) } > 0;
        while alive > 0 && reaped(if alive < 40 { libc::WNOHANG } else { 0 }) {
            alive -= 1;
        }
    }
}

/// Two forks, sessions of their own, and no child of Punctual left.
pub fn daemon() {
    in_child(|| {
        // SAFETY: system calls without memory.
        unsafe { libc::setsid() };
        in_child(|| {
            // SAFETY: as above.
            unsafe { libc::setsid() };
            many_threads(2);
        });
    });
}

/// A child that spins, and is always the newest process of the machine.
pub fn newest() {
    let end = Instant::now() + LIFE;
    let mut last = 0;
    while Instant::now() < end {
        let next = fork();
        if next == 0 {
            // SAFETY: passes no memory.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            spin(LIFE);
            // SAFETY: as in `in_child`.
            unsafe { libc::_exit(0) };
        }
        shoot(last);
        last = next;
        std::thread::sleep(Duration::from_millis(3));
    }
    shoot(last);
}

/// Ends a child of ours.
fn shoot(child: i32) {
    if child > 0 {
        // SAFETY: not waited for until here; nothing is written.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
    }
}

/// For a second, children that do nothing but fork are shot in the middle of it; and then a normal
/// end.
pub fn shot_forks() {
    let end = Instant::now() + Duration::from_secs(1);
    let mut wait = 200;
    while Instant::now() < end {
        let forker = fork();
        if forker == 0 {
            loop {
                let child = fork();
                if child == 0 {
                    // SAFETY: as in `in_child`.
                    unsafe { libc::_exit(0) };
                }
                // SAFETY: a child of this one; nothing is written.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            }
        }
        wait = (wait * 31 + 177) % 3_000;
        std::thread::sleep(Duration::from_micros(200 + wait));
        shoot(forker);
    }
}

/// Forks, at the lowest real-time level of one CPU; the kernel's ordinary threads, which free what
/// has ended, get a part of it.
pub fn fork_below(cpu: &str) {
    let pinned = punctual_sys::sched::pin(0, cpu.parse().unwrap_or(0));
    let lowest = pinned.is_ok() && punctual_sys::sched::set_fifo(0, 1).is_ok();
    // SAFETY: a plain call on this process.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    let end = Instant::now() + LIFE;
    while lowest && Instant::now() < end {
        let child = fork();
        if child == 0 {
            // SAFETY: as in `in_child`.
            unsafe { libc::_exit(0) };
        }
        // SAFETY: a child of ours; nothing is written.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        std::thread::sleep(Duration::from_micros(500));
    }
}
