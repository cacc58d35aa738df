//! The memory of a lock: a page that processes share, and behind it one of this process alone.
//!
//! ```text
//!   shared  | LockHeader            ...              word of the mutex, 16 bytes before the end |
//!   private | links of the robust list, where the kernel computes them from the word   Ownership |
//! ```
//!
//! The kernel finds a mutex of a thread that ended by an entry of the thread's robust list, whose
//! distance to the mutex's word is the C library's (32 bytes in glibc). With the word at the end of
//! the shared page, the entry is in the private one: no other process can damage the list, through
//! which the C library writes.

use std::fs::File;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use punctual_diagnostic::Diagnostic;
use punctual_sys::robust_list::{Links, RobustList};
use rustix::mm::{mmap, mmap_anonymous, munmap, MapFlags, ProtFlags};

use super::thread::CallingThread;
use super::waiters::Waiters;
use super::LockKind;
use crate::mapping::page_size;
use crate::name::Name;
use crate::namespace::{Lifetime, Namespace};
use crate::object::{Object, ObjectKind};

/// The first bytes of the memory of each lock, and of nothing else.
const MAGIC: u64 = u64::from_le_bytes(*b"PNCTLOCK");

/// Of the layout of [`LockHeader`], and of where the word of a mutex is.
const VERSION: u32 = 1;

/// From the word of the mutex to the end of its page.
const WORD_TO_END: usize = 16;

/// Where [`Ownership`] is in the private page: behind the links, wherever these are.
const OWNERSHIP: usize = 256;

/// The beginning of the shared page.
#[repr(C)]
pub struct LockHeader {
    magic: AtomicU64,
    version: AtomicU32,
    /// Of this structure.
    size: AtomicU32,
    kind: AtomicU32,
    /// The most units of a semaphore; the parties of a barrier.
    parameter: AtomicU32,
    pub state: LockState,
    pub waiters: Waiters,
}

/// What changes as the lock is used; each kind has a part.
#[repr(C, align(64))]
pub struct LockState {
    /// Of a mutex: an owner died, and none called it consistent since.
    pub inconsistent: AtomicU32,
    /// Of a condition variable: how many notifications there were.
    pub sequence: AtomicU32,
    /// Of a semaphore: its units, and whether threads wait (`semaphore.rs`).
    pub units: AtomicU32,
    /// Of a barrier: the phase, and how many have come in it (`barrier.rs`).
    pub meeting: AtomicU64,
}

/// No thread of this process.
const NONE: u64 = 0;
/// None, but a thread that ended may be about to unlock it still. It borrows nothing from the
/// [`LockPage`], which therefore stays mapped, until another one has taken the mutex.
const ABANDONED: u64 = u64::MAX;

/// Which thread of this process holds the mutex: in private memory.
#[repr(C)]
pub struct Ownership {
    /// [`CallingThread::id`]; [`NONE`]; [`ABANDONED`].
    owner: AtomicU64,
    /// Its number in the kernel.
    tid: AtomicU32,
    /// Others that the same thread holds; for that thread alone.
    pub next: AtomicPtr<Ownership>,
    pub previous: AtomicPtr<Ownership>,
}

/// A lock that this process has open.
#[derive(Debug)]
pub struct LockPage {
    base: NonNull<u8>,
    /// As it was when the lock was opened, so that a change of the memory changes nothing.
    parameter: u32,
    kind: LockKind,
    // Last, so that the mapping is gone when others may remove it.
    object: Object,
}

// SAFETY: memory that belongs to no thread; all access is atomic, but for the links, which the
// owner of the mutex has alone.
unsafe impl Send for LockPage {}
// SAFETY: as above.
unsafe impl Sync for LockPage {}

const _: () = assert!(size_of::<LockHeader>() <= 4096 - WORD_TO_END);
const _: () = assert!(OWNERSHIP + size_of::<Ownership>() <= 4096);

impl LockPage {
    /// Makes a lock of this name, whose state `fill` writes before others can open it.
    ///
    /// # Errors
    /// The name is taken (EEXIST); no room in memory (ENOSPC); the C library has no robust list to
    /// which others can add (ENOTSUP).
    pub fn create(
        namespace: &Namespace,
        name: &Name,
        kind: LockKind,
        lifetime: Lifetime,
        parameter: u32,
        fill: impl Fn(&LockState),
    ) -> Result<Self, Diagnostic> {
        check_robust_list()?;
        let length = page_size() as u64;
        let filled = |memory: &File| {
            let base = map(memory)?;
            header(base).fill(kind, parameter, &fill);
            Ok(Unmapped(base))
        };
        let (object, mapping) =
            Object::create(namespace, ObjectKind::Lock, name, lifetime, length, filled)?;
        Ok(Self { base: mapping.into_base(), parameter, kind, object })
    }

