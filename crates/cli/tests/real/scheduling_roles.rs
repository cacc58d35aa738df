//! Roles of this test binary (see adversarial.rs) that change their own scheduling attributes.

use std::time::{Duration, Instant};

use super::{spin, LIFE};

/// Leaves its policy, or its CPU too, as often as it can.
pub fn change_itself(only_policy: bool) {
    let end = Instant::now() + LIFE;
    let mut n = 0u32;
    while Instant::now() < end {
        // SAFETY: scheduling calls on the calling thread; the values live here.
        unsafe {
            let p = libc::sched_param { sched_priority: 0 };
            let reset = if n % 2 == 0 { libc::SCHED_RESET_ON_FORK } else { 0 };
            libc::sched_setscheduler(0, libc::SCHED_OTHER | reset, &p);
            if !only_policy {
                let mut every: libc::cpu_set_t = std::mem::zeroed();
                (0..64).for_each(|c| libc::CPU_SET(c, &mut every));
                libc::sched_setaffinity(0, std::mem::size_of_val(&every), &every);
            }
        }
        n += 1;
        spin(Duration::from_micros(500));
    }
}

/// Goes from one ordinary policy to the next, and spins for so many microseconds in each.
pub fn change_policy(between: u64) {
    let end = Instant::now() + LIFE;
    let policies = [libc::SCHED_BATCH, libc::SCHED_IDLE, libc::SCHED_OTHER];
    for policy in policies.into_iter().cycle().take_while(|_| Instant::now() < end) {
        let none = libc::sched_param { sched_priority: 0 };
        // SAFETY: a valid parameter.
        unsafe { libc::sched_setscheduler(0, policy, &none) };
        spin(Duration::from_micros(between));
    }
}

/// Spins, and changes an attribute of its own every 400 us: it is requeued while it runs, and never
/// sleeps.
pub fn reattribute(attribute: &str) {
    let end = Instant::now() + LIFE;
    let none = libc::sched_param { sched_priority: 0 };
    for n in (0..).take_while(|_| Instant::now() < end) {
        // SAFETY: scheduling calls on the calling thread; the parameter lives here.
        let _ = unsafe {
            match attribute {
                "nice" => libc::setpriority(libc::PRIO_PROCESS, 0, n % 2),
                "class" => libc::sched_setscheduler(
                    0,
                    [libc::SCHED_BATCH, libc::SCHED_OTHER][n as usize % 2],
                    &none,
                ),
                _ => std::process::exit(99),
            }
        };
        spin(Duration::from_micros(400));
    }
}
