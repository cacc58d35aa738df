//! The FIFOs by their numbers, which programs agree on: those of docs/fifo.md.
//!
//! A FIFO is opened by the first access to it that comes; all later ones neither allocate nor make
//! a system call, unless a program waits at its other side. The threads of this program use one end
//! of each side, one after the other.

mod device;
mod handlers;

use std::sync::{LazyLock, Mutex, PoisonError};

use punctual::fifo::{
    Access, Content, Error as EndError, Fifo, FifoAttr, Lifetime, Name, Namespace, Reader, Writer,
    MAX_CAPACITY,
};
use punctual::Error;
use punctual_classic::PiMutex;

use device::ServedDevice;
use handlers::Handlers;

pub use handlers::{is_any_installed, FifoHandler};

/// FIFOs have the numbers below this (RT_MAX_FIFO, RTF_NO).
pub const FIFOS: u32 = 64;

/// Why a FIFO is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FifoError {
    /// The number is beyond those of FIFOs.
    Number,
    /// There is no such FIFO, or no handler.
    Missing,
    /// There is one already.
    InUse,
    /// A size, or a count of bytes, is out of its range.
    Size,
    /// There is no memory for it, or the machine refuses it.
    Memory,
    /// There is no room for all of it now, or there are not so many bytes.
    NotNow,
    /// Nothing of this size is ever in the FIFO.
    TooLarge,
    /// Another program damaged it.
    Damaged,
}

/// One side of a FIFO, and how many bytes this program has moved there, modulo 2^64.
struct Side<End> {
    end: Option<(Fifo, End)>,
    moved: u64,
}

impl<End> Side<End> {
    const CLOSED: Side<End> = Side { end: None, moved: 0 };

    /// The end, opened where it is not, or was destroyed.
    fn end(
        &mut self,
        number: u32,
        open: fn(&Fifo, Access) -> Result<End, Error>,
    ) -> Result<&mut End, FifoError> {
        if self.end.as_ref().is_none_or(|(fifo, _)| fifo.is_destroyed()) {
            *self = Self::CLOSED;
            let fifo = open_fifo(number)?;
            let end = open(&fifo, Access::Shared).map_err(refused)?;
            self.end = Some((fifo, end));
        }
        self.end.as_mut().map(|(_, end)| end).ok_or(FifoError::Missing)
    }
}

/// What this program has of a FIFO.
struct OpenFifo {
    put: PiMutex<Side<Writer>>,
    get: PiMutex<Side<Reader>>,
    /// As long as this program has made it, and not destroyed.
    made: Mutex<Option<MadeFifo>>,
    handlers: Handlers,
}

/// A FIFO that this program has made.
struct MadeFifo {
    // In this order: nothing serves it when it is gone.
    device: Option<ServedDevice>,
    fifo: Fifo,
}

/// Ends the devices of this program's FIFOs. A process that ends with an open file of a device that
/// it serves itself would wait for itself.
fn end_devices() {
    for slot in FIFO_TABLE.iter() {
        if let Ok(mut made) = slot.made.try_lock() {
            drop(made.as_mut().and_then(|made| made.device.take()));
        }
    }
}

static FIFO_TABLE: LazyLock<Vec<OpenFifo>> = LazyLock::new(|| {
    let open = |number| OpenFifo {
        put: PiMutex::new(Side::CLOSED),
        get: PiMutex::new(Side::CLOSED),
        made: Mutex::new(None),
        handlers: Handlers::new(number),
    };
    (0..FIFOS).map(open).collect()
});

fn slot(number: u32) -> Result<&'static OpenFifo, FifoError> {
    FIFO_TABLE.get(number as usize).ok_or(FifoError::Number)
}

fn open_fifo(number: u32) -> Result<Fifo, FifoError> {
    let open = |namespace: Namespace| Fifo::open(&namespace, &Name::from(number));
    let fifo = Namespace::of_user().and_then(open).map_err(refused)?;
    let state = fifo.state();
    match state.lifetime == Lifetime::Used && !state.in_use {
        // All programs that had it have ended: it goes with this.
        true => Err(FifoError::Missing),
        false => Ok(fifo),
    }
}

fn refused(error: Error) -> FifoError {
    match error.errno {
        Some(libc::ENOENT) => FifoError::Missing,
        Some(libc::EEXIST | libc::EBUSY) => FifoError::InUse,
        Some(libc::EINVAL) => FifoError::Size,
        Some(libc::EBADMSG) => FifoError::Damaged,
        _ => FifoError::Memory,
    }
}

fn of_end(error: EndError) -> FifoError {
    match error {
        EndError::Full | EndError::Empty | EndError::TimedOut => FifoError::NotNow,
        EndError::TooLarge | EndError::LongerMessage(_) => FifoError::TooLarge,
        EndError::Damaged => FifoError::Damaged,
    }
}