    /// Opens the lock of this name; of any kind, if none is wanted.
    ///
    /// # Errors
    /// There is none (ENOENT); it is of another kind (EINVAL), or version, or damaged (EBADMSG).
    pub fn open(
        namespace: &Namespace,
        name: &Name,
        wanted: Option<LockKind>,
    ) -> Result<Self, Diagnostic> {
        check_robust_list()?;
        let object = Object::open(namespace, ObjectKind::Lock, name)?;
        let refused = |error: io::Error| {
            Diagnostic::refused(
                format!("cannot open the lock {name}"),
                error,
                "raise the limit of locked memory, if the program locks its memory",
            )
        };
        let damaged = || {
            Diagnostic::machine(
                format!("the lock {name} is damaged, or of another version of Punctual"),
                format!("remove it (`punctual lock remove {name}`), and make it again"),
            )
            .with_errno(libc::EBADMSG)
        };
        if object.memory().metadata().map_err(refused)?.len() != page_size() as u64 {
            return Err(damaged());
        }
        let mapping = Unmapped(map(object.memory()).map_err(refused)?);
        let (kind, parameter) = header(mapping.0).description().ok_or_else(damaged)?;
        match wanted {
            Some(wanted) if wanted != kind => Err(Diagnostic::usage(
                format!("the lock {name} is a {kind}, and not a {wanted}"),
                "open it as what it is, or use another name",
            )
            .with_errno(libc::EINVAL)),
            _ => Ok(Self { base: mapping.into_base(), parameter, kind, object }),
        }
    }

    pub fn kind(&self) -> LockKind {
        self.kind
    }

    /// The most units of a semaphore; the parties of a barrier.
    pub fn parameter(&self) -> u32 {
        self.parameter
    }

    pub fn object(&self) -> &Object {
        &self.object
    }

    #[inline]
    pub fn state(&self) -> &LockState {
        &header(self.base).state
    }

    #[inline]
    pub fn waiters(&self) -> &Waiters {
        &header(self.base).waiters
    }

    /// The word of a mutex.
    #[inline]
    pub fn word(&self) -> &AtomicU32 {
        word(self.base)
    }

    #[inline]
    pub fn ownership(&self) -> &Ownership {
        // SAFETY: within the private page, zeros at first, which are a value.
        unsafe { &*self.base.as_ptr().wrapping_add(page_size() + OWNERSHIP).cast() }
    }

    /// The links of the word's entry in a robust list, in the private page.
    #[inline]
    pub fn links(&self, list: RobustList) -> *mut Links {
        links(self.base, list)
    }
}

impl Drop for LockPage {
    fn drop(&mut self) {
        // A thread that holds the mutex has its links on its list: they stay for that long.
        if self.ownership().owner.load(Ordering::Acquire) == NONE {
            drop(Unmapped(self.base));
        }
    }
}

impl LockHeader {
    fn fill(&self, kind: LockKind, parameter: u32, fill: impl Fn(&LockState)) {
        fill(&self.state);
        self.version.store(VERSION, Ordering::Relaxed);
        self.size.store(size_of::<Self>() as u32, Ordering::Relaxed);
        self.kind.store(kind.number(), Ordering::Relaxed);
        self.parameter.store(parameter, Ordering::Relaxed);
        self.magic.store(MAGIC, Ordering::Release);
    }

    /// The kind and its parameter; `None`: it is of another version, or damaged.
    fn description(&self) -> Option<(LockKind, u32)> {
        let good = self.magic.load(Ordering::Acquire) == MAGIC
            && self.version.load(Ordering::Relaxed) == VERSION
            && self.size.load(Ordering::Relaxed) == size_of::<Self>() as u32;
        let kind = LockKind::of_number(self.kind.load(Ordering::Relaxed)).filter(|_| good)?;
        let parameter = self.parameter.load(Ordering::Relaxed);
        kind.takes(parameter).then_some((kind, parameter))
    }
}

impl Ownership {
    #[inline]
    pub fn is_held(&self) -> bool {
        !matches!(self.owner.load(Ordering::Relaxed), NONE | ABANDONED)
    }

    #[inline]
    pub fn is_of(&self, thread: CallingThread) -> bool {
        self.owner.load(Ordering::Relaxed) == thread.id
    }

