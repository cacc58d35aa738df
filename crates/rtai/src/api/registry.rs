//! Objects by name.

use std::ffi::{c_char, c_int, c_ulong, c_void};
use std::ptr;

use super::names::number_of_text;
use crate::arena::{arena, Handle, ObjectIndex, SlotKind, Transaction};

/// Makes an object under a name that no object has; of name 0, one without a name of a program.
/// NULL: the name is in use, or there is no room. Nothing happens between looking and making.
pub fn make(
    name: c_ulong,
    mut new: impl FnMut(&mut Transaction<'_>, u64) -> Option<Handle>,
) -> *mut c_void {
    let Some(arena) = arena() else { return ptr::null_mut() };
    let mut try_to = || {
        arena.transact(|transaction| match name {
            0 => {
                let unused = transaction.unused_name();
                new(transaction, unused)
            }
            name if transaction.find_name(name).is_none() => new(transaction, name),
            _ => None,
        })
    };
    let made = try_to().or_else(|| {
        // The name, or the room, may be that of a program that has ended.
        arena.reap();
        try_to()
    });
    made.map_or(ptr::null_mut(), Handle::pointer)
}

/// The object of a kind and a name, which has one user more; made where there is none. NULL: the
/// name is that of another kind, or of an object that its program alone deletes, or there is no
/// room. Nothing happens between looking and making: of programs that begin together, one makes it.
///
/// # Safety
/// The name is NULL, or a text.
pub unsafe fn find_or_make(
    name: *const c_char,
    kind: SlotKind,
    new: impl FnOnce(&mut Transaction<'_>, u64) -> Option<Handle>,
) -> *mut c_void {
    // SAFETY: the caller's.
    find_or_make_number(unsafe { number_of_text(name) }, kind, new)
}

/// The same by the number of a name.
pub fn find_or_make_number(
    name: c_ulong,
    kind: SlotKind,
    new: impl FnOnce(&mut Transaction<'_>, u64) -> Option<Handle>,
) -> *mut c_void {
    let Some(arena) = arena() else { return ptr::null_mut() };
    let found = arena.transact(|transaction| match transaction.find_name(name) {
        Some((handle, found)) if found == Some(kind) => transaction.add_user(handle),
        Some(_) => None,
        None => new(transaction, name),
    });
    found.map_or(ptr::null_mut(), Handle::pointer)
}

/// Calls `f` with the object that a handle names; else `bad`: there is none of this kind.
pub fn with_object<T>(
    object: *mut c_void,
    kind: SlotKind,
    bad: T,
    f: impl FnOnce(&mut Transaction<'_>, ObjectIndex) -> T,
) -> T {
    let Some(arena) = arena() else { return bad };
    let handle = Handle::from_pointer(object);
    arena.transact(|transaction| match transaction.find_object(handle, kind) {
        Some(id) => f(transaction, id),
        None => bad,
    })
}

/// One user less: how many there still are. The last one deletes it. -EFAULT: there is none.
pub fn delete_of_user(object: *mut c_void, kind: SlotKind) -> c_int {
    with_object(object, kind, -libc::EFAULT, |transaction, id| {
        let users = transaction.remove_user(id);
        if users == 0 {
            transaction.delete_object(id, kind);
        }
        users
    })
}

/// Deletes an object: 0. -EFAULT: there is none.
pub fn delete(object: *mut c_void, kind: SlotKind) -> c_int {
    with_object(object, kind, -libc::EFAULT, |transaction, id| {
        transaction.delete_object(id, kind);
        0
    })
}

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
