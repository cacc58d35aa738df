//! Bits that tasks wait for.

use std::ffi::{c_int, c_ulong, c_void};

use super::{registry, Rtime};
use crate::arena::{Handle, ObjectIndex, SlotKind, Transaction};
use crate::bits::{BitsChange, BitsTest};
use crate::blocking::{self, now, Begun};
use crate::current::{self, CallingTask};
use crate::rte;

/// What calls that return a mask return for what is no such object.
const BAD: c_ulong = rte::OBJINV as c_ulong;

#[no_mangle]
extern "C" fn rt_bits_init(name: c_ulong, mask: c_ulong) -> *mut c_void {
    registry::make(name, |transaction, name| transaction.new_bits(name, mask))
}

/// Calls `f` with bits; else `bad`.
fn with_bits<T>(
    bits: *mut c_void,
    bad: T,
    f: impl FnOnce(&mut Transaction<'_>, ObjectIndex) -> T,
) -> T {
    registry::with_object(bits, SlotKind::Bits, bad, f)
}

#[no_mangle]
extern "C" fn rt_bits_delete(bits: *mut c_void) -> c_int {
    registry::delete(bits, SlotKind::Bits)
}

#[no_mangle]
extern "C" fn rt_get_bits(bits: *mut c_void) -> c_ulong {
    with_bits(bits, BAD, |transaction, id| transaction.object(id).mask.get())
}

#[no_mangle]
extern "C" fn rt_bits_reset(bits: *mut c_void, mask: c_ulong) -> c_ulong {
    with_bits(bits, BAD, |transaction, id| transaction.reset_bits(id, mask))
}

#[no_mangle]
extern "C" fn rt_bits_signal(bits: *mut c_void, function: c_int, masks: c_ulong) -> c_ulong {
    let Some(change) = BitsChange::new(function, masks) else { return BAD };
    with_bits(bits, BAD, |transaction, id| transaction.change_bits(id, change))
}

unsafe fn write(to: *mut c_ulong, mask: u64) {
    if !to.is_null() {
        // SAFETY: the caller's.
        unsafe { to.write(mask) };
    }
}

unsafe fn wait(
    bits: *mut c_void,
    (test, test_masks): (c_int, c_ulong),
    (exit, exit_masks): (c_int, c_ulong),
    until: Option<Rtime>,
    resulting_mask: *mut c_ulong,
) -> c_int {
    let functions = BitsTest::new(test, test_masks).zip(BitsChange::new(exit, exit_masks));
    let (Some((test, change)), Some(CallingTask { arena, task })) =
        (functions, current::calling_task())
    else {
        return rte::OBJINV;
    };
    let handle = Handle::from_pointer(bits);
    let begin = |transaction: &mut Transaction<'_>| -> Begun<(i32, u64)> {
        transaction.begin_bits_wait(handle, task, (test, change), until, now())
    };
    let (result, mask) = blocking::wait(arena, task, begin, |transaction, outcome| {
        transaction.end_bits_wait(handle, task, change, outcome)
    });
    // SAFETY: the caller's.
    unsafe { write(resulting_mask, mask) };
    result
}

#[no_mangle]
unsafe extern "C" fn rt_bits_wait(
    bits: *mut c_void,
    test: c_int,
    test_masks: c_ulong,
    exit: c_int,
    exit_masks: c_ulong,
    resulting_mask: *mut c_ulong,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { wait(bits, (test, test_masks), (exit, exit_masks), None, resulting_mask) }
}

#[no_mangle]
unsafe extern "C" fn rt_bits_wait_if(
    bits: *mut c_void,
    test: c_int,
    test_masks: c_ulong,
    exit: c_int,
    exit_masks: c_ulong,
    resulting_mask: *mut c_ulong,
) -> c_int {
    let functions = BitsTest::new(test, test_masks).zip(BitsChange::new(exit, exit_masks));
    let Some((test, change)) = functions else { return rte::OBJINV };
    let (result, mask) = with_bits(bits, (rte::OBJINV, 0), |transaction, id| {
        let mask = transaction.object(id).mask.get();
        (c_int::from(transaction.take_bits(id, test, change).is_some()), mask)
    });
    // SAFETY: the caller's.
    unsafe { write(resulting_mask, mask) };
    result
}

#[no_mangle]
unsafe extern "C" fn rt_bits_wait_until(
    bits: *mut c_void,
    test: c_int,
    test_masks: c_ulong,
    exit: c_int,
    exit_masks: c_ulong,
    time: Rtime,
    resulting_mask: *mut c_ulong,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { wait(bits, (test, test_masks), (exit, exit_masks), Some(time), resulting_mask) }
}

#[no_mangle]
unsafe extern "C" fn rt_bits_wait_timed(
    bits: *mut c_void,
    test: c_int,
    test_masks: c_ulong,
    exit: c_int,
    exit_masks: c_ulong,
    delay: Rtime,
    resulting_mask: *mut c_ulong,
) -> c_int {
    let until = Some(now().saturating_add(delay));
    // SAFETY: the caller's.
    unsafe { wait(bits, (test, test_masks), (exit, exit_masks), until, resulting_mask) }
}
