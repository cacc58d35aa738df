//! Memory that stays in RAM.
//!
//! The kernel has one state for the whole process, and one call that ends it. So the locks of this
//! module are counted: the first one examines what the program has locked by itself, the last one
//! restores that.
//!
//! | found at the first lock | after the last one |
//! |---|---|
//! | nothing locked | nothing locked |
//! | some memory locked (mlock, MCL_CURRENT) | all that is mapped then stays locked; later mappings are not |
//! | MCL_FUTURE, with or without MCL_ONFAULT | the same, and later mappings are locked as before |
//!
//! What the program itself locks or unlocks meanwhile is not noticed.
//!
//! While memory is locked, the process has no transparent huge pages (huge_pages.rs), and neither
//! have processes that the program itself forks, nor what these execute; those that are started
//! [`with_huge_pages`] have them.

use crate::huge_pages;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rtrb::{Consumer, Producer, RingBuffer};
use rustix::mm::{madvise, mmap_anonymous, munmap, Advice, MapFlags, ProtFlags};

/// What a [`MemoryLock`] covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// All that is mapped now, and brings it in, every stack too. Mappings to come are not locked.
    Present,
    /// Each page, now and in future, from its first use on: an unused page costs nothing.
    Touched,
    /// All that is mapped now or in future, and brings it in.
    All,
}

/// Keeps memory locked while it lives.
#[derive(Debug)]
pub struct MemoryLock(Extent);

impl MemoryLock {
    /// Locks; beside other locks of this process, the strongest holds.
    ///
    /// # Errors
    /// EPERM, ENOMEM: beyond RLIMIT_MEMLOCK.
    pub fn take(extent: Extent) -> io::Result<Self> {
        let mut process = process();
        if process.held.is_empty() {
            process.found = Found::examine()?;
            process.forbids_huge_pages = huge_pages::forbid();
        }
        process.held.push(extent);
        let locked = process.lock(extent);
        if locked.is_err() {
            process.release(extent);
        }
        locked.map(|()| Self(extent))
    }
}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        process().release(self.0);
    }
}

/// Locks each page of this process, now and in future, from its first use on. For a process whose
/// memory stays locked until it ends.
///
/// # Errors
/// As of [`MemoryLock::take`].
pub fn lock_touched() -> io::Result<()> {
    huge_pages::forbid();
    mlockall(libc::MCL_CURRENT | NewMappings::Touched.flags())
}

/// Calls `start`, which starts a process that inherits this one's setting: it has transparent huge
/// pages, unless this process had none before its memory was locked. `start` takes no
/// [`MemoryLock`].
pub fn with_huge_pages<T>(start: impl FnOnce() -> T) -> T {
    let process = process();
    if !process.forbids_huge_pages {
        return start();
    }
    huge_pages::permit();
    let started = start();
    huge_pages::forbid();
    started
}

/// Calls `map`, whose mappings are not locked whatever else is: the kernel would bring each of them
/// in at once, with MCL_ONFAULT too where a mapping cannot be locked (a BPF arena, which has no
/// room then). What other threads map meanwhile is locked afterwards, or with their next lock.
/// `map` takes no [`MemoryLock`].
pub fn map_unlocked<T>(map: impl FnOnce() -> T) -> T {
    let process = process();
    let new = match process.held.is_empty() {
        true => Found::examine().map_or(NewMappings::Unlocked, |found| found.new),
        false => process.new_mappings(),
    };
    if new == NewMappings::Unlocked {
        return map();
    }
    // Locks what is mapped, but brings none of it in.
    let _ = mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT);
    let mapped = map();
    let _ = mlockall(new.flags());
    mapped
}

/// What becomes of new mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum NewMappings {
    Unlocked,
    Touched,
    All,
}

impl NewMappings {
    fn flags(self) -> libc::c_int {
        match self {
            Self::Unlocked => 0,
            Self::Touched => libc::MCL_FUTURE | libc::MCL_ONFAULT,
            Self::All => libc::MCL_FUTURE,
        }
    }
}

/// What the program has locked by itself.
#[derive(Debug, Clone, Copy)]
struct Found {
    some: bool,
    new: NewMappings,
}

