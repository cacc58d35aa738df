//! Waiting for any of some mailboxes.

use std::ffi::{c_int, c_ulong, c_void};
use std::slice;

use super::messages::as_pointer;
use super::Rtime;
use crate::arena::queue::WaitOutcome;
use crate::arena::{Handle, SlotKind, Transaction};
use crate::blocking::{self, now, Begun};
use crate::current::{self, CallingTask};
use crate::mailbox::Direction;
use crate::rte;

/// `struct rt_poll_s`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PollEntry {
    what: *mut c_void,
    for_what: c_ulong,
}

/// RT_POLL_MBX_RECV, RT_POLL_MBX_SEND.
const RECEIVE: c_ulong = 1;
const SEND: c_ulong = 2;
/// A timeout that is none: look once.
const LOOK_ONCE: Rtime = 1;

/// What an entry is ready with: NULL, or an error as an address; `None`: it is not.
fn state_of(
    transaction: &mut Transaction<'_>,
    entry: &PollEntry,
    missing: c_int,
) -> Option<*mut c_void> {
    let direction = match entry.for_what {
        RECEIVE => Direction::Receive,
        SEND => Direction::Send,
        _ => return Some(as_pointer(rte::OBJINV)),
    };
    match transaction.find_object(Handle::from_pointer(entry.what), SlotKind::Mailbox) {
        None => Some(as_pointer(missing)),
        Some(id) => (transaction.movable(id, direction) > 0).then_some(as_pointer(0)),
    }
}

/// Marks the entries that are ready, those of mailboxes that are not there with `missing`; how many
/// they are.
fn mark(transaction: &mut Transaction<'_>, entries: &mut [PollEntry], missing: c_int) -> c_int {
    let mut ready = 0;
    for entry in entries {
        if let Some(state) = state_of(transaction, entry, missing) {
            entry.what = state;
            ready += 1;
        }
    }
    ready
}

#[no_mangle]
unsafe extern "C" fn rt_poll(entries: *mut PollEntry, count: c_ulong, timeout: Rtime) -> c_int {
    let Some(CallingTask { arena, task }) = current::calling_task() else { return rte::OBJINV };
    let entries = match (entries.is_null(), usize::try_from(count)) {
        (false, Ok(count)) => {
            // SAFETY: the caller's.
            unsafe { slice::from_raw_parts_mut(entries, count) }
        }
        (true, Ok(0)) => &mut [],
        _ => return rte::OBJINV,
    };
    let until = match timeout {
        0 if entries.is_empty() => return 0,
        0 => None,
        ..0 => Some(now().saturating_sub(timeout)),
        time => Some(time),
    };
    let mut missing = rte::OBJINV;
    loop {
        let begin = |transaction: &mut Transaction<'_>| {
            let ready = mark(transaction, entries, missing);
            if ready > 0 || timeout == LOOK_ONCE {
                return Begun::Done(Ok(ready));
            }
            if until.is_some_and(|until| until <= now()) {
                return Begun::Done(Ok(rte::TIMOUT));
            }
            transaction.begin_poll(task, until);
            Begun::Waits
        };
        let ended = blocking::wait(arena, task, begin, |transaction, outcome| {
            if outcome == WaitOutcome::Done {
                return Err(());
            }
            transaction.withdraw(task);
            Ok(match outcome {
                WaitOutcome::TimedOut => rte::TIMOUT,
                _ => rte::UNBLKD,
            })
        });
        if let Ok(result) = ended {
            return result;
        }
        // What was there has been deleted since.
        missing = rte::OBJREM;
    }
}
