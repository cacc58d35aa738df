//! Messages of a word between tasks.

use std::cell::Cell;
use std::ffi::{c_int, c_ulong, c_void};
use std::ptr;

use super::Rtime;
use crate::arena::{arena, Handle, TaskIndex, Transaction};
use crate::blocking::{self, now, Begun};
use crate::current::{self, CallingTask};
use crate::message::{MessageResult, Received, SendMode};
use crate::rte;

/// How long a call waits.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// Not at all.
    pub(super) is_if: bool,
    pub(super) until: Option<Rtime>,
}

pub(super) const FOR_EVER: Patience = Patience { is_if: false, until: None };
pub(super) const NOT_AT_ALL: Patience = Patience { is_if: true, until: None };

pub(super) fn until(time: Rtime) -> Patience {
    Patience { is_if: false, until: Some(time) }
}

pub(super) fn timed(delay: Rtime) -> Patience {
    until(now().saturating_add(delay))
}

/// An error number, or 0, as the address that C gets.
pub(super) fn as_pointer(error: c_int) -> *mut c_void {
    ptr::without_provenance_mut(error as usize)
}

pub(super) fn returned(result: MessageResult) -> *mut c_void {
    result.map_or_else(as_pointer, Handle::pointer)
}

/// Sends a word to a task, or calls it; what RTAI returns, and what the task returned. `prepare`
/// has what is sent beside the word.
pub(super) fn send(
    task: *mut c_void,
    (message, mode): (c_ulong, SendMode),
    patience: Patience,
    prepare: impl FnOnce(&mut Transaction<'_>, TaskIndex) -> bool,
) -> (MessageResult, u64) {
    let Some(CallingTask { arena, task: from }) = current::calling_task() else {
        return (Err(rte::OBJINV), 0);
    };
    let handle = Handle::from_pointer(task);
    let Patience { is_if, until } = patience;
    let begin = |transaction: &mut Transaction<'_>| {
        let Some(to) = transaction.find_task(handle).filter(|to| *to != from) else {
            return Begun::Done((Err(rte::OBJINV), 0));
        };
        transaction.reap_task(to);
        if transaction.find_task(handle).is_none() {
            return Begun::Done((Err(rte::OBJINV), 0));
        }
        if !prepare(transaction, from) {
            return Begun::Done((Err(0), 0));
        }
        match transaction.begin_send(from, to, (message, mode), (is_if, until), now()) {
            Begun::Done(result) => Begun::Done((result, 0)),
            Begun::Waits => Begun::Waits,
        }
    };
    blocking::wait(arena, from, begin, |transaction, outcome| {
        transaction.end_send(from, handle, outcome)
    })
}

/// The same of a word alone.
fn send_word(task: *mut c_void, message: c_ulong, patience: Patience) -> *mut c_void {
    let (result, _) = send(task, (message, SendMode::Send), patience, |transaction, from| {
        transaction.put_nothing(from);
        true
    });
    returned(result)
}

unsafe fn call_word(
    task: *mut c_void,
    message: c_ulong,
    result: *mut c_void,
    patience: Patience,
) -> *mut c_void {
    let (answer, word) = send(task, (message, SendMode::Call), patience, |transaction, from| {
        transaction.put_nothing(from);
        true
    });
    if answer.is_ok() && !result.is_null() {
        // SAFETY: the caller's.
        unsafe { result.cast::<u64>().write_unaligned(word) };
    }
    returned(answer)
}

#[no_mangle]
extern "C" fn rt_send(task: *mut c_void, message: c_ulong) -> *mut c_void {
    send_word(task, message, FOR_EVER)
}

#[no_mangle]
extern "C" fn rt_send_if(task: *mut c_void, message: c_ulong) -> *mut c_void {
    send_word(task, message, NOT_AT_ALL)
}

#[no_mangle]
extern "C" fn rt_send_until(task: *mut c_void, message: c_ulong, time: Rtime) -> *mut c_void {
    send_word(task, message, until(time))
}

#[no_mangle]
extern "C" fn rt_send_timed(task: *mut c_void, message: c_ulong, delay: Rtime) -> *mut c_void {
    send_word(task, message, timed(delay))
}

#[no_mangle]
unsafe extern "C" fn rt_rpc(
    task: *mut c_void,
    message: c_ulong,
    result: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { call_word(task, message, result, FOR_EVER) }
}

#[no_mangle]
unsafe extern "C" fn rt_rpc_if(
    task: *mut c_void,
    message: c_ulong,
    result: *mut c_void,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { call_word(task, message, result, NOT_AT_ALL) }
}

#[no_mangle]
unsafe extern "C" fn rt_rpc_until(
    task: *mut c_void,
    message: c_ulong,
    result: *mut c_void,
    time: Rtime,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { call_word(task, message, result, until(time)) }
}

#[no_mangle]
unsafe extern "C" fn rt_rpc_timed(
    task: *mut c_void,
    message: c_ulong,
    result: *mut c_void,
    delay: Rtime,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { call_word(task, message, result, timed(delay)) }
}

