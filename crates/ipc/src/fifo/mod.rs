//! FIFOs: bytes or messages in order, from writers to readers (RT-Linux, "RT-FIFOs").
//!
//! A side that one end has alone is wait-free: a put or get copies, and publishes by one store.
//! Ends that share a side do the same one after the other, under a mutex that the death of its
//! owner releases. As a put or get takes effect by one store, the death of an end at any instant
//! leaves no part of one.

mod end;
mod layout;
mod reader;
mod wait;
mod writer;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::Arc;

use punctual_diagnostic::Diagnostic;
use punctual_sys::file_lock;

pub use punctual_sys::file_lock::Access;
pub use reader::Reader;
pub use writer::Writer;

use crate::mapping::{page_size, Mapping};
use crate::name::Name;
use crate::namespace::{Lifetime, Namespace};
use crate::object::{Object, ObjectKind};
use end::{FifoEnd, GET, PUT};
use layout::FifoHeader;

/// The least capacity, in bytes: a page. Less is rounded up.
pub const MIN_CAPACITY: usize = 4096;
/// The greatest capacity, in bytes: 1 GiB.
pub const MAX_CAPACITY: usize = 1 << 30;

/// What a FIFO has in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Content {
    /// Bytes: a get takes as many as it asks for, however they were put.
    #[default]
    Bytes,
    /// Messages: a get takes one that was put.
    Messages,
}

/// What a FIFO is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FifoAttr {
    /// Bytes that it can have in it: a power of two, and whole pages; others are rounded up to
    /// that. A message takes its length, rounded up to 8, and 8 more.
    pub capacity: usize,
    /// Bytes that may be in it at once, at most `capacity`; `None`: as many as the capacity that it
    /// has in the end.
    pub limit: Option<usize>,
    /// Bytes or messages.
    pub content: Content,
}

impl Default for FifoAttr {
    /// 64 KiB of bytes.
    fn default() -> Self {
        Self { capacity: 64 << 10, limit: None, content: Content::Bytes }
    }
}

impl FifoAttr {
    /// Bytes that may be in it at once.
    pub(crate) fn most(&self) -> usize {
        self.limit.unwrap_or(self.capacity)
    }

    fn rounded(self) -> Result<Self, Diagnostic> {
        if self.capacity > MAX_CAPACITY || self.capacity == 0 {
            return Err(Diagnostic::usage(
                format!("a FIFO cannot have {} bytes", self.capacity),
                format!("use 1 to {MAX_CAPACITY}"),
            )
            .with_errno(libc::EINVAL));
        }
        if let Some(limit) = self.limit.filter(|limit| !(1..=self.capacity).contains(limit)) {
            let cause = format!("a FIFO of {} bytes cannot have {limit} in it", self.capacity);
            let help = "use a limit from 1 to the capacity";
            return Err(Diagnostic::usage(cause, help).with_errno(libc::EINVAL));
        }
        let capacity = self.capacity.max(MIN_CAPACITY).max(page_size()).next_power_of_two();
        Ok(Self { capacity, ..self })
    }
}

/// Why an end put or got nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// There is no room for it now.
    #[error("the FIFO is full")]
    Full,
    /// There is no message, or there are not so many bytes.
    #[error("the FIFO is empty")]
    Empty,
    /// Nothing of this size is ever in the FIFO.
    #[error("more than the FIFO can hold")]
    TooLarge,
    /// The next message is longer, by which it stays where it is; its length, in bytes.
    #[error("the next message has {0} bytes, more than there is room for")]
    LongerMessage(usize),
    /// The time is over.
    #[error("the time is over")]
    TimedOut,
    /// Another program wrote into the FIFO's memory what no end writes.
    #[error("the memory of the FIFO is damaged")]
    Damaged,
}

impl Error {
    /// The error number of the C interface.
    #[must_use]
    pub fn errno(self) -> i32 {
        match self {
            Self::Full | Self::Empty => libc::EAGAIN,
            Self::TooLarge | Self::LongerMessage(_) => libc::EMSGSIZE,
            Self::TimedOut => libc::ETIMEDOUT,
            Self::Damaged => libc::EBADMSG,
        }
    }
}

/// What is known of a FIFO at one instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FifoState {
    /// Bytes in it.
    pub used: usize,
    /// Whether another process has it open.
    pub in_use: bool,
    /// How long it lives.
    pub lifetime: Lifetime,
    /// The process whose end has the writers' side alone.
    pub sole_writer: Option<u32>,
    /// The process whose end has the readers' side alone.
    pub sole_reader: Option<u32>,
}

/// A FIFO that this process has open. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Fifo {
    shared: Arc<Shared>,
}

/// What all ends of this process have in common.
#[derive(Debug)]
struct Shared {
    mapping: Mapping,
    attr: FifoAttr,
    // Last, so that the mapping is gone when others may remove it.
    object: Object,
}

impl Fifo {
    /// Makes a FIFO of this name.
    ///
    /// # Errors
    /// A capacity of 0 or beyond [`MAX_CAPACITY`]; the name is taken (EEXIST); no room in memory
    /// (ENOSPC).
    pub fn create(
        namespace: &Namespace,
        name: &Name,
        attr: FifoAttr,
        lifetime: Lifetime,
    ) -> Result<Self, Diagnostic> {
        let attr = attr.rounded()?;
        let length = (page_size() + attr.capacity) as u64;
        let (object, mapping) =
            Object::create(namespace, ObjectKind::Fifo, name, lifetime, length, |memory| {
                filled(memory, &attr)
            })?;
        Ok(Self { shared: Arc::new(Shared { mapping, attr, object }) })
    }

