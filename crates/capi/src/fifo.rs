//! FIFOs: made, opened, removed; their ends are in `fifo_end`.

use std::ffi::{c_char, c_int};
use std::mem::size_of;
use std::sync::Arc;

use punctual::fifo::{Content, Fifo, FifoAttr, Lifetime, Namespace};

use crate::error::{error, returned, CallError};
use crate::fork;
use crate::handle::{HandleKind, Table};
use crate::names;
use crate::plain::{self, Plain};

pub static FIFOS: Table<Fifo, HandleOfFifo> = Table::new(HandleKind::Fifo);

/// `struct punctual_fifo`.
pub enum HandleOfFifo {}

/// `struct punctual_fifo_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CFifoAttr {
    pub size: usize,
    pub capacity: usize,
    pub flags: u32,
    pub reserved: u32,
}

// SAFETY: integers.
unsafe impl Plain for CFifoAttr {
    const FIRST: usize = size_of::<CFifoAttr>();
}

/// `struct punctual_fifo_info`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CFifoInfo {
    pub size: usize,
    pub capacity: usize,
    pub used: usize,
    pub flags: u32,
    pub in_use: u32,
    pub sole_writer: i32,
    pub sole_reader: i32,
}

// SAFETY: integers.
unsafe impl Plain for CFifoInfo {
    const FIRST: usize = size_of::<CFifoInfo>();
}

/// PUNCTUAL_FIFO_MESSAGES
pub const MESSAGES: u32 = 1;
/// PUNCTUAL_FIFO_PERSISTENT
pub const PERSISTENT: u32 = 2;

/// Passes a handle of what `make` makes to C.
unsafe fn give(
    to: *mut *mut HandleOfFifo,
    make: impl FnOnce() -> Result<Fifo, CallError>,
) -> c_int {
    returned(fork::watch().and_then(|()| plain::not_null(to)).and_then(|()| {
        let fifo = make()?;
        // SAFETY: the caller's.
        unsafe { to.write(FIFOS.add(Arc::new(fifo))) };
        Ok(())
    }))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_create(
    name: *const c_char,
    attr: *const CFifoAttr,
    fifo: *mut *mut HandleOfFifo,
) -> c_int {
    let make = || {
        // SAFETY: the caller's.
        let (name, given) = unsafe { (names::optional(name)?, plain::read(attr)?) };
        if given.flags & !(MESSAGES | PERSISTENT) != 0 || given.reserved != 0 {
            let cause = format!("the flags {:#x} are unknown", given.flags);
            let help = "use PUNCTUAL_FIFO_MESSAGES, PUNCTUAL_FIFO_PERSISTENT, both or 0";
            return Err(error(libc::EINVAL, cause, help).into());
        }
        let content = match given.flags & MESSAGES {
            0 => Content::Bytes,
            _ => Content::Messages,
        };
        let mut attr = FifoAttr { content, ..FifoAttr::default() };
        if given.capacity != 0 {
            attr.capacity = given.capacity;
        }
        let lifetime = match given.flags & PERSISTENT {
            0 => Lifetime::Used,
            _ => Lifetime::Persistent,
        };
        Ok(match name {
            Some(name) => Fifo::create(&Namespace::of_user()?, &name, attr, lifetime)?,
            None if lifetime == Lifetime::Used => Fifo::unnamed(attr)?,
            None => {
                let cause = "a FIFO without a name does not outlive its handle";
                return Err(error(libc::EINVAL, cause, "name it, or leave out the flag").into());
            }
        })
    };
    // SAFETY: the caller's.
    unsafe { give(fifo, make) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_open(
    name: *const c_char,
    fifo: *mut *mut HandleOfFifo,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { give(fifo, || Ok(Fifo::open(&Namespace::of_user()?, &names::required(name)?)?)) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_remove(name: *const c_char) -> c_int {
    // SAFETY: the caller's.
    let name = unsafe { names::required(name) };
    returned(name.and_then(|name| Ok(Fifo::remove(&Namespace::of_user()?, &name)?)))
}

#[no_mangle]
pub extern "C" fn punctual_fifo_close(fifo: *mut HandleOfFifo) -> c_int {
    returned(FIFOS.remove(fifo).map(drop))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_info(
    fifo: *mut HandleOfFifo,
    info: *mut CFifoInfo,
) -> c_int {
    returned(FIFOS.get(fifo).and_then(|fifo| {
        let (attr, state) = (fifo.attr(), fifo.state());
        let flag = |flag, is_set| if is_set { flag } else { 0 };
        let pid = |owner: Option<u32>| owner.map_or(0, |pid| pid as i32);
        let filled = CFifoInfo {
            size: size_of::<CFifoInfo>(),
            capacity: attr.capacity,
            used: state.used,
            flags: flag(MESSAGES, attr.content == Content::Messages)
                | flag(PERSISTENT, state.lifetime == Lifetime::Persistent),
            in_use: state.in_use.into(),
            sole_writer: pid(state.sole_writer),
            sole_reader: pid(state.sole_reader),
        };
        // SAFETY: the caller's.
        unsafe { plain::write(info, &filled)? };
        Ok(())
    }))
}
