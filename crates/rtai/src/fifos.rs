//! FIFOs of RTAI by number, over those of Punctual (docs/fifo.md): other programs find them too.
//!
//! Both sides are shared, so that any program may put and get. All signals are blocked while a
//! thread uses one: a task is parked by a signal, and its program's other threads would wait.

use std::sync::{Mutex, MutexGuard, PoisonError};

use punctual::fifo::{
    Access, Content, Error as FifoError, Fifo, FifoAttr, Lifetime, Name, Namespace, Reader, Writer,
};
use punctual::Error;

use crate::arena::BlockedSignals;

/// Numbers of FIFOs are below this (MAX_FIFOS).
pub const FIFOS: usize = 64;

/// A FIFO that this process has open.
pub struct OpenFifo {
    fifo: Fifo,
    writer: Writer,
    reader: Reader,
    /// How often the process has created it.
    pub created: i32,
}

static OPEN: [Mutex<Option<OpenFifo>>; FIFOS] = [const { Mutex::new(None) }; FIFOS];

/// Calls `f` with the place of a FIFO; `None`: there is no such number.
pub fn with_place<T>(number: u32, f: impl FnOnce(&mut Option<OpenFifo>) -> T) -> Option<T> {
    let _signals = BlockedSignals::new();
    let mut place: MutexGuard<'_, _> =
        OPEN.get(number as usize)?.lock().unwrap_or_else(PoisonError::into_inner);
    Some(f(&mut place))
}

impl OpenFifo {
    /// Opens the FIFO of this number.
    ///
    /// # Errors
    /// There is none (ENOENT); another program has a side alone.
    pub fn open(number: u32) -> Result<OpenFifo, Error> {
        Self::of(Fifo::open(&Namespace::of_user()?, &Name::from(number))?)
    }

    /// Opens it, or makes it with room for so many bytes.
    ///
    /// # Errors
    /// As of [`open`](Self::open); the size is out of range, or there is no memory.
    pub fn open_or_create(number: u32, size: usize) -> Result<OpenFifo, Error> {
        let (namespace, name) = (Namespace::of_user()?, Name::from(number));
        loop {
            match Fifo::open(&namespace, &name) {
                Err(error) if error.errno == Some(libc::ENOENT) => {}
                opened => return Self::of(opened?),
            }
            let attr = FifoAttr { capacity: size, limit: None, content: Content::Bytes };
            match Fifo::create(&namespace, &name, attr, Lifetime::Used) {
                Err(error) if error.errno == Some(libc::EEXIST) => {}
                made => return Self::of(made?),
            }
        }
    }

    fn of(fifo: Fifo) -> Result<OpenFifo, Error> {
        let writer = fifo.writer(Access::Shared)?;
        let reader = fifo.reader(Access::Shared)?;
        Ok(OpenFifo { fifo, writer, reader, created: 0 })
    }

    /// Bytes in it.
    pub fn used(&self) -> usize {
        self.fifo.state().used
    }

    /// Bytes for which there is room.
    pub fn free(&self) -> usize {
        self.fifo.attr().capacity.saturating_sub(self.used())
    }

    /// Puts all bytes, or as many as there is room for with `is_partial`; how many.
    pub fn put(&mut self, mut bytes: &[u8], is_partial: bool) -> usize {
        loop {
            match self.writer.put(bytes) {
                Ok(()) => return bytes.len(),
                Err(FifoError::Full | FifoError::TooLarge) if is_partial => {}
                Err(_) => return 0,
            }
            // Others may put and get meanwhile: each attempt is for fewer bytes.
            let most = self.free().min(bytes.len().saturating_sub(1));
            bytes = &bytes[..most];
            if most == 0 {
                return 0;
            }
        }
    }

    /// Gets as many bytes as there are, or all or none without `is_partial`; how many.
    pub fn get(&mut self, into: &mut [u8], is_partial: bool) -> usize {
        if into.is_empty() {
            return 0;
        }
        let got = match is_partial {
            true => self.reader.get_some(into),
            false => self.reader.get(into),
        };
        got.unwrap_or(0)
    }

    /// Drops the oldest bytes until there is room for `length`, as far as the FIFO has it.
    pub fn make_room(&mut self, length: usize) {
        let mut dropped = [0; 256];
        let length = length.min(self.fifo.attr().capacity);
        while self.free() < length {
            let most = (length - self.free()).min(dropped.len());
            if self.get(&mut dropped[..most], true) == 0 {
                return;
            }
        }
    }

    /// Drops all bytes.
    pub fn clear(&mut self) {
        let mut dropped = [0; 256];
        // What others put meanwhile is not waited for.
        for _ in 0..self.used().div_ceil(dropped.len()) {
            self.get(&mut dropped, true);
        }
    }
}
