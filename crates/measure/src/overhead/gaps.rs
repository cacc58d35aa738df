//! What interrupts spinning programs on one CPU: the time between the last instruction before an
//! event and the first one after it, whatever the kernel and the dispatcher do in between.
//!
//! All spinners of a CPU share one word of memory: when the latest of them executed last, and
//! which one it was. Each writes it again and again; one that finds it old records a gap.
//!
//! ```text
//! load  ─────────────┐  gap  ┌──── ...          `last` ages while none of them executes
//! tau1               └───────┘────────┐  gap
//! ```

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicBool, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
};

use punctual_sys::clock::monotonic_ns;

/// A spinner of a page: 0 is the load, and the tasks follow.
pub type SpinnerId = u64;
/// The load.
pub const LOAD: SpinnerId = 0;
/// Bits of a spinner in the shared word.
const WHO_BITS: u32 = 3;
/// Greatest number of a spinner.
pub const MOST_SPINNERS: SpinnerId = (1 << WHO_BITS) - 1;
/// Shorter ones are the loop itself and a cache miss, ns.
const GAP: u64 = 1_000;
/// Gaps of a page: several thousand a second for ten seconds.
const GAPS: usize = 1 << 16;
/// Readings between two looks at whether it shall end.
const CHUNK: u32 = 256;

/// A gap: none of the spinners executed from `begin` to `end` (CLOCK_MONOTONIC, ns).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The last reading before.
    pub begin: u64,
    /// The first one after.
    pub end: u64,
    /// What executed before.
    pub before: SpinnerId,
    /// What executes after; the same where nothing changed.
    pub after: SpinnerId,
}

#[repr(C)]
struct Shared {
    /// The time of the latest reading, and by which spinner: `time << WHO_BITS | spinner`.
    last: AtomicU64,
    /// Gaps so far, those without room included.
    count: AtomicU64,
    /// Of each gap its begin with the spinner before, and its end with the one after.
    gaps: [[AtomicU64; 2]; GAPS],
}

/// The memory that the spinners of one CPU share.
pub struct GapPage {
    shared: NonNull<Shared>,
    file: File,
}

// SAFETY: the mapping lives as long as the value, and all of it is atomics.
unsafe impl Send for GapPage {}
// SAFETY: as above.
unsafe impl Sync for GapPage {}

impl GapPage {
    /// A page of its own.
    pub fn new() -> io::Result<GapPage> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let file: OwnedFd = rustix::fs::memfd_create("punctual-gaps", flags)?;
        let file = File::from(file);
        file.set_len(size_of::<Shared>() as u64)?;
        GapPage::map(file)
    }

    /// That of another process, by the path that it names.
    pub fn open(path: &Path) -> io::Result<GapPage> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        if file.metadata()?.len() != size_of::<Shared>() as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it has another size"));
        }
        GapPage::map(file)
    }

    /// Where another process finds it, as long as this one lives.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }

    fn map(file: File) -> io::Result<GapPage> {
        // SAFETY: a shared mapping of the file's whole size; zeros are a value of Shared.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Shared>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(GapPage { shared: NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?, file })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: mapped as long as self lives.
        unsafe { self.shared.as_ref() }
    }

    /// Executes as this spinner until an instant, or until `over`. No system call, no allocation.
    pub fn spin(&self, who: SpinnerId, until: u64, over: &AtomicBool) {
        loop {
            for _ in 0..CHUNK {
                if self.read_clock(who) >= until {
                    return;
                }
            }
            if over.load(Relaxed) {
                return;
            }
        }
    }

    /// One reading. A spinner may be preempted anywhere in it: the exchange is one instruction, so
    /// each gap is found once, and a reading that is older than the word finds none.
    fn read_clock(&self, who: SpinnerId) -> u64 {
        let shared = self.shared();
        let now = monotonic_ns();
        let last = shared.last.fetch_max(now << WHO_BITS | who, AcqRel);
        if last != 0 && now > (last >> WHO_BITS) + GAP {
            let place = shared.count.fetch_add(1, AcqRel) as usize;
            if let Some(gap) = shared.gaps.get(place) {
                gap[0].store(last, Relaxed);
                gap[1].store(now << WHO_BITS | who, Relaxed);
            }
        }
        now
    }

    /// The gaps so far, and how many had no room. Call it when the spinners have ended.
    pub fn gaps(&self) -> (Vec<Gap>, u64) {
        let shared = self.shared();
        let count = shared.count.load(Acquire) as usize;
        let read = |gap: &[AtomicU64; 2]| {
            let [first, last] = [0, 1].map(|k| gap[k].load(Relaxed));
            Gap {
                begin: first >> WHO_BITS,
                end: last >> WHO_BITS,
                before: first & MOST_SPINNERS,
                after: last & MOST_SPINNERS,
            }
        };
        let kept = count.min(GAPS);
        // One whose spinner was killed while it wrote is left out.
        let gaps = shared.gaps[..kept].iter().map(read).filter(|gap| gap.end > gap.begin);
        (gaps.collect(), (count - kept) as u64)
    }
}

impl Drop for GapPage {
    fn drop(&mut self) {
        // SAFETY: mapped by us with this size; no reference is left.
        unsafe { libc::munmap(self.shared.as_ptr().cast(), size_of::<Shared>()) };
    }
}
