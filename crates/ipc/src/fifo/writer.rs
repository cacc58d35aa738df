//! The end of a FIFO that puts.

use std::os::fd::BorrowedFd;

use super::end::FifoEnd;
use super::layout::{message_header, message_size, MESSAGE_HEADER};
use super::{Content, Error, FifoAttr};

/// Puts bytes or messages into a FIFO. Ends are for one thread at a time; others open their own.
#[derive(Debug)]
pub struct Writer {
    end: FifoEnd,
    content: Content,
}

impl Writer {
    pub(super) fn new(end: FifoEnd) -> Self {
        let content = end.shared.attr.content;
        Self { end, content }
    }

    /// What the FIFO is.
    #[must_use]
    pub fn attr(&self) -> FifoAttr {
        self.end.shared.attr
    }

    /// Puts all of `data`, as one message in a FIFO of messages, or nothing. Does not wait.
    /// Real-time safe; wait-free for the only writer.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::TooLarge`], [`Error::Damaged`].
    #[inline]
    pub fn put(&mut self, data: &[u8]) -> Result<(), Error> {
        let size = self.size_of(data.len());
        let _locked = self.end.enter()?;
        self.find_room(size)?;
        let to = self.end.memory();
        let to = match self.content {
            Content::Bytes => to,
            Content::Messages => {
                // SAFETY: within the room, which is this writer's until it is published.
                unsafe { to.cast::<u64>().write_unaligned(message_header(data.len())) };
                to.wrapping_add(MESSAGE_HEADER)
            }
        };
        // SAFETY: as above; `data` is no part of the FIFO, whose memory is given to no caller.
        unsafe { to.copy_from_nonoverlapping(data.as_ptr(), data.len()) };
        self.end.advance(size);
        Ok(())
    }

    /// The same, waiting for room until `until` (CLOCK_MONOTONIC ns; `u64::MAX` for ever).
    ///
    /// # Errors
    /// [`Error::TimedOut`], [`Error::TooLarge`], [`Error::Damaged`].
    pub fn put_until(&mut self, data: &[u8], until: u64) -> Result<(), Error> {
        loop {
            match self.put(data) {
                Err(Error::Full) => self.end.sleep(until)?,
                done => return done,
            }
        }
    }

    /// Whether there is room for `length` bytes, or a message of that length. If not, the
    /// descriptor is not readable until a reader has made room.
    ///
    /// # Errors
    /// [`Error::TooLarge`], [`Error::Damaged`].
    pub fn is_ready_for(&mut self, length: usize) -> Result<bool, Error> {
        let size = self.size_of(length);
        let _locked = self.end.enter()?;
        match self.find_room(size) {
            Err(Error::Full) => Ok(false),
            found => found.map(|()| true),
        }
    }

    /// A descriptor for poll, select and epoll: readable until a put finds no room, and again when
    /// a reader has made some.
    pub fn descriptor(&mut self) -> BorrowedFd<'_> {
        self.end.descriptor()
    }

    /// Where readers are: as [`wait_for_gets`](Writer::wait_for_gets) returns it.
    pub fn gets(&mut self) -> u64 {
        self.end.reload();
        self.end.other
    }

    /// Waits until readers are not at `seen`, and returns where they are: how many bytes were got
    /// since the FIFO was made, and its capacity, modulo 2^64.
    ///
    /// # Errors
    /// [`Error::TimedOut`]: `until` has come (CLOCK_MONOTONIC ns; `u64::MAX` for ever).
    pub fn wait_for_gets(&mut self, seen: u64, until: u64) -> Result<u64, Error> {
        self.end.wait_for_move(seen, until)
    }

    /// How many bytes of the FIFO `length` bytes, or a message of that length, take.
    #[inline]
    fn size_of(&self, length: usize) -> usize {
        match self.content {
            Content::Bytes => length,
            Content::Messages => message_size(length),
        }
    }

    #[inline]
    fn find_room(&mut self, size: usize) -> Result<(), Error> {
        if self.has_room(size) {
            return Ok(());
        }
        self.end.reload();
        match self.has_room(size) {
            true => Ok(()),
            false => Err(self.no_room(size)),
        }
    }

    /// Whether there is room, as far as is known. Positions that do not fit together are found in
    /// `no_room`.
    #[inline]
    fn has_room(&self, size: usize) -> bool {
        let (used, most) = (self.end.at.wrapping_sub(self.end.other), self.end.most());
        used <= most as u64 && most - used as usize >= size
    }

    #[cold]
    #[inline(never)]
    fn no_room(&self, size: usize) -> Error {
        if size > self.end.most() {
            return Error::TooLarge;
        }
        if self.end.at.wrapping_sub(self.end.other) > self.end.capacity() as u64 {
            return Error::Damaged;
        }
        if self.end.is_polled() {
            self.end.make_unready();
        }
        Error::Full
    }
}
