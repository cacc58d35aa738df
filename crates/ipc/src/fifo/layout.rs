//! The memory of a FIFO.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{Content, FifoAttr};
use crate::robust_mutex::RobustMutex;

/// The first bytes of the memory of each FIFO, and of none other.
const MAGIC: u64 = u64::from_le_bytes(*b"PNCTFIFO");

/// Of the layout of [`FifoHeader`] and of the messages.
const VERSION: u32 = 2;

/// What comes before a message: its length, and the complement of it.
pub const MESSAGE_HEADER: usize = 8;

/// Messages begin at multiples of this.
pub const ALIGNMENT: usize = 8;

/// The first page of the memory.
#[repr(C)]
pub struct FifoHeader {
    magic: AtomicU64,
    version: AtomicU32,
    /// Of this structure: that of the mutex is the C library's.
    size: AtomicU32,
    capacity: AtomicU64,
    /// Bytes that may be in it; 0: as many as the capacity.
    limit: AtomicU64,
    content: AtomicU32,
    /// Not 0: its name was removed for good ([`super::Fifo::destroy`]).
    pub destroyed: AtomicU32,
    /// What writers put, and what readers got.
    pub sides: [FifoSide; 2],
}

/// One side of a FIFO. Each line of the cache has one writer: the peer reads `position`, and with
/// each put or get of its own only `attention_at`, which seldom changes.
#[repr(C)]
pub struct FifoSide {
    pub position: FifoPosition,
    pub attention: Attention,
    pub ends: SideLock,
}

/// How many bytes went through this side; begins at the capacity. What lies between the positions
/// of both sides is in the FIFO.
#[repr(C, align(128))]
pub struct FifoPosition(pub AtomicU64);

/// What this side does for the other one when it moves.
#[repr(C, align(128))]
pub struct Attention {
    /// How the other side waits: a bit of [`SLEEPS`] and [`POLLS`] for each way that it has used.
    pub waits: AtomicU32,
    /// Notify the other side when this one moves from this position; 0: from none.
    pub at: AtomicU64,
}

/// Threads of the other side sleep.
pub const SLEEPS: u32 = 1;
/// The other side has descriptors.
pub const POLLS: u32 = 2;

/// Which programs have this side open.
#[repr(C, align(128))]
pub struct SideLock {
    /// Among those that share it.
    pub mutex: RobustMutex,
    /// The process that has it alone, if one has; only for messages.
    pub owner: AtomicU32,
}

impl FifoPosition {
    /// What those sleep on that wait for it to move: its lower half.
    pub fn futex(&self) -> &AtomicU32 {
        let half = self.0.as_ptr().cast::<u32>();
        let half = if cfg!(target_endian = "big") { half.wrapping_add(1) } else { half };
        // SAFETY: within the position; only the kernel reads it.
        unsafe { AtomicU32::from_ptr(half) }
    }
}

impl FifoHeader {
    /// Describes a new FIFO, in memory of zeros.
    pub fn fill(&self, attr: &FifoAttr) -> std::io::Result<()> {
        for side in &self.sides {
            side.ends.mutex.init()?;
            side.position.0.store(attr.capacity as u64, Ordering::Relaxed);
        }
        self.version.store(VERSION, Ordering::Relaxed);
        self.size.store(size_of::<Self>() as u32, Ordering::Relaxed);
        self.capacity.store(attr.capacity as u64, Ordering::Relaxed);
        self.limit.store(attr.limit.unwrap_or(0) as u64, Ordering::Relaxed);
        self.content.store(u32::from(attr.content == Content::Messages), Ordering::Relaxed);
        self.magic.store(MAGIC, Ordering::Release);
        Ok(())
    }

    /// What the memory says; `None`: it is of another version, or damaged.
    pub fn attr(&self) -> Option<FifoAttr> {
        let good = self.magic.load(Ordering::Acquire) == MAGIC
            && self.version.load(Ordering::Relaxed) == VERSION
            && self.size.load(Ordering::Relaxed) == size_of::<Self>() as u32;
        let content = match self.content.load(Ordering::Relaxed) {
            0 => Content::Bytes,
            1 => Content::Messages,
            _ => return None,
        };
        let capacity = usize::try_from(self.capacity.load(Ordering::Relaxed)).ok()?;
        let limit = usize::try_from(self.limit.load(Ordering::Relaxed)).ok()?;
        let limit = (limit != 0).then_some(limit);
        (good && limit <= Some(capacity)).then_some(FifoAttr { capacity, limit, content })
    }
}

/// Bytes of a message in the FIFO; more than any FIFO has, if the length is.
#[inline]
pub fn message_size(length: usize) -> usize {
    length.saturating_add(MESSAGE_HEADER + ALIGNMENT - 1) & !(ALIGNMENT - 1)
}

/// What comes before a message of this length, below 4 GiB.
#[inline]
pub fn message_header(length: usize) -> u64 {
    let length = length as u32;
    u64::from(length) | u64::from(!length) << 32
}

/// The length of a message; `None`: no message begins with this.
#[inline]
pub fn message_length(header: u64) -> Option<usize> {
    let length = header as u32;
    (header == message_header(length as usize)).then_some(length as usize)
}

const _: () = assert!(size_of::<FifoHeader>() <= 4096);
