//! The end of a FIFO that gets.

use std::os::fd::BorrowedFd;

use super::end::FifoEnd;
use super::layout::{message_length, message_size, MESSAGE_HEADER};
use super::{Content, Error, FifoAttr};

/// Gets bytes or messages from a FIFO. Ends are for one thread at a time; others open their own.
#[derive(Debug)]
pub struct Reader {
    end: FifoEnd,
    content: Content,
}

impl Reader {
    pub(super) fn new(end: FifoEnd) -> Self {
        let content = end.shared.attr.content;
        Self { end, content }
    }

    /// What the FIFO is.
    #[must_use]
    pub fn attr(&self) -> FifoAttr {
        self.end.shared.attr
    }

    /// Gets as many bytes as `into` has, or the next message into its beginning, or nothing.
    /// Returns how many bytes were got. Does not wait. Real-time safe; wait-free for the only
    /// reader.
    ///
    /// # Errors
    /// [`Error::Empty`]; [`Error::LongerMessage`]; [`Error::TooLarge`]: more than the FIFO can
    /// hold; [`Error::Damaged`].
    #[inline]
    pub fn get(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let _locked = self.end.enter()?;
        match self.content {
            Content::Bytes => {
                self.take_bytes(into)?;
                Ok(into.len())
            }
            Content::Messages => self.take_message(into),
        }
    }

    /// The same, waiting until `until` (CLOCK_MONOTONIC ns; `u64::MAX` for ever).
    ///
    /// # Errors
    /// As of [`Reader::get`], but for [`Error::Empty`]; [`Error::TimedOut`].
    pub fn get_until(&mut self, into: &mut [u8], until: u64) -> Result<usize, Error> {
        loop {
            match self.get(into) {
                Err(Error::Empty) => self.end.sleep(until)?,
                done => return done,
            }
        }
    }

    /// Gets what is there, but at most as many bytes as `into` has; of messages, one.
    ///
    /// # Errors
    /// As of [`Reader::get`].
    pub fn get_some(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        let _locked = self.end.enter()?;
        if self.content == Content::Messages {
            return self.take_message(into);
        }
        self.find_bytes(1)?;
        self.end.reload();
        let n = into.len().min(self.end.other.wrapping_sub(self.end.at) as usize);
        self.take_bytes(&mut into[..n])?;
        Ok(n)
    }

    /// The same, waiting until there is something.
    ///
    /// # Errors
    /// As of [`Reader::get_until`].
    pub fn get_some_until(&mut self, into: &mut [u8], until: u64) -> Result<usize, Error> {
        loop {
            match self.get_some(into) {
                Err(Error::Empty) => self.end.sleep(until)?,
                done => return done,
            }
        }
    }

    /// Whether there is something to get. If not, the descriptor is not readable until a writer
    /// puts.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub fn is_ready(&mut self) -> Result<bool, Error> {
        let _locked = self.end.enter()?;
        match self.find_bytes(1) {
            Err(Error::Empty) => Ok(false),
            found => found.map(|()| true),
        }
    }

    /// A descriptor for poll, select and epoll: readable while there is something in the FIFO. In
    /// rare cases it is readable once more after the last of it was got.
    pub fn descriptor(&mut self) -> BorrowedFd<'_> {
        self.end.descriptor()
    }

    /// Where writers are: as [`wait_for_puts`](Reader::wait_for_puts) returns it.
    pub fn puts(&mut self) -> u64 {
        self.end.reload();
        self.end.other
    }

    /// Waits until writers are not at `seen`, and returns where they are: how many bytes were put
    /// since the FIFO was made, and its capacity, modulo 2^64.
    ///
    /// # Errors
    /// [`Error::TimedOut`]: `until` has come (CLOCK_MONOTONIC ns; `u64::MAX` for ever).
    pub fn wait_for_puts(&mut self, seen: u64, until: u64) -> Result<u64, Error> {
        self.end.wait_for_move(seen, until)
    }

    /// How many bytes there are for this end, as far as is known; beyond the capacity: unknown.
    #[inline]
    fn available(&self) -> u64 {
        self.end.other.wrapping_sub(self.end.at)
    }

    #[inline]
    fn has(&self, size: usize) -> bool {
        (size as u64..=self.end.capacity() as u64).contains(&self.available())
    }

    #[inline]
    fn find_bytes(&mut self, size: usize) -> Result<(), Error> {
        if self.has(size) {
            return Ok(());
        }
        self.end.reload();
        match self.has(size) {
            true => Ok(()),
            false => Err(self.no_bytes(size)),
        }
    }

    #[cold]
    #[inline(never)]
    fn no_bytes(&self, size: usize) -> Error {
        if size > self.end.most() {
            return Error::TooLarge;
        }
        if self.available() > self.end.capacity() as u64 {
            return Error::Damaged;
        }
        if self.end.is_polled() && self.available() == 0 {
            self.end.make_unready();
        }
        Error::Empty
    }

    #[inline]
    fn take_bytes(&mut self, into: &mut [u8]) -> Result<(), Error> {
        self.find_bytes(into.len())?;
        let from = self.end.memory();
        // SAFETY: within what writers have published and no reader has taken.
        unsafe { from.copy_to_nonoverlapping(into.as_mut_ptr(), into.len()) };
        self.advance(into.len());
        Ok(())
    }

    #[inline]
    fn take_message(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.find_bytes(MESSAGE_HEADER)?;
        let from = self.end.memory();
        // SAFETY: as above; messages are aligned, and where other bytes moved the position to a
        // place that is not, the next line finds no message there.
        let header = unsafe { from.cast::<u64>().read_unaligned() };
        let length = message_length(header).ok_or(Error::Damaged)?;
        let size = message_size(length);
        if size as u64 > self.available() {
            return Err(Error::Damaged);
        }
        if length > into.len() {
            return Err(Error::LongerMessage(length));
        }
        // SAFETY: within what is there, by the lines above.
        unsafe {
            let message = from.wrapping_add(MESSAGE_HEADER);
            message.copy_to_nonoverlapping(into.as_mut_ptr(), length);
        }
        self.advance(size);
        Ok(length)
    }

    #[inline]
    fn advance(&mut self, n: usize) {
        self.end.advance(n);
        if self.end.is_polled() {
            self.settle_descriptor();
        }
    }

    /// After the last of what was known: old programs that poll and then read must not wait.
    #[cold]
    #[inline(never)]
    fn settle_descriptor(&mut self) {
        if self.available() == 0 {
            self.end.reload();
        }
        if self.available() == 0 {
            self.end.make_unready();
        }
    }
}
