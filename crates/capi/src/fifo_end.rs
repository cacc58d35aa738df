//! Ends of FIFOs. Put and get are real-time safe: they neither allocate nor lock here.

use std::ffi::{c_int, c_void, CStr};
use std::os::fd::AsRawFd;

use punctual::fifo::{Access, Error, Fifo, Reader, Writer, MAX_CAPACITY};

use crate::end_table::EndTable;
use crate::error::{error, failed, returned, CallError};
use crate::fifo::{HandleOfFifo, FIFOS};
use crate::handle::HandleKind;
use crate::plain;

/// `struct punctual_fifo_writer`.
pub enum HandleOfWriter {}
/// `struct punctual_fifo_reader`.
pub enum HandleOfReader {}

static WRITERS: EndTable<Writer, HandleOfWriter> = EndTable::new(HandleKind::Writer);
static READERS: EndTable<Reader, HandleOfReader> = EndTable::new(HandleKind::Reader);

/// More than any FIFO holds: what is longer is refused as this is, and of no use to a get.
const BEYOND: usize = MAX_CAPACITY + 1;

/// PUNCTUAL_FIFO_SHARED
pub const SHARED: u32 = 1;

/// Real-time safe.
#[cold]
fn refused(e: Error) -> CallError {
    let text: &CStr = match e {
        Error::Full => c"the FIFO is full",
        Error::Empty => c"there is not so much in the FIFO",
        Error::TooLarge => c"more than the FIFO can hold",
        Error::LongerMessage(_) => c"the next message is longer than the buffer, and stays",
        Error::TimedOut => c"the time is over",
        Error::Damaged => c"another program damaged the FIFO; remove it, and make another",
    };
    failed(e.errno(), text)
}

