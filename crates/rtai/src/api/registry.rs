//! Objects by name.

use std::ffi::{c_ulong, c_void};
use std::ptr;

use crate::arena::{arena, Handle};

#[no_mangle]
extern "C" fn rt_get_adr(name: c_ulong) -> *mut c_void {
    let Some(arena) = arena() else { return ptr::null_mut() };
    let found = || arena.transact(|transaction| transaction.find_name(name));
    // A thread that ended without deleting its task is no task.
    if found().is_some() {
        arena.reap_sometimes();
    }
    found().map_or(ptr::null_mut(), |(handle, _)| handle.pointer())
}

#[no_mangle]
extern "C" fn rt_get_name(object: *mut c_void) -> c_ulong {
    let Some(arena) = arena() else { return 0 };
    arena.transact(|transaction| match object.is_null() {
        true => transaction.unused_name(),
        false => transaction.name_of(Handle::from_pointer(object)).unwrap_or(0),
    })
}
