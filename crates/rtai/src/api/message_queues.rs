//! Queues of messages with priorities: typed mailboxes.

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::ptr;

use super::{registry, Rtime};
use crate::arena::{Handle, ObjectIndex, Owner, SlotKind, Transaction};
use crate::blocking::{self, now};
use crate::current::{self, CallingTask};
use crate::message_queue::{Incoming, Outgoing, Taken};
use crate::rte;

/// How many messages C says that a queue has room for; `None`: it cannot have that.
fn messages(most: c_int) -> Option<u64> {
    u64::try_from(most).ok().filter(|most| *most > 0)
}

#[no_mangle]
extern "C" fn rt_msgq_init(name: c_ulong, most: c_int, _size: c_int) -> *mut c_void {
    // As in RTAI, whose programs rely on it: other objects of a name in use are not found.
    let owner = if name == 0 { Owner::Process } else { Owner::Users };
    let new = |transaction: &mut Transaction<'_>, name| {
        transaction.new_message_queue(name, messages(most)?, owner)
    };
    match name {
        0 => registry::make(name, new),
        name => registry::find_or_make_number(name, SlotKind::MessageQueue, new),
    }
}

#[no_mangle]
unsafe extern "C" fn rt_named_msgq_init(
    name: *const c_char,
    most: c_int,
    _size: c_int,
) -> *mut c_void {
    let new = |transaction: &mut Transaction<'_>, name| {
        transaction.new_message_queue(name, messages(most)?, Owner::Users)
    };
    // SAFETY: the caller's.
    unsafe { registry::find_or_make(name, SlotKind::MessageQueue, new) }
}

/// Calls `f` with a queue; else `bad`.
fn with_queue(
    queue: *mut c_void,
    bad: c_int,
    f: impl FnOnce(&mut Transaction<'_>, ObjectIndex) -> c_int,
) -> c_int {
    registry::with_object(queue, SlotKind::MessageQueue, bad, f)
}

#[no_mangle]
extern "C" fn rt_msgq_delete(queue: *mut c_void) -> c_int {
    registry::delete_of_user(queue, SlotKind::MessageQueue)
}

#[no_mangle]
extern "C" fn rt_named_msgq_delete(queue: *mut c_void) -> c_int {
    registry::delete_of_user(queue, SlotKind::MessageQueue)
}

/// How many bytes C says; `None`: they are not there.
fn length_of(bytes: *const c_void, size: c_int) -> Option<usize> {
    let length = usize::try_from(size).unwrap_or(0);
    (length == 0 || !bytes.is_null()).then_some(length)
}

/// A message as C passes it.
fn outgoing(bytes: *mut c_void, size: c_int, priority: c_int) -> Option<Outgoing> {
    let length = length_of(bytes, size)?;
    let bytes = if length == 0 { ptr::dangling() } else { bytes.cast_const().cast() };
    Some(Outgoing { bytes, length, priority })
}

unsafe fn send(
    queue: *mut c_void,
    message: Option<Outgoing>,
    patience: (bool, Option<Rtime>),
) -> c_int {
    let (Some(message), Some(CallingTask { arena, task })) = (message, current::calling_task())
    else {
        return rte::OBJINV;
    };
    let handle = Handle::from_pointer(queue);
    // SAFETY: the caller's.
    let begin = |transaction: &mut Transaction<'_>| unsafe {
        transaction.begin_queue_send(handle, task, message, patience, now())
    };
    blocking::wait(arena, task, begin, |transaction, outcome| {
        transaction.end_queue_send(task, outcome)
    })
}

#[no_mangle]
unsafe extern "C" fn rt_msg_send(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { send(queue, outgoing(message, size, priority), (false, None)) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_send_if(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { send(queue, outgoing(message, size, priority), (true, None)) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_send_until(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: c_int,
    until: Rtime,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { send(queue, outgoing(message, size, priority), (false, Some(until))) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_send_timed(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: c_int,
    delay: Rtime,
) -> c_int {
    let until = now().saturating_add(delay);
    // SAFETY: the caller's.
    unsafe { send(queue, outgoing(message, size, priority), (false, Some(until))) }
}

/// Room for a message as C passes it.
fn incoming(bytes: *mut c_void, size: c_int) -> Option<Incoming> {
    let room = length_of(bytes, size)?;
    let bytes = if room == 0 { ptr::dangling_mut() } else { bytes.cast() };
    Some(Incoming { bytes, room })
}

/// What is left of the room, and the priority.
unsafe fn received(to: Incoming, taken: Taken, priority: *mut c_int) -> c_int {
    if !priority.is_null() {
        // SAFETY: the caller's.
        unsafe { priority.write(taken.priority) };
    }
    (to.room - taken.length) as c_int
}

unsafe fn receive(
    queue: *mut c_void,
    to: Option<Incoming>,
    priority: *mut c_int,
    patience: (bool, Option<Rtime>),
) -> c_int {
    let (Some(to), Some(CallingTask { arena, task })) = (to, current::calling_task()) else {
        return rte::OBJINV;
    };
    let handle = Handle::from_pointer(queue);
    // SAFETY: the caller's.
    let begin = |transaction: &mut Transaction<'_>| unsafe {
        transaction.begin_queue_receive(handle, task, to, patience, now())
    };
    // SAFETY: the caller's.
    let taken = blocking::wait(arena, task, begin, |transaction, outcome| unsafe {
        transaction.end_queue_receive(task, to, outcome)
    });
    match taken {
        // SAFETY: the caller's.
        Ok(taken) => unsafe { received(to, taken, priority) },
        Err(result) => result,
    }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_receive(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: *mut c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { receive(queue, incoming(message, size), priority, (false, None)) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_receive_if(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: *mut c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { receive(queue, incoming(message, size), priority, (true, None)) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_receive_until(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: *mut c_int,
    until: Rtime,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { receive(queue, incoming(message, size), priority, (false, Some(until))) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_receive_timed(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: *mut c_int,
    delay: Rtime,
) -> c_int {
    let until = now().saturating_add(delay);
    // SAFETY: the caller's.
    unsafe { receive(queue, incoming(message, size), priority, (false, Some(until))) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_evdrp(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: *mut c_int,
) -> c_int {
    let Some(to) = incoming(message, size) else { return rte::OBJINV };
    with_queue(queue, rte::OBJINV, |transaction, id| {
        // SAFETY: the caller's.
        match unsafe { transaction.take_first(id, to, true) } {
            Some(taken) => {
                // SAFETY: the caller's.
                unsafe { received(to, taken, priority) };
                0
            }
            None => size,
        }
    })
}

unsafe fn broadcast(queue: *mut c_void, message: Option<Outgoing>) -> c_int {
    let Some(message) = message else { return rte::OBJINV };
    with_queue(queue, rte::OBJINV, |transaction, id| {
        // SAFETY: the caller's.
        unsafe { transaction.broadcast_message(id, message) }
    })
}

#[no_mangle]
unsafe extern "C" fn rt_msg_broadcast(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { broadcast(queue, outgoing(message, size, priority)) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_broadcast_if(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: c_int,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { broadcast(queue, outgoing(message, size, priority)) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_broadcast_until(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: c_int,
    _until: Rtime,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { broadcast(queue, outgoing(message, size, priority)) }
}

#[no_mangle]
unsafe extern "C" fn rt_msg_broadcast_timed(
    queue: *mut c_void,
    message: *mut c_void,
    size: c_int,
    priority: c_int,
    _delay: Rtime,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { broadcast(queue, outgoing(message, size, priority)) }
}
