//! Messages of bytes between tasks.

use std::ffi::{c_int, c_long, c_void};
use std::ptr;

use super::messages::{
    as_pointer, peek, receive, returned, send, timed, until, with_task, Patience, FOR_EVER,
    NOT_AT_ALL,
};
use super::Rtime;
use crate::arena::{Arena, Handle, TaskIndex, Transaction};
use crate::current::{self, CallingTask};
use crate::message::{Received, SendMode};
use crate::rte;

/// The length of a message as C says it.
pub(super) fn length_of(pointer: *const c_void, size: c_long) -> usize {
    if pointer.is_null() {
        0
    } else {
        usize::try_from(size).unwrap_or(0)
    }
}

/// Sends bytes, with room for as many in return, or without an answer.
unsafe fn send_bytes(
    task: *mut c_void,
    (message, size): (*mut c_void, c_long),
    reply: Option<(*mut c_void, c_long)>,
    patience: Patience,
) -> *mut c_void {
    let length = length_of(message, size);
    let room = reply.map(|(to, size)| length_of(to, size));
    let (result, _) = send(task, (0, SendMode::Call), patience, |transaction, from| {
        // SAFETY: the caller's.
        unsafe { transaction.put_message(from, (message.cast(), length), room) }
    });
    if let (Ok(_), Some((to, _)), Some(room)) = (result, reply, room) {
        if let Some(CallingTask { arena, task }) = current::calling_task() {
            // SAFETY: the caller's.
            unsafe { take_reply(arena, task, to, room) };
        }
    }
    returned(result)
}

/// Copies what was returned to the calling task.
///
/// # Safety
/// `to` has room for `room` bytes.
unsafe fn take_reply(arena: &Arena, task: TaskIndex, to: *mut c_void, room: usize) {
    arena.transact(|transaction| {
        let outgoing = &transaction.task(task).outgoing;
        let length = room.min(outgoing.length.get() as usize);
        // SAFETY: the caller's.
        unsafe { transaction.read(outgoing, 0, to.cast(), length) };
    });
}

#[no_mangle]
unsafe extern "C" fn rt_sendx(task: *mut c_void, message: *mut c_void, size: c_int) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { send_bytes(task, (message, size.into()), None, FOR_EVER) }
}

#[no_mangle]
unsafe extern "C" fn rt_sendx_if(
    task: *mut c_void,
    message: *mut c_void,
    size: c_int,
) -> *mut c_void {
    let length = length_of(message, size.into());
    let to = Handle::from_pointer(task);
    let (result, _) = send(task, (0, SendMode::Send), NOT_AT_ALL, |transaction, from| {
        transaction.put_nothing(from);
        // The receiver does not wait for it, and is not waited for.
        let to = transaction.find_task(to).filter(|to| transaction.receives_from(*to, from));
        // SAFETY: the caller's.
        to.is_none_or(|to| unsafe { transaction.put_incoming(to, message.cast(), length) })
    });
    returned(result)
}

#[no_mangle]
unsafe extern "C" fn rt_sendx_until(
    task: *mut c_void,
    message: *mut c_void,
    size: c_int,
    time: Rtime,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { send_bytes(task, (message, size.into()), None, until(time)) }
}

#[no_mangle]
unsafe extern "C" fn rt_sendx_timed(
    task: *mut c_void,
    message: *mut c_void,
    size: c_long,
    delay: Rtime,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { send_bytes(task, (message, size), None, timed(delay)) }
}

#[no_mangle]
unsafe extern "C" fn rt_rpcx(
    task: *mut c_void,
    message: *mut c_void,
    reply: *mut c_void,
    size: c_int,
    reply_size: c_int,
) -> *mut c_void {
    let reply = Some((reply, reply_size.into()));
    // SAFETY: the caller's.
    unsafe { send_bytes(task, (message, size.into()), reply, FOR_EVER) }
}

