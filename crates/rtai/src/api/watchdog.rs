//! The settings of the watchdog, and what it does to the calling thread.

use std::ffi::c_int;
use std::fmt::Write;
use std::ptr;

use super::{name_of, tasks};
use crate::arena::{arena, Arena, TaskIndex, Transaction, WatchdogSettings, Word};
use crate::blocking::now;
use crate::watchdog::{Measure, WatchdogPolicy};

/// What the watchdog made of a task that is about to wait for its next period.
pub enum Watched {
    InTime,
    /// Its periods have restarted.
    Restarts,
    /// The task ends.
    Ends,
}

/// Looks at the calling thread's `task`, and takes measures.
pub fn watch(arena: &Arena, task: TaskIndex) -> Watched {
    if arena.watchdog().policy.get() == WatchdogPolicy::Nothing as u64 {
        return Watched::InTime;
    }
    let restart = || {
        arena.transact(|transaction| transaction.resync(task, now()));
        Watched::Restarts
    };
    match arena.transact(|transaction| transaction.watch(task, now())) {
        Measure::None => Watched::InTime,
        Measure::Resync => restart(),
        Measure::Slip(ns) => {
            let now = now();
            tasks::sleep(now.saturating_add(ns), now);
            Watched::InTime
        }
        Measure::Suspend => {
            report(arena, task, "suspended");
            tasks::rt_task_suspend(ptr::null_mut());
            restart()
        }
        Measure::End => {
            report(arena, task, "ended");
            Watched::Ends
        }
    }
}

/// Says what happens to a task that would not be missed otherwise.
fn report(arena: &Arena, task: TaskIndex, what: &str) {
    let name = name_of(arena.task(task).head.name.get());
    let mut line = String::with_capacity(80);
    let name = String::from_utf8_lossy(&name);
    let _ = writeln!(line, "liblxrt: task {name} overruns its period: it is {what} (rtai_wd.h)");
    eprint!("{line}");
}

/// Changes a setting where `is_good` says so, and returns the one before.
fn change(
    new: c_int,
    word: impl FnOnce(&WatchdogSettings) -> &Word,
    is_good: impl FnOnce(&WatchdogSettings) -> bool,
) -> c_int {
    let Some(arena) = arena() else { return -libc::EINVAL };
    arena.transact(|transaction| {
        let settings = transaction.watchdog();
        if !is_good(settings) {
            return -libc::EINVAL;
        }
        let word = word(settings);
        let old = word.signed() as c_int;
        transaction.set_signed(word, new.into());
        old
    })
}

/// A grace period is one, with the policies that have to act at once.
fn is_good_grace(settings: &WatchdogSettings, new: c_int) -> bool {
    let acts_at_once = settings.policy.get() <= WatchdogPolicy::Stretch as u64;
    new == 1 || new > 1 && !acts_at_once
}

#[no_mangle]
extern "C" fn rt_wdset_grace(new: c_int) -> c_int {
    change(new, |settings| &settings.grace, |settings| is_good_grace(settings, new))
}

#[no_mangle]
extern "C" fn rt_wdset_gracediv(new: c_int) -> c_int {
    change(new, |settings| &settings.grace_divisor, |settings| is_good_grace(settings, new))
}

#[no_mangle]
extern "C" fn rt_wdset_safety(new: c_int) -> c_int {
    let is_good = |settings: &WatchdogSettings| new < 0 || settings.grace.signed() <= new.into();
    change(new, |settings| &settings.safety, is_good)
}

#[no_mangle]
extern "C" fn rt_wdset_policy(new: c_int) -> c_int {
    let (Some(arena), Some(policy)) = (arena(), WatchdogPolicy::of(new.into())) else {
        return -libc::EINVAL;
    };
    arena.transact(|transaction: &mut Transaction<'_>| {
        let settings = transaction.watchdog();
        if policy <= WatchdogPolicy::Stretch {
            transaction.set(&settings.grace, 1);
            transaction.set(&settings.grace_divisor, 1);
        }
        if policy == WatchdogPolicy::Debug {
            transaction.set_signed(&settings.safety, -1);
            transaction.set_signed(&settings.limit, -1);
        }
        let old = settings.policy.signed() as c_int;
        transaction.set(&settings.policy, policy as u64);
        old
    })
}

#[no_mangle]
extern "C" fn rt_wdset_slip(new: c_int) -> c_int {
    change(new, |settings| &settings.slip, |_| new >= 0)
}

#[no_mangle]
extern "C" fn rt_wdset_stretch(new: c_int) -> c_int {
    change(new, |settings| &settings.stretch, |_| new >= 0)
}

#[no_mangle]
extern "C" fn rt_wdset_limit(new: c_int) -> c_int {
    change(new, |settings| &settings.limit, |_| true)
}
