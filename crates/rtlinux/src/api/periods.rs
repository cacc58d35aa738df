//! Periods, suspension and sleep of threads. `c/waits.c` has the calls that may end their thread.

use std::ffi::c_int;

use super::threads::result;
use super::time::{on_monotonic_clock, HrTime};
use crate::thread::{self, ThreadWait, NEVER};
use crate::waiting::{now, wait, WaitEnd};

/// What `pthread_kill` takes.
const RTL_SIGNAL_NULL: c_int = 0;
const RTL_SIGNAL_WAKEUP: c_int = 1;
const RTL_SIGNAL_SUSPEND: c_int = 3;

#[no_mangle]
extern "C" fn pthread_make_periodic_np(
    pthread: libc::pthread_t,
    start_time: HrTime,
    period: HrTime,
) -> c_int {
    if period < 0 {
        return libc::EINVAL;
    }
    let start = on_monotonic_clock(start_time);
    result(thread::change(pthread, |thread| thread.set_periods(start, period)))
}

#[no_mangle]
extern "C" fn pthread_wakeup_np(pthread: libc::pthread_t) -> c_int {
    result(thread::change(pthread, thread::Thread::wake_up))
}

/// Suspends another thread; of the calling one: `punctual__rtlinux_suspend`.
#[no_mangle]
extern "C" fn punctual__rtlinux_suspend_other(pthread: libc::pthread_t) -> c_int {
    result(thread::change(pthread, |thread| thread.is_to_suspend = true))
}

/// What `pthread_kill` does for other threads but `RTL_SIGNAL_CANCEL`.
#[no_mangle]
extern "C" fn punctual__rtlinux_signal(pthread: libc::pthread_t, signal: c_int) -> c_int {
    match signal {
        RTL_SIGNAL_NULL => result(thread::look(pthread, |_| ())),
        RTL_SIGNAL_WAKEUP => pthread_wakeup_np(pthread),
        RTL_SIGNAL_SUSPEND => punctual__rtlinux_suspend_other(pthread),
        _ => libc::EINVAL,
    }
}

/// Waits for the calling thread's next period.
///
/// # Errors
/// EPERM: it does not take part.
#[no_mangle]
extern "C" fn punctual__rtlinux_wait() -> c_int {
    let Some(own) = thread::own() else { return libc::EPERM };
    wait(own, ThreadWait::Period, NEVER);
    0
}

/// Suspends the calling thread.
#[no_mangle]
extern "C" fn punctual__rtlinux_suspend() -> c_int {
    let Some(own) = thread::own() else { return libc::EPERM };
    wait(own, ThreadWait::Suspended, NEVER);
    0
}

/// Sleeps until a time, or for one, with the calling thread's part or without; EINTR: it was woken.
/// What is left is put into `left`, if that is not NULL.
#[no_mangle]
unsafe extern "C" fn punctual__rtlinux_sleep(
    time: HrTime,
    is_absolute: bool,
    left: *mut HrTime,
) -> c_int {
    let until = match is_absolute {
        true => on_monotonic_clock(time),
        false => now().saturating_add(time),
    };
    let end = match thread::own() {
        Some(own) => wait(own, ThreadWait::Sleep, until),
        None => {
            punctual_sys::futex::sleep_until(u64::try_from(until).unwrap_or(0));
            match now() < until {
                true => WaitEnd::Wakeup,
                false => WaitEnd::Time,
            }
        }
    };
    // SAFETY: the caller's.
    if let Some(left) = unsafe { left.as_mut() } {
        *left = until.saturating_sub(now()).max(0);
    }
    match end {
        WaitEnd::Time => 0,
        WaitEnd::Wakeup | WaitEnd::Cancelled => libc::EINTR,
    }
}

#[no_mangle]
extern "C" fn rtl_schedule() -> c_int {
    // A thread that is more important executes by now: nothing waits for this call.
    0
}