impl Found {
    /// From what happens to a new mapping: the kernel shows only how much is locked in sum, which
    /// other threads change too, with each stack that they map or unmap.
    fn examine() -> io::Result<Self> {
        const PAGE: usize = 4096;
        let some = locked_kib()? > 0;
        let found = |new| Ok(Self { some, new });
        let flags = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: a new mapping, which overlaps nothing.
        let page = match unsafe { mmap_anonymous(std::ptr::null_mut(), PAGE, flags.0, flags.1) } {
            Ok(page) => page,
            // MCL_FUTURE, at RLIMIT_MEMLOCK.
            Err(rustix::io::Errno::AGAIN) => return found(NewMappings::All),
            Err(e) => return Err(e.into()),
        };
        let mut resident = 0u8;
        // SAFETY: the mapping is ours and not used, and `resident` has a byte for its one page.
        let locked = unsafe {
            libc::mincore(page, PAGE, &mut resident);
            // The kernel takes no page from a locked mapping (madvise(2)).
            let given_back = madvise(page, PAGE, Advice::LinuxDontNeed);
            munmap(page, PAGE)?;
            given_back == Err(rustix::io::Errno::INVAL)
        };
        found(match (locked, resident & 1) {
            (false, _) => NewMappings::Unlocked,
            (true, 0) => NewMappings::Touched,
            (true, _) => NewMappings::All,
        })
    }
}

/// VmLck of this process.
fn locked_kib() -> io::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let value = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    let number = value.and_then(|v| v.trim().strip_suffix(" kB")?.parse().ok());
    number.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

struct Process {
    held: Vec<Extent>,
    /// Before the first of them.
    found: Found,
    /// There were transparent huge pages then, and are none now.
    forbids_huge_pages: bool,
}

fn process() -> MutexGuard<'static, Process> {
    static PROCESS: Mutex<Process> = Mutex::new(Process {
        held: Vec::new(),
        found: Found { some: false, new: NewMappings::Unlocked },
        forbids_huge_pages: false,
    });
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Process {
    fn new_mappings(&self) -> NewMappings {
        let of = |extent: &Extent| match extent {
            Extent::Present => NewMappings::Unlocked,
            Extent::Touched => NewMappings::Touched,
            Extent::All => NewMappings::All,
        };
        self.held.iter().map(of).fold(self.found.new, NewMappings::max)
    }

    fn lock(&self, extent: Extent) -> io::Result<()> {
        if extent == Extent::Present {
            mlockall(libc::MCL_CURRENT)?;
        }
        match self.new_mappings() {
            NewMappings::Unlocked => Ok(()),
            new => mlockall(libc::MCL_CURRENT | new.flags()),
        }
    }

    /// While others are held, what is locked stays so.
    fn release(&mut self, extent: Extent) {
        if let Some(n) = self.held.iter().position(|held| *held == extent) {
            self.held.swap_remove(n);
        }
        if self.held.is_empty() {
            if std::mem::take(&mut self.forbids_huge_pages) {
                huge_pages::permit();
            }
            // Each of these only takes away, which no limit forbids.
            let _ = match self.found {
                Found { some: false, new: NewMappings::Unlocked } => munlockall(),
                Found { new: NewMappings::Unlocked, .. } => {
                    mlockall(libc::MCL_CURRENT | libc::MCL_ONFAULT)
                }
                Found { new, .. } => mlockall(new.flags()),
            };
        }
    }
}

fn mlockall(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: a system call without pointers.
    match unsafe { libc::mlockall(flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn munlockall() -> io::Result<()> {
    // SAFETY: a system call without arguments.
    match unsafe { libc::munlockall() } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A ring whose pages are all touched, so that a real-time thread's writes have no page faults:
/// locked memory ([`MemoryLock`]) is locked when it is first touched.
pub fn touched_ring<T>(capacity: usize, filler: impl Fn() -> T) -> (Producer<T>, Consumer<T>) {
    let (mut sender, mut ring) = RingBuffer::new(capacity);
    while sender.push(filler()).is_ok() {}
    while ring.pop().is_ok() {}
    (sender, ring)
}
