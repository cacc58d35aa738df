//! Hard tasks, periods and budgets.

use std::ffi::{c_int, c_void};

use punctual::ErrorKind;

use super::watchdog::{self, Watched};
use super::{named_task, Rtime};
use crate::arena::{Arena, TaskIndex, Transaction};
use crate::blocking::{self, now};
use crate::current::{self, CallingTask};
use crate::hard::{self, PeriodWait};
use crate::rte;

#[no_mangle]
extern "C" fn rt_make_hard_real_time() {
    if let Some(CallingTask { arena, task }) = current::calling_task() {
        hard::make_hard(arena, task);
    }
}

#[no_mangle]
extern "C" fn rt_make_soft_real_time() {
    if let Some(CallingTask { arena, task }) = current::calling_task() {
        hard::make_soft(arena, task);
    }
}

#[no_mangle]
extern "C" fn rt_is_hard_real_time(task: *mut c_void) -> c_int {
    if task.is_null() && current::task().is_none() {
        return 0;
    }
    let found = named_task(task);
    found.is_ok_and(|(arena, task)| arena.task(task).is_hard.get() != 0).into()
}

#[no_mangle]
extern "C" fn rt_allow_nonroot_hrt() {}

#[no_mangle]
extern "C" fn rt_linux_syscall_server_create(task: *mut c_void) -> *mut c_void {
    match named_task(task) {
        Ok((arena, task)) => super::tasks::handle_of(arena, task),
        Err(_) => std::ptr::null_mut(),
    }
}

/// Makes a task periodic: that of the calling thread waits for its first period here, another one
/// in its next call.
fn make_periodic(
    task: *mut c_void,
    make: impl FnOnce(&mut Transaction<'_>, TaskIndex),
) -> Result<(&'static Arena, TaskIndex), c_int> {
    let (arena, task) = named_task(task)?;
    arena.transact(|transaction| make(transaction, task));
    Ok((arena, task))
}

fn periodic(task: *mut c_void, start: Rtime, period: Rtime) -> c_int {
    let made = make_periodic(task, |transaction, task| {
        transaction.make_periodic(task, start, period);
    });
    match made {
        Err(errno) => errno,
        Ok((arena, task)) => {
            if current::task() == Some(task) {
                // It may have had a budget, and has none now.
                let _ = hard::apply(arena, task).inspect_err(hard::refused);
                blocking::pass(arena, task);
            }
            0
        }
    }
}

#[no_mangle]
extern "C" fn rt_task_make_periodic(task: *mut c_void, start_time: Rtime, period: Rtime) -> c_int {
    periodic(task, start_time, period)
}

#[no_mangle]
extern "C" fn rt_task_make_periodic_relative_ns(
    task: *mut c_void,
    start_delay: Rtime,
    period: Rtime,
) -> c_int {
    periodic(task, now().saturating_add(start_delay), period)
}

#[no_mangle]
extern "C" fn rt_task_make_periodic_budget(
    task: *mut c_void,
    start_time: Rtime,
    period: Rtime,
    budget: Rtime,
) -> c_int {
    if budget <= 0 || period < budget {
        return -libc::EINVAL;
    }
    let made = make_periodic(task, |transaction, task| {
        transaction.make_periodic_budget(task, start_time, (period, budget));
    });
    match made {
        Err(errno) => errno,
        Ok((arena, task)) if current::task() == Some(task) => take_budget(arena, task),
        Ok(_) => 0,
    }
}

/// The calling thread's task has the budget that was asked for, or none.
fn take_budget(arena: &Arena, task: TaskIndex) -> c_int {
    let Err(error) = hard::apply(arena, task) else { return 0 };
    let slot = arena.task(task);
    // It is periodic in any case.
    arena.transact(|transaction| {
        transaction.make_periodic(task, slot.periodic_resume_time.signed(), slot.period.signed());
    });
    let _ = hard::apply(arena, task);
    blocking::pass(arena, task);
    hard::refused(&error);
    match error.kind {
        ErrorKind::NotAdmitted => -libc::EBUSY,
        ErrorKind::Usage => -libc::EINVAL,
        // The machine permits no budgets: the program continues without.
        _ => 0,
    }
}

/// As `rt_task_wait_period`, which is in period.c: sets `ends` where the watchdog has ended the
/// task, and the thread is to follow it.
#[no_mangle]
unsafe extern "C" fn punctual__rtai_wait_period(ends: *mut c_int) -> c_int {
    let Some(CallingTask { arena, task }) = current::calling_task() else { return -libc::EINVAL };
    if let Some(result) = wait_for_budget() {
        return result;
    }
    match watchdog::watch(arena, task) {
        Watched::InTime => wait_for_clock(arena, task),
        Watched::Restarts => rte::TMROVRN,
        Watched::Ends => {
            current::leave();
            // SAFETY: a word of the caller's.
            unsafe { ends.write(1) };
            0
        }
    }
}

/// The same of a task without a budget.
fn wait_for_clock(arena: &Arena, task: TaskIndex) -> c_int {
    let begin = |transaction: &mut Transaction<'_>| transaction.begin_period_wait(task, now());
    blocking::wait(arena, task, begin, |_, outcome| Transaction::end_sleep(outcome))
}

/// The same of a task with a budget; `None`: it has none.
fn wait_for_budget() -> Option<c_int> {
    if hard::current_release().is_some() && is_in_budget_handler() {
        // The handler was called on the next budget, for which it was to wait.
        return Some(0);
    }
    Some(match hard::wait_period()? {
        PeriodWait::Next => 0,
        PeriodWait::Late => rte::TMROVRN,
        PeriodWait::Over => {
            hard::leave();
            rte::UNBLKD
        }
    })
}

/// The calling thread executes its handler of SIGBUDGET, which the kernel blocks meanwhile.
fn is_in_budget_handler() -> bool {
    // SAFETY: reads only; a zeroed set is a valid place for the answer.
    unsafe {
        let mut blocked: libc::sigset_t = std::mem::zeroed();
        libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut blocked);
        libc::sigismember(&blocked, libc::SIGXCPU) == 1
    }
}

#[no_mangle]
extern "C" fn rt_task_next_period() -> Rtime {
    let Some(CallingTask { arena, task }) = current::calling_task() else { return 0 };
    let slot = arena.task(task);
    let last = match hard::current_release() {
        Some(release) => release as Rtime,
        None => slot.periodic_resume_time.signed(),
    };
    last.saturating_add(slot.period.signed())
}

#[no_mangle]
extern "C" fn rt_set_period(task: *mut c_void, new_period: Rtime) -> c_int {
    let (arena, task) = match named_task(task) {
        Ok(found) => found,
        Err(errno) => return errno,
    };
    let slot = arena.task(task);
    if slot.budget.get() != 0 && new_period < slot.budget.signed() {
        return -libc::EINVAL;
    }
    arena.transact(|transaction| {
        transaction.set_signed(&slot.period, new_period);
        if slot.budget.get() != 0 {
            transaction.change_reservation(task);
        }
    });
    0
}