/// Passes a handle of an end to C.
unsafe fn open<T, H>(
    fifo: *mut HandleOfFifo,
    flags: u32,
    to: *mut *mut H,
    table: &EndTable<T, H>,
    attach: impl FnOnce(&Fifo, Access) -> Result<T, punctual::Error>,
) -> c_int {
    returned(FIFOS.get(fifo).and_then(|fifo| {
        plain::not_null(to)?;
        let access = match flags {
            0 => Access::Exclusive,
            SHARED => Access::Shared,
            _ => {
                let cause = format!("the flags {flags:#x} are unknown");
                return Err(error(libc::EINVAL, cause, "use PUNCTUAL_FIFO_SHARED or 0").into());
            }
        };
        // SAFETY: the caller's.
        unsafe { to.write(table.add(attach(&fifo, access)?)?) };
        Ok(())
    }))
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_writer_open(
    fifo: *mut HandleOfFifo,
    flags: u32,
    writer: *mut *mut HandleOfWriter,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { open(fifo, flags, writer, &WRITERS, Fifo::writer) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_reader_open(
    fifo: *mut HandleOfFifo,
    flags: u32,
    reader: *mut *mut HandleOfReader,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { open(fifo, flags, reader, &READERS, Fifo::reader) }
}

#[no_mangle]
pub extern "C" fn punctual_fifo_writer_close(writer: *mut HandleOfWriter) -> c_int {
    returned(WRITERS.remove(writer).map(drop))
}

#[no_mangle]
pub extern "C" fn punctual_fifo_reader_close(reader: *mut HandleOfReader) -> c_int {
    returned(READERS.remove(reader).map(drop))
}

/// What C puts; nothing for NULL.
unsafe fn data<'a>(data: *const c_void, length: usize) -> Result<&'a [u8], CallError> {
    match (data.is_null(), length) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(no_buffer()),
        // SAFETY: the caller's.
        _ => Ok(unsafe { std::slice::from_raw_parts(data.cast(), length.min(BEYOND)) }),
    }
}

/// Where C gets something; nowhere for NULL.
unsafe fn buffer<'a>(buffer: *mut c_void, length: usize) -> Result<&'a mut [u8], CallError> {
    match (buffer.is_null(), length) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(no_buffer()),
        // SAFETY: the caller's.
        _ => Ok(unsafe { std::slice::from_raw_parts_mut(buffer.cast(), length.min(BEYOND)) }),
    }
}

#[cold]
fn no_buffer() -> CallError {
    failed(libc::EFAULT, c"the buffer is NULL")
}

#[inline]
unsafe fn put(
    writer: *mut HandleOfWriter,
    from: *const c_void,
    length: usize,
    put: impl FnOnce(&mut Writer, &[u8]) -> Result<(), Error>,
) -> c_int {
    // SAFETY: the caller's.
    let from = unsafe { data(from, length) };
    let result = from.and_then(|from| WRITERS.with(writer, |end| put(end, from)));
    returned(result.and_then(|put| put.map_err(refused)))
}

#[inline]
unsafe fn get(
    reader: *mut HandleOfReader,
    to: *mut c_void,
    length: usize,
    get: impl FnOnce(&mut Reader, &mut [u8]) -> Result<usize, Error>,
) -> isize {
    // SAFETY: the caller's.
    let to = unsafe { buffer(to, length) };
    let result = to.and_then(|to| READERS.with(reader, |end| get(end, to)));
    match result.and_then(|got| got.map_err(refused)) {
        Ok(length) => length as isize,
        Err(CallError(number)) => number as isize,
    }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_put(
    writer: *mut HandleOfWriter,
    from: *const c_void,
    length: usize,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { put(writer, from, length, |end, from| end.put(from)) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_put_until(
    writer: *mut HandleOfWriter,
    from: *const c_void,
    length: usize,
    until: u64,
) -> c_int {
    // SAFETY: the caller's.
    unsafe { put(writer, from, length, |end, from| end.put_until(from, until)) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_get(
    reader: *mut HandleOfReader,
    to: *mut c_void,
    length: usize,
) -> isize {
    // SAFETY: the caller's.
    unsafe { get(reader, to, length, |end, to| end.get(to)) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_get_until(
    reader: *mut HandleOfReader,
    to: *mut c_void,
    length: usize,
    until: u64,
) -> isize {
    // SAFETY: the caller's.
    unsafe { get(reader, to, length, |end, to| end.get_until(to, until)) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_get_some(
    reader: *mut HandleOfReader,
    to: *mut c_void,
    length: usize,
) -> isize {
    // SAFETY: the caller's.
    unsafe { get(reader, to, length, |end, to| end.get_some(to)) }
}

#[no_mangle]
pub unsafe extern "C" fn punctual_fifo_get_some_until(
    reader: *mut HandleOfReader,
    to: *mut c_void,
    length: usize,
    until: u64,
) -> isize {
    // SAFETY: the caller's.
    unsafe { get(reader, to, length, |end, to| end.get_some_until(to, until)) }
}

/// A number or an error, in one `int`.
fn number(result: Result<c_int, CallError>) -> c_int {
    result.unwrap_or_else(|CallError(number)| number)
}

#[no_mangle]
pub extern "C" fn punctual_fifo_writer_ready(writer: *mut HandleOfWriter, length: usize) -> c_int {
    let ready = WRITERS.with(writer, |end| end.is_ready_for(length));
    number(ready.and_then(|ready| ready.map(c_int::from).map_err(refused)))
}

#[no_mangle]
pub extern "C" fn punctual_fifo_reader_ready(reader: *mut HandleOfReader) -> c_int {
    let ready = READERS.with(reader, Reader::is_ready);
    number(ready.and_then(|ready| ready.map(c_int::from).map_err(refused)))
}

#[no_mangle]
pub extern "C" fn punctual_fifo_writer_fd(writer: *mut HandleOfWriter) -> c_int {
    number(WRITERS.with(writer, |end| end.descriptor().as_raw_fd()))
}

#[no_mangle]
pub extern "C" fn punctual_fifo_reader_fd(reader: *mut HandleOfReader) -> c_int {
    number(READERS.with(reader, |end| end.descriptor().as_raw_fd()))
}