/// Calls `f` with a task and the calling one; else `bad`.
pub(super) fn with_task<T>(
    task: *mut c_void,
    bad: T,
    f: impl FnOnce(&mut Transaction<'_>, TaskIndex, TaskIndex) -> T,
) -> T {
    let Some(CallingTask { arena, task: me }) = current::calling_task() else { return bad };
    let handle = Handle::from_pointer(task);
    arena.transact(|transaction| match transaction.find_task(handle) {
        Some(task) => f(transaction, me, task),
        None => bad,
    })
}

#[no_mangle]
extern "C" fn rt_isrpc(task: *mut c_void) -> c_int {
    let Some(arena) = arena() else { return 0 };
    let handle = Handle::from_pointer(task);
    arena.transact(|transaction| {
        let task = transaction.find_task(handle);
        let waits = task.map_or(0, |task| transaction.task(task).state.get());
        (waits & crate::arena::queue::RETURN) as c_int
    })
}

#[no_mangle]
extern "C" fn rt_return(task: *mut c_void, result: c_ulong) -> *mut c_void {
    with_task(task, as_pointer(rte::OBJINV), |transaction, me, caller| {
        match transaction.give_back(me, caller, result) {
            true => task,
            false => ptr::null_mut(),
        }
    })
}

/// A received message, with its bytes already copied.
pub(super) struct Answer {
    pub(super) from: Handle,
    pub(super) message: u64,
    pub(super) bytes: usize,
}

/// Receives a message of `task`, or of any; `room` is for its bytes.
pub(super) unsafe fn receive(
    task: *mut c_void,
    patience: Patience,
    room: Option<(*mut c_void, usize)>,
) -> Result<Answer, c_int> {
    let CallingTask { arena, task: me } = current::calling_task().ok_or(rte::OBJINV)?;
    let handle = Handle::from_pointer(task);
    let Patience { is_if, until } = patience;
    let complete = Cell::new(room);
    let answer = |transaction: &mut Transaction<'_>, received: Received| {
        let from = transaction.handle_of_task(received.from);
        let bytes = complete.take().map_or(0, |(to, length)| {
            // SAFETY: the caller's.
            unsafe { transaction.take_bytes(me, received.from, (to.cast(), length), true) }
        });
        Answer { from, message: received.message, bytes }
    };
    let begin = |transaction: &mut Transaction<'_>| {
        let from = match task.is_null() {
            true => None,
            false => match transaction.find_partner(handle) {
                None => return Begun::Done(Err(rte::OBJINV)),
                from => from,
            },
        };
        match transaction.begin_receive(me, from, (is_if, until), now()) {
            Begun::Done(Ok(received)) => Begun::Done(Ok(answer(transaction, received))),
            Begun::Done(Err(error)) => Begun::Done(Err(error)),
            Begun::Waits => Begun::Waits,
        }
    };
    blocking::wait(arena, me, begin, |transaction, outcome| {
        let received = transaction.end_receive(me, outcome)?;
        Ok(answer(transaction, received))
    })
}

unsafe fn receive_word(task: *mut c_void, message: *mut c_void, patience: Patience) -> *mut c_void {
    // SAFETY: no room is needed.
    match unsafe { receive(task, patience, None) } {
        Ok(answer) => {
            if !message.is_null() {
                // SAFETY: the caller's.
                unsafe { message.cast::<u64>().write_unaligned(answer.message) };
            }
            answer.from.pointer()
        }
        Err(error) => as_pointer(error),
    }
}

#[no_mangle]
unsafe extern "C" fn rt_receive(task: *mut c_void, message: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { receive_word(task, message, FOR_EVER) }
}

#[no_mangle]
unsafe extern "C" fn rt_receive_if(task: *mut c_void, message: *mut c_void) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { receive_word(task, message, NOT_AT_ALL) }
}

#[no_mangle]
unsafe extern "C" fn rt_receive_until(
    task: *mut c_void,
    message: *mut c_void,
    time: Rtime,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { receive_word(task, message, until(time)) }
}

#[no_mangle]
unsafe extern "C" fn rt_receive_timed(
    task: *mut c_void,
    message: *mut c_void,
    delay: Rtime,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { receive_word(task, message, timed(delay)) }
}

/// Looks at the message that is next, of `task` or of any.
pub(super) fn peek<T>(
    task: *mut c_void,
    f: impl FnOnce(&mut Transaction<'_>, TaskIndex, Received) -> T,
) -> Result<(Handle, T), c_int> {
    let CallingTask { arena, task: me } = current::calling_task().ok_or(rte::OBJINV)?;
    let handle = Handle::from_pointer(task);
    arena.transact(|transaction| {
        let from = match task.is_null() {
            true => None,
            false => Some(transaction.find_partner(handle).ok_or(rte::OBJINV)?),
        };
        let received = transaction.peek(me, from).ok_or(0)?;
        let result = f(transaction, me, received);
        Ok((transaction.handle_of_task(received.from), result))
    })
}

#[no_mangle]
unsafe extern "C" fn rt_evdrp(task: *mut c_void, message: *mut c_void) -> *mut c_void {
    match peek(task, |_, _, received| received.message) {
        Ok((from, word)) => {
            if !message.is_null() {
                // SAFETY: the caller's.
                unsafe { message.cast::<u64>().write_unaligned(word) };
            }
            from.pointer()
        }
        Err(error) => as_pointer(error),
    }
}