    /// Has this thread own it; false: another thread of this process does. After the memory said
    /// that none does: then the memory was damaged, or the other one ended without a trace.
    #[inline]
    pub fn take(&self, thread: CallingThread) -> bool {
        let taken = self.replace(NONE, thread.id)
            || self.replace(ABANDONED, thread.id)
            || self.take_from_dead(thread);
        if taken {
            self.tid.store(thread.tid, Ordering::Relaxed);
        }
        taken
    }

    /// Threads that end by the system call alone are on no list any more, and did not unlock.
    #[cold]
    fn take_from_dead(&self, thread: CallingThread) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        let tid = self.tid.load(Ordering::Relaxed);
        // SAFETY: a system call without memory; no signal is sent.
        let found = unsafe { libc::syscall(libc::SYS_tgkill, std::process::id(), tid, 0) } == 0;
        !found && self.replace(owner, thread.id)
    }

    #[inline]
    fn replace(&self, from: u64, to: u64) -> bool {
        self.owner.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }

    /// No thread owns it. Before the word is unlocked: then another thread of this process may
    /// take it.
    #[inline]
    pub fn give(&self) {
        self.owner.store(NONE, Ordering::Release);
    }

    /// The thread that holds this ends: unlocks the mutex, which is inconsistent.
    pub fn abandon(&self, thread: CallingThread) {
        let base = ptr::from_ref(self).cast::<u8>().wrapping_sub(page_size() + OWNERSHIP);
        let Some(base) = NonNull::new(base.cast_mut()) else { return };
        header(base).state.inconsistent.store(1, Ordering::Relaxed);
        // There is no caller that could get an error of damaged memory.
        let _ = super::mutex::unlock(thread, links(base, thread.robust), word(base), || {
            self.owner.store(ABANDONED, Ordering::Release);
        });
    }
}

/// A mapping that is removed when this is dropped.
struct Unmapped(NonNull<u8>);

impl Unmapped {
    fn into_base(self) -> NonNull<u8> {
        let base = self.0;
        std::mem::forget(self);
        base
    }
}

impl Drop for Unmapped {
    fn drop(&mut self) {
        // SAFETY: made by `map`, and nothing refers to it any more.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), 2 * page_size()) };
    }
}

/// Maps the page of a lock, and a private one behind it, both resident.
fn map(memory: &File) -> io::Result<NonNull<u8>> {
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::POPULATE;
    // SAFETY: a new mapping, which overlaps nothing.
    let base = unsafe { mmap_anonymous(ptr::null_mut(), 2 * page_size(), access, flags) }?;
    let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
    let mapping = Unmapped(base);
    let flags = MapFlags::SHARED | MapFlags::FIXED | MapFlags::POPULATE;
    // SAFETY: the first half of the mapping that was made above and that nothing uses yet.
    unsafe { mmap(base.as_ptr().cast(), page_size(), access, flags, memory, 0) }?;
    Ok(mapping.into_base())
}

#[inline]
fn header<'a>(base: NonNull<u8>) -> &'a LockHeader {
    // SAFETY: at the beginning of a mapping of a page that callers keep; any bytes are a value of
    // it, and all of it is atomic.
    unsafe { base.cast().as_ref() }
}

#[inline]
fn word<'a>(base: NonNull<u8>) -> &'a AtomicU32 {
    // SAFETY: within the shared page, behind the header.
    unsafe { &*base.as_ptr().wrapping_add(page_size() - WORD_TO_END).cast() }
}

#[inline]
fn links(base: NonNull<u8>, list: RobustList) -> *mut Links {
    let entry = (page_size() - WORD_TO_END).wrapping_add_signed(list.offset().wrapping_neg());
    // `check_robust_list`: within the private page.
    base.as_ptr().wrapping_add(entry - Links::ENTRY).cast()
}

/// Whether the entry of a mutex in the robust lists of this process is in the private page.
///
/// # Errors
/// ENOTSUP.
fn check_robust_list() -> Result<(), Diagnostic> {
    let fits = |list: RobustList| {
        let before = usize::try_from(list.offset().wrapping_neg()).ok()?;
        let links = before.checked_sub(WORD_TO_END + Links::ENTRY)?;
        (links % align_of::<Links>() == 0 && links + size_of::<Links>() <= OWNERSHIP).then_some(())
    };
    RobustList::of_thread().and_then(fits).ok_or_else(|| {
        Diagnostic::machine(
            "this C library has no robust list to which locks between processes can be added",
            "link the program with glibc, on a 64-bit machine",
        )
        .with_errno(libc::ENOTSUP)
    })
}
