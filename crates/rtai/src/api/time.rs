//! Time: a count is a nanosecond of CLOCK_MONOTONIC.

use std::ffi::{c_int, c_uint};
use std::hint;
use std::time::{SystemTime, UNIX_EPOCH};

use super::Rtime;
use crate::arena::arena;
use crate::blocking::now;

/// Counts in a second.
const FREQUENCY: c_uint = 1_000_000_000;

#[no_mangle]
extern "C" fn rt_get_time() -> Rtime {
    now()
}

#[no_mangle]
extern "C" fn rt_get_time_ns() -> Rtime {
    now()
}

#[no_mangle]
extern "C" fn rt_get_cpu_time_ns() -> Rtime {
    now()
}

#[no_mangle]
extern "C" fn rt_get_time_cpuid(_: c_uint) -> Rtime {
    now()
}

#[no_mangle]
extern "C" fn rt_get_time_ns_cpuid(_: c_uint) -> Rtime {
    now()
}

#[no_mangle]
extern "C" fn rt_get_real_time_ns() -> Rtime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as Rtime
}

#[no_mangle]
extern "C" fn rt_get_real_time() -> Rtime {
    rt_get_real_time_ns()
}

#[no_mangle]
extern "C" fn count2nano(counts: Rtime) -> Rtime {
    counts
}

#[no_mangle]
extern "C" fn nano2count(ns: Rtime) -> Rtime {
    ns
}

#[no_mangle]
extern "C" fn count2nano_cpuid(counts: Rtime, _: c_uint) -> Rtime {
    counts
}

#[no_mangle]
extern "C" fn nano2count_cpuid(ns: Rtime, _: c_uint) -> Rtime {
    ns
}

#[no_mangle]
extern "C" fn rt_get_cpu_freq() -> c_uint {
    FREQUENCY
}

#[no_mangle]
extern "C" fn rt_busy_sleep(ns: c_int) {
    let until = now().saturating_add(ns.into());
    while now() < until {
        hint::spin_loop();
    }
}

fn set_timer(runs: bool) {
    if let Some(arena) = arena() {
        arena.transact(|transaction| {
            let word = transaction.timer_runs();
            transaction.set(word, runs.into());
        });
    }
}

#[no_mangle]
extern "C" fn start_rt_timer(period: c_int) -> Rtime {
    set_timer(true);
    period.into()
}

#[no_mangle]
extern "C" fn stop_rt_timer() {
    set_timer(false);
}

#[no_mangle]
extern "C" fn rt_set_oneshot_mode() {
    set_timer(false);
}

#[no_mangle]
extern "C" fn rt_set_periodic_mode() {
    set_timer(false);
}

#[no_mangle]
extern "C" fn rt_is_hard_timer_running() -> c_int {
    let runs = |arena: &crate::arena::Arena| {
        arena.transact(|transaction| transaction.timer_runs().get() != 0)
    };
    arena().is_some_and(runs).into()
}