#[no_mangle]
unsafe extern "C" fn rt_rpcx_if(
    task: *mut c_void,
    message: *mut c_void,
    reply: *mut c_void,
    size: c_int,
    reply_size: c_int,
) -> *mut c_void {
    let reply = Some((reply, reply_size.into()));
    // SAFETY: the caller's.
    unsafe { send_bytes(task, (message, size.into()), reply, NOT_AT_ALL) }
}

#[no_mangle]
unsafe extern "C" fn rt_rpcx_until(
    task: *mut c_void,
    message: *mut c_void,
    reply: *mut c_void,
    size: c_int,
    reply_size: c_int,
    time: Rtime,
) -> *mut c_void {
    let reply = Some((reply, reply_size.into()));
    // SAFETY: the caller's.
    unsafe { send_bytes(task, (message, size.into()), reply, until(time)) }
}

#[no_mangle]
unsafe extern "C" fn rt_rpcx_timed(
    task: *mut c_void,
    message: *mut c_void,
    reply: *mut c_void,
    size: c_int,
    reply_size: c_int,
    delay: Rtime,
) -> *mut c_void {
    let reply = Some((reply, reply_size.into()));
    // SAFETY: the caller's.
    unsafe { send_bytes(task, (message, size.into()), reply, timed(delay)) }
}

#[no_mangle]
unsafe extern "C" fn rt_returnx(
    task: *mut c_void,
    message: *mut c_void,
    size: c_int,
) -> *mut c_void {
    let length = length_of(message, size.into());
    with_task(task, as_pointer(rte::OBJINV), |transaction, me, caller| {
        // SAFETY: the caller's.
        match unsafe { transaction.give_back_bytes(me, caller, message.cast(), length) } {
            true => task,
            false => ptr::null_mut(),
        }
    })
}

unsafe fn receive_bytes(
    task: *mut c_void,
    message: *mut c_void,
    size: c_int,
    length: *mut c_long,
    patience: Patience,
) -> *mut c_void {
    let room = length_of(message, size.into());
    // SAFETY: the caller's.
    match unsafe { receive(task, patience, Some((message, room))) } {
        Ok(answer) => {
            if !length.is_null() {
                // SAFETY: the caller's.
                unsafe { length.write(answer.bytes as c_long) };
            }
            answer.from.pointer()
        }
        Err(error) => as_pointer(error),
    }
}

#[no_mangle]
unsafe extern "C" fn rt_receivex(
    task: *mut c_void,
    message: *mut c_void,
    size: c_int,
    length: *mut c_long,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { receive_bytes(task, message, size, length, FOR_EVER) }
}

#[no_mangle]
unsafe extern "C" fn rt_receivex_if(
    task: *mut c_void,
    message: *mut c_void,
    size: c_int,
    length: *mut c_long,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { receive_bytes(task, message, size, length, NOT_AT_ALL) }
}

#[no_mangle]
unsafe extern "C" fn rt_receivex_until(
    task: *mut c_void,
    message: *mut c_void,
    size: c_int,
    length: *mut c_long,
    time: Rtime,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { receive_bytes(task, message, size, length, until(time)) }
}

#[no_mangle]
unsafe extern "C" fn rt_receivex_timed(
    task: *mut c_void,
    message: *mut c_void,
    size: c_int,
    length: *mut c_long,
    delay: Rtime,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { receive_bytes(task, message, size, length, timed(delay)) }
}

#[no_mangle]
unsafe extern "C" fn rt_evdrpx(
    task: *mut c_void,
    message: *mut c_void,
    size: c_int,
    length: *mut c_long,
) -> *mut c_void {
    let room = length_of(message, size.into());
    let look = |transaction: &mut Transaction<'_>, me, received: Received| {
        // SAFETY: the caller's.
        unsafe { transaction.take_bytes(me, received.from, (message.cast(), room), false) }
    };
    match peek(task, look) {
        Ok((from, bytes)) => {
            if !length.is_null() {
                // SAFETY: the caller's.
                unsafe { length.write(bytes as c_long) };
            }
            from.pointer()
        }
        Err(error) => as_pointer(error),
    }
}
