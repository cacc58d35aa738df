//! A policy of the program that does not return must not keep the CPU: it executes in the
//! dispatcher's thread, above all tasks, and ordinary programs that end the run may need that CPU.
//!
//! Each 100 ms of its own CPU time the thread gets a signal. One that arrives in the same call of a
//! policy as the signal before puts the thread into the ordinary class. If the policy returns after
//! all, the dispatcher restores its level; if not, the run is ended ([`stuck_policy`]).
//!
//! [`stuck_policy`]: punctual_policies::stuck_policy

use std::cell::{Cell, RefCell};
use std::io;

use punctual_policies::{call_in_progress, policies, POLICIES};
use punctual_sys::sched as sys;
use punctual_sys::thread_timer::{ThreadTimer, TimerClock};

use crate::sched;
use crate::signal;

/// Of the thread's CPU time, ns.
const INTERVAL: u64 = 100_000_000;

thread_local! {
    /// The call that the last signal interrupted.
    static CALL: Cell<u64> = const { Cell::new(0) };
    static LOWERED: Cell<bool> = const { Cell::new(false) };
    /// This thread's timer.
    static TIMER: RefCell<Option<ThreadTimer>> = const { RefCell::new(None) };
}

/// The signal's number: the last but two of the real-time signals.
fn number() -> i32 {
    libc::SIGRTMAX() - 2
}

extern "C" fn interrupt(_: i32) {
    // SAFETY: errno's place is this thread's own; the interrupted code must find its value again.
    let errno = unsafe { *libc::__errno_location() };
    let call = call_in_progress();
    if CALL.replace(call) == call && call != 0 {
        LOWERED.set(sys::set_other(0).is_ok());
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Interrupts the calling thread, a dispatcher's, from now on, if the program has policies of its
/// own by now. To be called again when policies are swapped: a plugin may be new.
///
/// # Errors
/// The program handles the signal itself; no timer.
pub fn bound_calls() -> io::Result<()> {
    if TIMER.with_borrow(Option::is_some) || policies().len() == POLICIES.len() {
        return Ok(());
    }
    signal::handle(number(), interrupt)?;
    signal::unblock(number());
    let timer = ThreadTimer::of_this_thread(TimerClock::ThreadCpu, number())?;
    timer.set_interval(INTERVAL)?;
    TIMER.set(Some(timer));
    Ok(())
}

/// Restores the dispatcher's level, if a call took it. Real-time safe.
pub fn restore_level() {
    if LOWERED.replace(false) {
        let _ = sched::set_level(0, sched::DISPATCHER);
    }
}
