//! The paper's calls for the calling program: its time, its periods, its priority.

use std::ffi::c_int;

use super::threads::set_priority;
use super::time::{on_monotonic_clock, HrTime};
use super::{failed, returned};
use crate::cancellation::NoCancellation;
use crate::hard;
use crate::loaded;
use crate::priority;
use crate::thread::{self, ThreadError, ThreadIndex, ThreadWait, NEVER};
use crate::waiting::{now, wait, WaitEnd};

/// `RTime`: ticks of 1 ns.
type RTime = HrTime;

/// The calling thread's part; it takes part from now on.
fn own() -> Result<ThreadIndex, c_int> {
    if let Some(own) = thread::own() {
        return Ok(own);
    }
    let least = priority::of_task(priority::LARGEST).unwrap_or(0);
    // Nothing joins it by this library.
    let claimed = thread::claim(least, None, true).map_err(ThreadError::errno)?;
    hard::enter(claimed, "program");
    Ok(claimed)
}

/// Gives the calling program another priority.
fn change_priority(priority: c_int) -> Result<(), c_int> {
    let of_dispatcher = priority::of_task(priority).ok_or(libc::EINVAL)?;
    if loaded::is_loaded() {
        return match loaded::ask_for_priority(priority) {
            true => Ok(()),
            false => Err(libc::EAGAIN),
        };
    }
    // SAFETY: no arguments.
    set_priority(unsafe { libc::pthread_self() }, of_dispatcher).map_err(ThreadError::errno)
}

/// A time or a period as C passes it; `None`: NULL.
unsafe fn value(pointer: *const RTime) -> Option<RTime> {
    // SAFETY: the caller's.
    unsafe { pointer.as_ref().copied() }
}

/// Refuses a period, or a priority, that is out of its range.
fn check(period: Option<RTime>, priority: c_int) -> Result<(), c_int> {
    match period.is_none_or(|period| period >= 0) && priority::of_task(priority).is_some() {
        true => Ok(()),
        false => Err(libc::EINVAL),
    }
}

#[no_mangle]
unsafe extern "C" fn RTget_time(time: *mut RTime) -> c_int {
    if time.is_null() {
        return failed(libc::EFAULT);
    }
    // SAFETY: the caller's.
    unsafe { time.write(now()) };
    0
}

#[no_mangle]
unsafe extern "C" fn RTset_params(start: *mut RTime, period: *mut RTime, priority: c_int) -> c_int {
    let _not_here = NoCancellation::begin();
    // SAFETY: the caller's.
    let (start, period) = unsafe { (value(start), value(period)) };
    let change = || {
        check(period, priority)?;
        let own = own()?;
        change_priority(priority)?;
        thread::with_thread(own, |thread| {
            let period = period.unwrap_or(thread.period);
            let next = match (thread.release, period) {
                (NEVER, 1..) => now().saturating_add(period),
                (_, 0) => NEVER,
                (release, _) => release,
            };
            let start = start.map_or(next, on_monotonic_clock);
            thread.set_periods(start, period);
        });
        Ok(0)
    };
    returned(change())
}

#[no_mangle]
unsafe extern "C" fn punctual__rtlinux_wait_start(
    start: *mut RTime,
    period: *mut RTime,
    priority: c_int,
) -> c_int {
    // SAFETY: the caller's.
    let (start, period) = unsafe { (value(start), value(period)) };
    let begin = || {
        check(period, priority)?;
        let start = on_monotonic_clock(start.ok_or(libc::EFAULT)?);
        let own = own()?;
        while now() < start {
            if wait(own, ThreadWait::Sleep, start) == WaitEnd::Cancelled {
                return Err(libc::EINTR);
            }
        }
        thread::with_thread(own, |thread| {
            let period = period.unwrap_or(thread.period);
            let next = if period == 0 { NEVER } else { start.saturating_add(period) };
            thread.set_periods(next, period);
        });
        change_priority(priority).map(|()| 0)
    };
    returned(begin())
}

#[no_mangle]
extern "C" fn punctual__rtlinux_wait_period() -> c_int {
    let wait_period = || {
        let own = own()?;
        let is_periodic = thread::with_thread(own, |thread| thread.period > 0);
        if is_periodic != Some(true) {
            return Err(libc::EINVAL);
        }
        match wait(own, ThreadWait::Period, NEVER) {
            WaitEnd::Time => Ok(0),
            WaitEnd::Wakeup | WaitEnd::Cancelled => Err(libc::EINTR),
        }
    };
    returned(wait_period())
}
