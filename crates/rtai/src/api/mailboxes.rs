//! Mailboxes.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::ptr;

use super::{registry, Rtime};
use crate::arena::{Handle, ObjectIndex, Owner, SlotKind, Transaction};
use crate::blocking::{self, now, Begun};
use crate::current::{self, CallingTask};
use crate::mailbox::{Direction, Rest};
use crate::rte;
use crate::semaphore::SemaphoreWait;

#[no_mangle]
extern "C" fn rt_typed_mbx_init(name: c_ulong, size: c_int, queue: c_int) -> *mut c_void {
    let Ok(size) = usize::try_from(size) else { return ptr::null_mut() };
    registry::make(name, |transaction, name| {
        transaction.new_mailbox(name, size, queue, Owner::Process)
    })
}

#[no_mangle]
unsafe extern "C" fn rt_typed_named_mbx_init(
    name: *const c_char,
    size: c_int,
    queue: c_int,
) -> *mut c_void {
    let new = |transaction: &mut Transaction<'_>, name| {
        transaction.new_mailbox(name, usize::try_from(size).ok()?, queue, Owner::Users)
    };
    // SAFETY: the caller's.
    unsafe { registry::find_or_make(name, SlotKind::Mailbox, new) }
}

/// Calls `f` with a mailbox; else `bad`.
fn with_mailbox(
    mailbox: *mut c_void,
    bad: c_int,
    f: impl FnOnce(&mut Transaction<'_>, ObjectIndex) -> c_int,
) -> c_int {
    registry::with_object(mailbox, SlotKind::Mailbox, bad, f)
}

#[no_mangle]
extern "C" fn rt_mbx_delete(mailbox: *mut c_void) -> c_int {
    registry::delete(mailbox, SlotKind::Mailbox)
}

#[no_mangle]
extern "C" fn rt_named_mbx_delete(mailbox: *mut c_void) -> c_int {
    registry::delete_of_user(mailbox, SlotKind::Mailbox)
}

/// What C passes: nothing is moved of a message of no bytes.
fn rest(message: *mut c_void, size: c_int) -> Rest {
    Rest { memory: message.cast(), length: usize::try_from(size).unwrap_or(0) }
}

/// Moves all of a message, and waits for that.
unsafe fn transfer(
    mailbox: *mut c_void,
    direction: Direction,
    (message, size): (*mut c_void, c_int),
    until: Option<Rtime>,
) -> c_int {
    let Some(CallingTask { arena, task }) = current::calling_task() else { return rte::OBJINV };
    let handle = Handle::from_pointer(mailbox);
    let rest = Cell::new(rest(message, size));
    if rest.get().memory.is_null() && rest.get().length > 0 {
        return rte::OBJINV;
    }
    let lock = Cell::new(None);
    let locked = blocking::wait(
        arena,
        task,
        |transaction| {
            let Some(id) = transaction.find_object(handle, SlotKind::Mailbox) else {
                return Begun::Done(rte::OBJINV);
            };
            let is_whole = rest.get().length <= transaction.movable(id, direction);
            if is_whole && transaction.is_unlocked(id, direction) {
                let mut all = rest.get();
                // SAFETY: the caller's.
                unsafe { transaction.transfer(id, direction, &mut all) };
                rest.set(all);
                return Begun::Done(0);
            }
            transaction.is_unlocked(id, direction);
            let Some(resource) = transaction.lock_of(id, direction) else {
                return Begun::Done(rte::OBJINV);
            };
            let semaphore = transaction.handle_of_object(resource);
            lock.set(Some(semaphore));
            transaction.begin_semaphore_wait(SemaphoreWait { semaphore, task, until }, now())
        },
        |transaction, outcome| match lock.get() {
            Some(semaphore) => {
                let wait = SemaphoreWait { semaphore, task, until };
                transaction.end_semaphore_wait(wait, outcome)
            }
            None => rte::OBJINV,
        },
    );
    if lock.get().is_none() || locked >= rte::TMROVRN {
        return locked;
    }
    loop {
        let begin = |transaction: &mut Transaction<'_>| {
            let mut left = rest.get();
            let mailbox = (handle, direction);
            // SAFETY: the caller's.
            let begun =
                unsafe { transaction.begin_transfer(mailbox, task, &mut left, until, now()) };
            rest.set(left);
            match begun {
                Begun::Done(result) => Begun::Done(Some(result)),
                Begun::Waits => Begun::Waits,
            }
        };
        let ended = blocking::wait(arena, task, begin, |transaction, outcome| {
            transaction.end_transfer((handle, direction), task, outcome)
        });
        if let Some(result) = ended {
            // A task that was suspended meanwhile waits now.
            blocking::pass(arena, task);
            return result;
        }
    }
}

