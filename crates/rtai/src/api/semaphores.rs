//! Semaphores, barriers and condition variables.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_ulong, c_void};

use super::{registry, Rtime};
use crate::arena::{arena, Handle, ObjectIndex, Owner, SlotKind, Transaction};
use crate::blocking::{self, now, Begun};
use crate::current::{self, CallingTask};
use crate::rte;
use crate::semaphore::SemaphoreWait;

#[no_mangle]
extern "C" fn rt_typed_sem_init(name: c_ulong, value: c_int, kind: c_int) -> *mut c_void {
    registry::make(name, |transaction, name| {
        transaction.new_semaphore(name, value, kind, Owner::Process)
    })
}

#[no_mangle]
unsafe extern "C" fn rt_typed_named_sem_init(
    name: *const c_char,
    value: c_int,
    kind: c_int,
) -> *mut c_void {
    let new = |transaction: &mut Transaction<'_>, name| {
        transaction.new_semaphore(name, value, kind, Owner::Users)
    };
    // SAFETY: the caller's.
    unsafe { registry::find_or_make(name, SlotKind::Semaphore, new) }
}

/// Calls `f` with a semaphore; else `bad`.
fn with_semaphore(
    semaphore: *mut c_void,
    bad: c_int,
    f: impl FnOnce(&mut Transaction<'_>, ObjectIndex) -> c_int,
) -> c_int {
    registry::with_object(semaphore, SlotKind::Semaphore, bad, f)
}

#[no_mangle]
extern "C" fn rt_sem_delete(semaphore: *mut c_void) -> c_int {
    registry::delete(semaphore, SlotKind::Semaphore)
}

#[no_mangle]
extern "C" fn rt_named_sem_delete(semaphore: *mut c_void) -> c_int {
    registry::delete_of_user(semaphore, SlotKind::Semaphore)
}

/// The calling task may have been suspended by what it did: it waits then.
fn after(result: c_int) -> c_int {
    if let Some((arena, task)) = arena().zip(current::task()) {
        blocking::pass(arena, task);
    }
    result
}

#[no_mangle]
extern "C" fn rt_sem_signal(semaphore: *mut c_void) -> c_int {
    let caller = current::task();
    after(with_semaphore(semaphore, rte::OBJINV, |transaction, id| transaction.signal(id, caller)))
}

#[no_mangle]
extern "C" fn rt_sem_broadcast(semaphore: *mut c_void) -> c_int {
    with_semaphore(semaphore, rte::OBJINV, |transaction, id| {
        transaction.broadcast(id);
        0
    })
}

#[no_mangle]
extern "C" fn rt_sem_count(semaphore: *mut c_void) -> c_int {
    with_semaphore(semaphore, rte::OBJINV, |transaction, id| transaction.units(id))
}

#[no_mangle]
extern "C" fn rt_sem_wait_if(semaphore: *mut c_void) -> c_int {
    let Some(caller) = current::calling_task() else { return rte::OBJINV };
    with_semaphore(semaphore, rte::OBJINV, |transaction, id| {
        transaction.wait_if(id, Some(caller.task))
    })
}

/// Waits for a unit until then, or for ever.
fn wait_for(semaphore: *mut c_void, until: Option<Rtime>) -> c_int {
    let Some(CallingTask { arena, task }) = current::calling_task() else { return rte::OBJINV };
    let handle = Handle::from_pointer(semaphore);
    let wait = SemaphoreWait { semaphore: handle, task, until };
    let begin = |transaction: &mut Transaction<'_>| transaction.begin_semaphore_wait(wait, now());
    blocking::wait(arena, task, begin, |transaction, outcome| {
        transaction.end_semaphore_wait(wait, outcome)
    })
}

#[no_mangle]
extern "C" fn rt_sem_wait(semaphore: *mut c_void) -> c_int {
    wait_for(semaphore, None)
}

#[no_mangle]
extern "C" fn rt_sem_wait_until(semaphore: *mut c_void, time: Rtime) -> c_int {
    wait_for(semaphore, Some(time))
}

#[no_mangle]
extern "C" fn rt_sem_wait_timed(semaphore: *mut c_void, delay: Rtime) -> c_int {
    wait_for(semaphore, Some(now().saturating_add(delay)))
}

#[no_mangle]
extern "C" fn rt_sem_wait_barrier(semaphore: *mut c_void) -> c_int {
    let Some(CallingTask { arena, task }) = current::calling_task() else { return rte::OBJINV };
    let handle = Handle::from_pointer(semaphore);
    let wait = SemaphoreWait { semaphore: handle, task, until: None };
    let begin = |transaction: &mut Transaction<'_>| match transaction
        .find_object(handle, SlotKind::Semaphore)
    {
        None => Begun::Done(rte::OBJINV),
        Some(id) if transaction.arrive(id) => transaction.begin_semaphore_wait(wait, now()),
        Some(_) => Begun::Done(0),
    };
    blocking::wait(arena, task, begin, |transaction, outcome| {
        transaction.end_semaphore_wait(wait, outcome);
        -1
    })
}

#[no_mangle]
extern "C" fn rt_cond_signal(condition: *mut c_void) -> c_int {
    with_semaphore(condition, rte::OBJINV, |transaction, id| {
        transaction.signal_condition(id);
        0
    })
}

fn condition_wait(condition: *mut c_void, mutex: *mut c_void, until: Option<Rtime>) -> c_int {
    let Some(CallingTask { arena, task }) = current::calling_task() else { return rte::OBJINV };
    let handle = Handle::from_pointer(mutex);
    let depth = Cell::new(0);
    let begin = |transaction: &mut Transaction<'_>| {
        let find =
            |pointer| transaction.find_object(Handle::from_pointer(pointer), SlotKind::Semaphore);
        let Some((condition, mutex)) = find(condition).zip(find(mutex)) else {
            return Begun::Done((rte::OBJINV, false));
        };
        match transaction.begin_condition_wait(condition, mutex, (task, until), now()) {
            Ok(locked) => {
                depth.set(locked);
                Begun::Waits
            }
            Err(result) => Begun::Done((result, false)),
        }
    };
    let (result, waited) = blocking::wait(arena, task, begin, |transaction, outcome| {
        (transaction.end_condition_wait(task, outcome), true)
    });
    // It locks the mutex again, also after an error.
    if waited && wait_for(mutex, None) < rte::TMROVRN {
        arena.transact(|transaction| {
            if let Some(id) = transaction.find_object(handle, SlotKind::Semaphore) {
                transaction.restore_depth(id, task, depth.get());
            }
        });
    }
    result
}

#[no_mangle]
extern "C" fn rt_cond_wait(condition: *mut c_void, mutex: *mut c_void) -> c_int {
    condition_wait(condition, mutex, None)
}

#[no_mangle]
extern "C" fn rt_cond_wait_until(condition: *mut c_void, mutex: *mut c_void, time: Rtime) -> c_int {
    condition_wait(condition, mutex, Some(time))
}

#[no_mangle]
extern "C" fn rt_cond_wait_timed(
    condition: *mut c_void,
    mutex: *mut c_void,
    delay: Rtime,
) -> c_int {
    condition_wait(condition, mutex, Some(now().saturating_add(delay)))
}