    /// Opens the FIFO of this name.
    ///
    /// # Errors
    /// There is none (ENOENT); it is of another version of Punctual, or damaged (EBADMSG).
    pub fn open(namespace: &Namespace, name: &Name) -> Result<Self, Diagnostic> {
        let object = Object::open(namespace, ObjectKind::Fifo, name)?;
        let damaged = || {
            Diagnostic::machine(
                format!("the FIFO {name} is damaged, or of another version of Punctual"),
                format!("remove it (`punctual fifo remove {name}`), and make another"),
            )
            .with_errno(libc::EBADMSG)
        };
        let refused = |error| {
            Diagnostic::refused(
                format!("cannot open the FIFO {name}"),
                error,
                "raise the limit of locked memory, if the program locks its memory",
            )
        };
        let memory = object.memory();
        let length = memory.metadata().map_err(refused)?.len();
        let length = usize::try_from(length).map_err(|_| damaged())?;
        let capacity = length.checked_sub(page_size()).filter(|capacity| {
            capacity.is_power_of_two() && (MIN_CAPACITY..=MAX_CAPACITY).contains(capacity)
        });
        let capacity = capacity.ok_or_else(damaged)?;
        let mapping = Mapping::of(memory, page_size(), capacity).map_err(refused)?;
        let attr = header(&mapping).attr().filter(|attr| attr.capacity == capacity);
        let attr = attr.ok_or_else(damaged)?;
        Ok(Self { shared: Arc::new(Shared { mapping, attr, object }) })
    }

    /// A FIFO without a name, for the threads of this process.
    ///
    /// # Errors
    /// As of [`Fifo::create`].
    pub fn unnamed(attr: FifoAttr) -> Result<Self, Diagnostic> {
        let attr = attr.rounded()?;
        let make = || {
            let object = Object::unnamed((page_size() + attr.capacity) as u64)?;
            let mapping = filled(object.memory(), &attr)?;
            Ok(Shared { mapping, attr, object })
        };
        let refused = |error: io::Error| {
            Diagnostic::refused("cannot make a FIFO", error, "make it smaller, or free memory")
        };
        Ok(Self { shared: Arc::new(make().map_err(refused)?) })
    }

    /// Removes the name. Ends that are open stay as they are.
    ///
    /// # Errors
    /// There is no such FIFO (ENOENT).
    pub fn remove(namespace: &Namespace, name: &Name) -> Result<(), Diagnostic> {
        Object::remove(namespace, ObjectKind::Fifo, name)
    }

    /// Removes the name of this FIFO, and marks the FIFO as destroyed for all programs that have it
    /// open. Their ends still put and get.
    ///
    /// # Errors
    /// The name was removed before (ENOENT).
    pub fn destroy(&self) -> Result<(), Diagnostic> {
        self.shared.object.remove_own()?;
        self.shared.header().destroyed.store(1, Ordering::Release);
        Ok(())
    }

    /// Whether a program has called [`Fifo::destroy`]. Real-time safe.
    #[inline]
    #[must_use]
    pub fn is_destroyed(&self) -> bool {
        self.shared.header().destroyed.load(Ordering::Acquire) != 0
    }

    /// The names of all FIFOs, sorted.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn names(namespace: &Namespace) -> Result<Vec<Name>, Diagnostic> {
        namespace.names(ObjectKind::Fifo)
    }

    /// What it is, with the capacity that it has.
    #[must_use]
    pub fn attr(&self) -> FifoAttr {
        self.shared.attr
    }

    /// What is known of it now.
    #[must_use]
    pub fn state(&self) -> FifoState {
        let Shared { attr, object, .. } = &*self.shared;
        let header = self.shared.header();
        let [put, got] = [PUT, GET].map(|n| header.sides[n].position.0.load(Ordering::Acquire));
        let owner = |side: usize| {
            let held = file_lock::is_locked(object.memory(), side as i64, Access::Shared);
            held.unwrap_or(false).then(|| header.sides[side].ends.owner.load(Ordering::Relaxed))
        };
        FifoState {
            used: usize::try_from(put.wrapping_sub(got)).map_or(0, |n| n.min(attr.capacity)),
            in_use: object.in_use_elsewhere(),
            lifetime: object.lifetime(),
            sole_writer: owner(PUT),
            sole_reader: owner(GET),
        }
    }

    /// An end that puts.
    ///
    /// # Errors
    /// EBUSY: another end has the writers' side alone, or, for [`Access::Exclusive`], there are
    /// others.
    pub fn writer(&self, access: Access) -> Result<Writer, Diagnostic> {
        FifoEnd::attach(&self.shared, PUT, access).map(Writer::new)
    }

    /// An end that gets.
    ///
    /// # Errors
    /// As of [`Fifo::writer`], of the readers' side.
    pub fn reader(&self, access: Access) -> Result<Reader, Diagnostic> {
        FifoEnd::attach(&self.shared, GET, access).map(Reader::new)
    }
}

impl Shared {
    fn header(&self) -> &FifoHeader {
        header(&self.mapping)
    }
}

fn header(mapping: &Mapping) -> &FifoHeader {
    // SAFETY: at the beginning of a mapping of at least a page; any bytes are a value of it, and
    // all of it is atomic or the C library's.
    unsafe { mapping.header().cast().as_ref() }
}

fn filled(memory: &std::fs::File, attr: &FifoAttr) -> io::Result<Mapping> {
    let mapping = Mapping::of(memory, page_size(), attr.capacity)?;
    header(&mapping).fill(attr)?;
    Ok(mapping)
}
