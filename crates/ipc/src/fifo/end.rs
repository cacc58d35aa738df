//! What writers and readers have in common: a side, its position, and where the other side was.

use std::fs::File;
use std::io;
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_sys::file_lock::{self, Access};

use super::layout::FifoSide;
use super::{Error, Shared};
use crate::robust_mutex::Locked;

/// The writers' side, and the byte of the memory that its ends lock.
pub const PUT: usize = 0;
/// The readers' side.
pub const GET: usize = 1;

/// One end.
#[derive(Debug)]
pub struct FifoEnd {
    pub shared: Arc<Shared>,
    side: usize,
    access: Access,
    /// The position of this side. With shared access others move it too; it is read again with
    /// the mutex locked.
    pub at: u64,
    /// That of the other side when it was read last, which is at most where it is.
    pub other: u64,
    capacity: usize,
    /// Bytes that may be in the FIFO at once.
    most: usize,
    /// Has the lock of this end.
    _lock: File,
}

impl FifoEnd {
    /// # Errors
    /// EBUSY: another end excludes it.
    pub fn attach(shared: &Arc<Shared>, side: usize, access: Access) -> Result<Self, Diagnostic> {
        let refused = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => busy(shared, side, access),
            _ => Diagnostic::refused(
                "cannot open an end of the FIFO",
                error,
                "raise the limit of open files (ulimit -n)",
            ),
        };
        let lock = shared.object.reopen_memory().map_err(refused)?;
        file_lock::try_lock(&lock, side as i64, access).map_err(refused)?;
        let (capacity, most) = (shared.attr.capacity, shared.attr.most());
        let shared = Arc::clone(shared);
        let mut end = Self { shared, side, access, at: 0, other: 0, capacity, most, _lock: lock };
        if access == Access::Exclusive {
            end.own().ends.owner.store(std::process::id(), Ordering::Relaxed);
            end.at = end.own().position.0.load(Ordering::Acquire);
            // Those that waited are gone.
            end.peer().attention.waits.store(0, Ordering::SeqCst);
        }
        end.reload();
        // The end before this one may have been killed between its last store and this.
        end.notify();
        Ok(end)
    }

    pub fn own(&self) -> &FifoSide {
        &self.shared.header().sides[self.side]
    }

    pub fn peer(&self) -> &FifoSide {
        &self.shared.header().sides[1 - self.side]
    }

    /// Which pipe is written when the other side moves.
    pub fn peer_number(&self) -> usize {
        1 - self.side
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    pub fn most(&self) -> usize {
        self.most
    }

    /// Waits until the other side is not at `seen`, and returns where it is.
    ///
    /// # Errors
    /// The time is over.
    pub fn wait_for_move(&mut self, seen: u64, until: u64) -> Result<u64, Error> {
        loop {
            self.reload();
            if self.other != seen {
                return Ok(self.other);
            }
            self.sleep(until)?;
        }
    }

    /// Excludes the others of this side, if it has others, while what is returned lives.
    #[inline]
    pub fn enter(&mut self) -> Result<Option<Locked>, Error> {
        match self.access {
            Access::Exclusive => Ok(None),
            Access::Shared => self.enter_shared().map(Some),
        }
    }

    #[cold]
    #[inline(never)]
    fn enter_shared(&mut self) -> Result<Locked, Error> {
        let locked = self.own().ends.mutex.lock().map_err(|_| Error::Damaged)?;
        self.at = self.own().position.0.load(Ordering::Relaxed);
        if locked.owner_died {
            self.notify();
        }
        Ok(locked)
    }

    /// Reads where the other side is.
    pub fn reload(&mut self) {
        self.other = self.peer().position.0.load(Ordering::Acquire);
    }

    /// The memory at this end's position: contiguous, for as many bytes as the FIFO has.
    #[inline]
    pub fn memory(&self) -> *mut u8 {
        let offset = self.at as usize & (self.capacity - 1);
        self.shared.mapping.data().wrapping_add(offset)
    }

    /// Moves this side by `n` bytes: others see what was done until now.
    #[inline]
    pub fn advance(&mut self, n: usize) {
        let from = self.at;
        self.at = from.wrapping_add(n as u64);
        let own = self.own();
        own.position.0.store(self.at, Ordering::Release);
        if own.attention.waits.load(Ordering::Relaxed) != 0 {
            // Pairs with `FifoEnd::announce`: it sees this position, or this sees its request.
            fence(Ordering::SeqCst);
            if own.attention.at.load(Ordering::Relaxed) == from {
                self.notify();
            }
        }
    }
}

fn busy(shared: &Shared, side: usize, access: Access) -> Diagnostic {
    let (name, verb) = if side == PUT { ("writer", "puts") } else { ("reader", "gets") };
    let owner = shared.header().sides[side].ends.owner.load(Ordering::Relaxed);
    let alone = file_lock::is_locked(shared.object.memory(), side as i64, Access::Shared);
    let (cause, help) = match (alone.unwrap_or(false), access) {
        (true, _) => (
            format!("process {owner} has the only {name} of this FIFO"),
            format!("end it, or have it open a {name} that shares its side"),
        ),
        (false, _) => (
            format!("the FIFO has a {name} already, so that another cannot be the only one"),
            format!("open a {name} that shares its side, or end the program that {verb}"),
        ),
    };
    Diagnostic::usage(cause, help).with_errno(libc::EBUSY)
}
