//! Clocks.

use std::ffi::c_int;
use std::hint;

use punctual_sys::clock;

use crate::waiting::now;

/// `hrtime_t`, ns.
pub type HrTime = i64;

/// From here on, times are those of CLOCK_REALTIME: no machine has been up for 18 years.
const EPOCH: HrTime = 1 << 59;

/// A clock has no such mode, or there is no such clock.
const MODES: [c_int; 2] = [RTL_CLOCK_MODE_ONESHOT, RTL_CLOCK_MODE_PERIODIC];
const RTL_CLOCK_MODE_ONESHOT: c_int = 1;
const RTL_CLOCK_MODE_PERIODIC: c_int = 2;

/// A time of either clock on CLOCK_MONOTONIC: programs pass what they have read.
pub fn on_monotonic_clock(time: HrTime) -> HrTime {
    match time {
        HrTime::MAX => time,
        EPOCH.. => time.saturating_sub(clock::realtime_ns() as i64).saturating_add(now()),
        _ => time,
    }
}

fn is_clock(clock: libc::clockid_t) -> bool {
    [libc::CLOCK_REALTIME, libc::CLOCK_MONOTONIC].contains(&clock)
}

#[no_mangle]
extern "C" fn gethrtime() -> HrTime {
    now()
}

#[no_mangle]
extern "C" fn clock_gethrtime(clock: libc::clockid_t) -> HrTime {
    match clock {
        libc::CLOCK_REALTIME => clock::realtime_ns() as HrTime,
        libc::CLOCK_MONOTONIC => now(),
        _ => -HrTime::from(libc::EINVAL),
    }
}

#[no_mangle]
extern "C" fn rtl_getschedclock() -> libc::clockid_t {
    libc::CLOCK_MONOTONIC
}

#[no_mangle]
extern "C" fn rtl_setclockmode(clock: libc::clockid_t, mode: c_int, period: HrTime) -> c_int {
    let needs_period = mode == RTL_CLOCK_MODE_PERIODIC;
    match is_clock(clock) && MODES.contains(&mode) && (!needs_period || period > 0) {
        true => 0,
        false => libc::EINVAL,
    }
}

#[no_mangle]
extern "C" fn rtl_delay(ns: HrTime) {
    let until = now().saturating_add(ns);
    while now() < until {
        hint::spin_loop();
    }
}

#[no_mangle]
extern "C" fn rtl_getcpuid() -> c_int {
    // SAFETY: no arguments.
    unsafe { libc::sched_getcpu() }
}

#[no_mangle]
extern "C" fn rtl_cpu_exists(cpu: c_int) -> c_int {
    let cpus = crate::hard::cpus();
    let may = cpus.is_some_and(|mask| {
        u32::try_from(cpu).is_ok_and(|cpu| punctual_sys::sched::cpus(mask).any(|one| one == cpu))
    });
    may.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_clocks_are_understood() {
        let (real, monotonic) = (clock::realtime_ns() as i64, now());
        let converted = on_monotonic_clock(real + 1_000_000_000);
        let late = 120_000_000_000;
        assert!((monotonic..monotonic + late).contains(&converted), "{converted}");
        assert_eq!(on_monotonic_clock(monotonic), monotonic);
        assert_eq!(on_monotonic_clock(i64::MAX), i64::MAX);
        assert_eq!(on_monotonic_clock(-5), -5);
    }
}