/// Moves all of a message, or as much as can be with `is_partial`, without a wait; how many bytes
/// are left.
unsafe fn transfer_now(
    mailbox: *mut c_void,
    direction: Direction,
    (message, size): (*mut c_void, c_int),
    is_partial: bool,
) -> c_int {
    let mut rest = rest(message, size);
    if rest.memory.is_null() && rest.length > 0 {
        return rte::OBJINV;
    }
    with_mailbox(mailbox, rte::OBJINV, |transaction, id| {
        let fits = is_partial || rest.length <= transaction.movable(id, direction);
        if fits && transaction.is_unlocked(id, direction) {
            // SAFETY: the caller's.
            unsafe { transaction.transfer(id, direction, &mut rest) };
        }
        rest.length as c_int
    })
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_send(mailbox: *mut c_void, message: *mut c_void, size: c_int) -> c_int {
    // SAFETY: the caller's.
    unsafe { transfer(mailbox, Direction::Send, (message, size), None) }
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_send_wp(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { transfer_now(mailbox, Direction::Send, (message, size), true) }
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_send_if(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { transfer_now(mailbox, Direction::Send, (message, size), false) }
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_send_until(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
    time: Rtime,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { transfer(mailbox, Direction::Send, (message, size), Some(time)) }
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_send_timed(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
    delay: Rtime,
) -> c_int {
    let until = Some(now().saturating_add(delay));
    // SAFETY: the caller's.
    unsafe { transfer(mailbox, Direction::Send, (message, size), until) }
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_ovrwr_send(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
) -> c_int {
    let mut rest = rest(message, size);
    if rest.memory.is_null() && rest.length > 0 {
        return rte::OBJINV;
    }
    with_mailbox(mailbox, rte::OBJINV, |transaction, id| {
        if !transaction.is_unlocked(id, Direction::Send) {
            return size;
        }
        // Of more than the mailbox has room for, the last bytes.
        let room = transaction.object(id).size.get() as usize;
        let skipped = rest.length.saturating_sub(room);
        rest.memory = rest.memory.wrapping_add(skipped);
        rest.length -= skipped;
        transaction.make_room(id, rest.length);
        // The bytes that are written next are those that were dropped.
        transaction.commit_so_far();
        // SAFETY: the caller's.
        unsafe { transaction.transfer(id, Direction::Send, &mut rest) };
        0
    })
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_evdrp(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
) -> c_int {
    let mut rest = rest(message, size);
    if rest.memory.is_null() && rest.length > 0 {
        return rte::OBJINV;
    }
    with_mailbox(mailbox, rte::OBJINV, |transaction, id| {
        // SAFETY: the caller's.
        unsafe { transaction.peek_mailbox(id, &mut rest) };
        rest.length as c_int
    })
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_receive(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { transfer(mailbox, Direction::Receive, (message, size), None) }
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_receive_wp(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { transfer_now(mailbox, Direction::Receive, (message, size), true) }
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_receive_if(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { transfer_now(mailbox, Direction::Receive, (message, size), false) }
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_receive_until(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
    time: Rtime,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { transfer(mailbox, Direction::Receive, (message, size), Some(time)) }
}

#[no_mangle]
unsafe extern "C" fn rt_mbx_receive_timed(
    mailbox: *mut c_void,
    message: *mut c_void,
    size: c_int,
    delay: Rtime,
) -> c_int {
    let until = Some(now().saturating_add(delay));
    // SAFETY: the caller's.
    unsafe { transfer(mailbox, Direction::Receive, (message, size), until) }
}