/// Makes a FIFO in which there are `size` bytes at most, at any time.
///
/// # Errors
/// [`FifoError::Number`], [`FifoError::InUse`], [`FifoError::Size`], [`FifoError::Memory`].
pub fn create(number: u32, size: usize) -> Result<(), FifoError> {
    let slot = slot(number)?;
    if !(1..=MAX_CAPACITY).contains(&size) {
        return Err(FifoError::Size);
    }
    let mut made = slot.made.lock().unwrap_or_else(PoisonError::into_inner);
    let attr = FifoAttr { capacity: size, limit: Some(size), content: Content::Bytes };
    let create =
        |namespace: Namespace| Fifo::create(&namespace, &Name::from(number), attr, Lifetime::Used);
    let fifo = Namespace::of_user().and_then(create).map_err(refused)?;
    // That of one which another program has destroyed is in the way.
    drop(made.take());
    *made = Some(MadeFifo { device: ServedDevice::begin(&fifo, number), fifo });
    Ok(())
}

/// Destroys a FIFO, whichever program has made it. Its handlers are not called any more.
///
/// # Errors
/// [`FifoError::Number`], [`FifoError::Missing`].
pub fn destroy(number: u32) -> Result<(), FifoError> {
    let slot = slot(number)?;
    let mut made = slot.made.lock().unwrap_or_else(PoisonError::into_inner);
    match made.take() {
        Some(made) if !made.fifo.is_destroyed() => made.fifo.destroy(),
        _ => open_fifo(number)?.destroy(),
    }
    .map_err(refused)?;
    drop(made);
    slot.handlers.remove();
    slot.put.with(|side| *side = Side::CLOSED);
    slot.get.with(|side| *side = Side::CLOSED);
    Ok(())
}

/// Puts all of `data`, or nothing.
///
/// # Errors
/// All but [`FifoError::InUse`] and [`FifoError::Size`].
pub fn put(number: u32, data: &[u8]) -> Result<(), FifoError> {
    let put = slot(number)?.put.with(|side| {
        side.end(number, Fifo::writer)?.put(data).map_err(of_end)?;
        side.moved = side.moved.wrapping_add(data.len() as u64);
        Ok(())
    });
    put.unwrap_or(Err(FifoError::NotNow))
}

/// Gets as many bytes as `into` has, or nothing; how many.
///
/// # Errors
/// As of [`put`].
pub fn get(number: u32, into: &mut [u8]) -> Result<usize, FifoError> {
    with_reader(number, |reader| reader.get(into).map_err(of_end))
}

/// Gets what there is, but at most as many bytes as `into` has; 0: there is nothing.
///
/// # Errors
/// As of [`put`], but for [`FifoError::NotNow`].
pub fn get_some(number: u32, into: &mut [u8]) -> Result<usize, FifoError> {
    with_reader(number, |reader| match reader.get_some(into) {
        Err(EndError::Empty) => Ok(0),
        got => got.map_err(of_end),
    })
}

/// Drops what is in the FIFO now.
///
/// # Errors
/// As of [`get_some`].
pub fn flush(number: u32) -> Result<(), FifoError> {
    let mut rubbish = [0; 4096];
    // As many as there can be, whatever is put meanwhile.
    let mut left = with_reading_side(number, |side| {
        side.end(number, Fifo::reader).map(|reader| reader.attr().capacity)
    })?;
    while left > 0 {
        match get_some(number, &mut rubbish)? {
            0 => break,
            got => left = left.saturating_sub(got),
        }
    }
    Ok(())
}

/// Whether there is nothing in the FIFO.
///
/// # Errors
/// As of [`get_some`].
pub fn is_empty(number: u32) -> Result<bool, FifoError> {
    with_reading_side(number, |side| {
        side.end(number, Fifo::reader)?.is_ready().map(|is_ready| !is_ready).map_err(of_end)
    })
}

fn with_reading_side<R>(
    number: u32,
    f: impl FnOnce(&mut Side<Reader>) -> Result<R, FifoError>,
) -> Result<R, FifoError> {
    slot(number)?.get.with(f).unwrap_or(Err(FifoError::NotNow))
}

/// Calls `f` with the reader, and counts the bytes that it got.
fn with_reader(
    number: u32,
    f: impl FnOnce(&mut Reader) -> Result<usize, FifoError>,
) -> Result<usize, FifoError> {
    with_reading_side(number, |side| {
        let got = f(side.end(number, Fifo::reader)?)?;
        side.moved = side.moved.wrapping_add(got as u64);
        Ok(got)
    })
}

/// Has `handler` called, in an ordinary thread, when another program has put or got something.
/// `None`: it is called no more.
///
/// # Errors
/// [`FifoError::Missing`], also for a FIFO of messages; [`FifoError::Number`],
/// [`FifoError::Memory`].
pub fn set_handler(number: u32, handler: FifoHandler) -> Result<(), FifoError> {
    let slot = slot(number)?;
    let fifo = open_fifo(number)?;
    if fifo.attr().content == Content::Messages {
        return Err(FifoError::Missing);
    }
    slot.handlers.install(handler, &fifo)
}

/// Has `handler` called by each thread of this program that has put or got something.
///
/// # Errors
/// [`FifoError::Number`], [`FifoError::Missing`].
pub fn set_rt_handler(number: u32, handler: FifoHandler) -> Result<(), FifoError> {
    let slot = slot(number)?;
    open_fifo(number)?;
    slot.handlers.install_rt(handler);
    Ok(())
}

/// The calling thread has put or got something: calls the handler for that, if there is one.
pub fn call_rt_handler(number: u32) {
    if let Ok(slot) = slot(number) {
        slot.handlers.call_rt();
    }
}
