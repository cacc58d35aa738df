//! Proxies: objects that send a message when they are triggered.

use std::ffi::{c_int, c_void};
use std::ptr;

use super::long_messages::length_of;
use crate::arena::{arena, Handle, TaskIndex, Transaction};
use crate::current::{self, CallingTask};

#[no_mangle]
unsafe extern "C" fn rt_proxy_attach(
    task: *mut c_void,
    message: *mut c_void,
    bytes: c_int,
    priority: c_int,
) -> *mut c_void {
    let Some(CallingTask { arena, task: me }) = current::calling_task() else {
        return ptr::null_mut();
    };
    let handle = Handle::from_pointer(task);
    let length = length_of(message, bytes.into());
    let made = arena.transact(|transaction| {
        let receiver = match task.is_null() {
            true => me,
            false => transaction.find_task(handle)?,
        };
        let priority = match priority {
            -1 => transaction.task(me).base_priority.signed(),
            priority => i64::from(priority),
        };
        // SAFETY: the caller's.
        unsafe { transaction.new_proxy(receiver, priority.max(0), (message.cast(), length)) }
    });
    made.map_or(ptr::null_mut(), Handle::pointer)
}

/// Calls `f` with a proxy; `None`: it is none.
fn with_proxy<T>(
    proxy: *mut c_void,
    f: impl FnOnce(&mut Transaction<'_>, TaskIndex) -> T,
) -> Option<T> {
    let handle = Handle::from_pointer(proxy);
    arena()?.transact(|transaction| {
        let proxy = transaction.find_proxy(handle)?;
        Some(f(transaction, proxy))
    })
}

#[no_mangle]
extern "C" fn rt_proxy_detach(proxy: *mut c_void) -> c_int {
    let deleted = with_proxy(proxy, |transaction, proxy| transaction.delete_proxy(proxy));
    deleted.map_or(-libc::EINVAL, |()| 0)
}

#[no_mangle]
extern "C" fn rt_trigger(proxy: *mut c_void) -> *mut c_void {
    let receiver = with_proxy(proxy, |transaction, proxy| transaction.trigger(proxy)).flatten();
    receiver.map_or(ptr::null_mut(), Handle::pointer)
}
