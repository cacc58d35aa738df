//! What an allocator of gsi.h shares with the processes of its jobs: which job each of them has,
//! and its calls of GSI_abort_job.
//!
//! ```text
//!  allocator                                process
//!  GSI_register: table, pipe                (inherits them, or opens them by the environment)
//!  GSI_addjob ──sequence, start──────────>
//!             <──asked, message by the pipe─ GSI_abort_job
//!  complete the job, send the next one
//!             ──start, answered, sequence──> its start has come: GSI_abort_job returns
//! ```
//!
//! Inside the kernel a process completes its job by `sched_yield`, which returns on its next job:
//! it sends no message.
//!
//! A message names the job that the process saw. One of a job gone by is answered at once: the
//! process continues on the job that it has. The dispatcher reads nothing of this; what a process
//! writes here is its own affair, or that of a program of the same user.

use std::ffi::{c_int, CStr, CString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64};
use std::sync::{Mutex, OnceLock, PoisonError};

use punctual_sys::clock::monotonic_ns;
use punctual_sys::{futex, pidfd};

/// Processes that have jobs at one time.
pub const PROCESSES: usize = 256;
/// Names the table and the pipe of the allocator for processes that called exec.
const ENVIRONMENT: &CStr = c"PUNCTUAL_GSI";
/// Another version of the library has another one.
const MAGIC: u64 = 0x4753_4900_0000_0002;
/// How often a process that waits looks whether its allocator is alive, ns.
const LOOK: u64 = 100_000_000;

#[repr(C)]
struct Words {
    magic: AtomicU64,
    allocator: AtomicI32,
    /// Counts the entries that were claimed; odd: there is no allocator.
    claims: AtomicU32,
    /// 1: a process completes its job by `sched_yield`.
    by_yield: AtomicU32,
    processes: [ProcessEntry; PROCESSES],
}

/// One process.
#[repr(C, align(64))]
pub struct ProcessEntry {
    /// 0: it is free.
    pid: AtomicI32,
    /// Calls of GSI_abort_job, and those up to which may return.
    asked: AtomicU32,
    answered: AtomicU32,
    /// The number of its latest job among all of the allocator, from 1.
    sequence: AtomicU64,
    /// When that job starts, ns.
    start: AtomicU64,
}

/// What a process says: the job whose number it saw is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    pub pid: i32,
    pub sequence: u64,
}

const MESSAGE: usize = 16;

/// A table and its pipe.
pub struct ProcessTable {
    words: NonNull<Words>,
    memory: OwnedFd,
    /// Both ends of the pipe: it has a reader as long as a writer.
    receiver: File,
    sender: File,
}

// SAFETY: atomics in memory that stays mapped as long as this, and descriptors.
unsafe impl Send for ProcessTable {}
// SAFETY: as above.
unsafe impl Sync for ProcessTable {}

/// Why GSI_abort_job ended no job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortError {
    /// This process has none: it was not forked by one.
    NoAllocator,
    /// The allocator has ended.
    Over,
}

impl ProcessTable {
    /// The table of the allocators of this process, one after the other; made at the first call.
    ///
    /// # Errors
    /// EMFILE, ENFILE, ENOMEM.
    pub fn of_allocator() -> io::Result<&'static ProcessTable> {
        static MAKING: Mutex<()> = Mutex::new(());
        let _turn = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
        if OWN.get().is_none() {
            let _ = OWN.set(ProcessTable::make()?);
        }
        OWN.get().ok_or(io::ErrorKind::NotFound.into())
    }

    fn make() -> io::Result<ProcessTable> {
        // SAFETY: a system call with a text.
        let memory = unsafe { libc::memfd_create(c"punctual-gsi".as_ptr(), libc::MFD_CLOEXEC) };
        // SAFETY: a new descriptor, which nothing else has.
        let memory = unsafe { OwnedFd::from_raw_fd(checked(memory)?) };
        // SAFETY: a system call without memory.
        checked(unsafe { libc::ftruncate(memory.as_raw_fd(), size_of::<Words>() as i64) })?;
        let mut ends = [0; 2];
        // SAFETY: room for two descriptors.
        checked(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) })?;
        // SAFETY: new descriptors, which nothing else has.
        let [receiver, sender] = ends.map(|end| unsafe { File::from_raw_fd(end) });
        let table = ProcessTable { words: map(memory.as_fd())?, memory, receiver, sender };
        table.words().allocator.store(std::process::id() as i32, SeqCst);
        table.words().magic.store(MAGIC, SeqCst);
        table.name_in_environment()?;
        Ok(table)
    }

    fn name_in_environment(&self) -> io::Result<()> {
        let (me, memory, sender) =
            (std::process::id(), self.memory.as_raw_fd(), self.sender.as_raw_fd());
        let value = CString::new(format!("/proc/{me}/fd/{memory}:/proc/{me}/fd/{sender}"))?;
        // SAFETY: texts. The call may be made beside no other use of the environment (gsi.h).
        checked(unsafe { libc::setenv(ENVIRONMENT.as_ptr(), value.as_ptr(), 1) }).map(drop)
    }

    /// The table that the environment names.
    fn of_environment() -> Option<ProcessTable> {
        let value = std::env::var(ENVIRONMENT.to_str().ok()?).ok()?;
        let (memory, sender) = value.split_once(':')?;
        let open = |path: &str| {
            let mut options = File::options();
            options.read(true).write(true).custom_flags(libc::O_NONBLOCK).open(path).ok()
        };
        let memory: OwnedFd = open(memory)?.into();
        let whole = File::from(memory.try_clone().ok()?).metadata().ok()?;
        if whole.len() != size_of::<Words>() as u64 {
            return None;
        }
        // Open for reading too, so that no write to it raises SIGPIPE.
        let sender = open(sender)?;
        let receiver = sender.try_clone().ok()?;
        let table = ProcessTable { words: map(memory.as_fd()).ok()?, memory, receiver, sender };
        (table.words().magic.load(SeqCst) == MAGIC).then_some(table)
    }

    fn words(&self) -> &Words {
        // SAFETY: mapped as long as this lives, as large, and zeroed at first. Other processes
        // write it, which atomics permit.
        unsafe { self.words.as_ref() }
    }

    /// Readable while a message waits.
    pub fn messages(&self) -> BorrowedFd<'_> {
        self.receiver.as_fd()
    }

    /// The next message; does not wait. Real-time safe.
    pub fn next_message(&self) -> Option<Message> {
        let mut bytes = [0; MESSAGE];
        // Messages are shorter than what a pipe takes at once: each is read whole.
        let read = (&self.receiver).read(&mut bytes).ok()?;
        let (pid, sequence) = (bytes[..4].try_into().ok()?, bytes[8..].try_into().ok()?);
        let message =
            Message { pid: i32::from_ne_bytes(pid), sequence: u64::from_ne_bytes(sequence) };
        (read == MESSAGE).then_some(message)
    }

    /// There is an allocator from here on, or none: processes that wait for a first job return.
    pub fn set_open(&self, open: bool) {
        let claims = &self.words().claims;
        let _ = claims.fetch_update(SeqCst, SeqCst, |claims| Some(claims | 1));
        if open {
            claims.fetch_add(1, SeqCst);
        }
        futex::wake_shared(claims);
    }

    /// Whether processes complete their jobs by `sched_yield`. Before there are any.
    pub fn set_by_yield(&self, by_yield: bool) {
        self.words().by_yield.store(by_yield.into(), SeqCst);
    }

    /// A free entry for a process; `None` when there is none.
    pub fn claim(&self, pid: i32) -> Option<&ProcessEntry> {
        let free = |entry: &&ProcessEntry| entry.pid.load(SeqCst) == 0;
        let entry = self.words().processes.iter().find(free)?;
        entry.sequence.store(0, SeqCst);
        entry.pid.store(pid, SeqCst);
        self.words().claims.fetch_add(2, SeqCst);
        futex::wake_shared(&self.words().claims);
        Some(entry)
    }

    /// The entry of a process; waits until it has one. Whether it had to wait.
    fn await_entry(
        &self,
        pid: i32,
        allocator: &OwnedFd,
    ) -> Result<(&ProcessEntry, bool), AbortError> {
        let mut waited = false;
        loop {
            let claims = self.words().claims.load(SeqCst);
            if let Some(entry) = self.entry_of(pid) {
                return Ok((entry, waited));
            }
            if claims % 2 == 1 || pidfd::has_ended(allocator) {
                return Err(AbortError::Over);
            }
            waited = true;
            let until = monotonic_ns().saturating_add(LOOK);
            futex::wait_shared(&self.words().claims, claims, until);
        }
    }

    fn entry_of(&self, pid: i32) -> Option<&ProcessEntry> {
        self.words().processes.iter().find(|entry| entry.pid.load(SeqCst) == pid)
    }

    fn send(&self, message: Message) -> io::Result<()> {
        let mut bytes = [0; MESSAGE];
        bytes[..4].copy_from_slice(&message.pid.to_ne_bytes());
        bytes[8..].copy_from_slice(&message.sequence.to_ne_bytes());
        (&self.sender).write_all(&bytes)
    }
}

impl ProcessEntry {
    /// The process has another job: what it asked for so far returns at its start. Before the job
    /// is sent. Real-time safe.
    pub fn begin(&self, sequence: u64, start: u64) {
        self.start.store(start, SeqCst);
        self.answer();
        // In this order: a process that saw the number of this job asks about this one.
        self.sequence.store(sequence, SeqCst);
    }

    /// What the process asked for so far returns. Real-time safe.
    pub fn answer(&self) {
        self.answered.store(self.asked.load(SeqCst), SeqCst);
        futex::wake_shared(&self.answered);
    }

    /// The process is none of the allocator's any more.
    pub fn release(&self) {
        self.pid.store(0, SeqCst);
        self.answer();
    }

    /// Waits until `may_return`, and then for the start of the latest job.
    fn wait(
        &self,
        me: i32,
        allocator: &OwnedFd,
        may_return: impl Fn(u32) -> bool,
    ) -> Result<(), AbortError> {
        let is_over = || self.pid.load(SeqCst) != me || pidfd::has_ended(allocator);
        loop {
            let answered = self.answered.load(SeqCst);
            if is_over() {
                return Err(AbortError::Over);
            }
            if may_return(answered) {
                break;
            }
            futex::wait_shared(&self.answered, answered, monotonic_ns().saturating_add(LOOK));
        }
        loop {
            let (now, start) = (monotonic_ns(), self.start.load(SeqCst));
            if now >= start {
                return Ok(());
            }
            futex::sleep_until(start.min(now.saturating_add(LOOK)));
            if is_over() {
                return Err(AbortError::Over);
            }
        }
    }
}

/// The table of the allocators of this process, which a child of a fork has, too.
static OWN: OnceLock<ProcessTable> = OnceLock::new();

/// A table of which this process has jobs, and its allocator.
struct Joined {
    table: &'static ProcessTable,
    allocator: OwnedFd,
}

/// The table that this process has; a later call may find one.
fn joined() -> Option<&'static Joined> {
    static OF_ENVIRONMENT: OnceLock<ProcessTable> = OnceLock::new();
    static JOINED: OnceLock<Joined> = OnceLock::new();
    if let Some(joined) = JOINED.get() {
        return Some(joined);
    }
    let table = match (OWN.get(), OF_ENVIRONMENT.get()) {
        (Some(table), _) | (None, Some(table)) => table,
        (None, None) => {
            let table = ProcessTable::of_environment()?;
            OF_ENVIRONMENT.get_or_init(|| table)
        }
    };
    let allocator = pidfd::open(table.words().allocator.load(SeqCst)).ok()?;
    Some(JOINED.get_or_init(|| Joined { table, allocator }))
}

/// Ends the job of the calling process, if it has had one; returns at the start of its next one.
///
/// # Errors
/// See [`AbortError`].
pub fn abort_job() -> Result<(), AbortError> {
    let Joined { table, allocator } = joined().ok_or(AbortError::NoAllocator)?;
    let me = std::process::id() as i32;
    if table.words().allocator.load(SeqCst) == me {
        return Err(AbortError::NoAllocator);
    }
    let (entry, is_new) = table.await_entry(me, allocator)?;
    if is_new {
        // Its first job is not the one that it ends.
        return entry.wait(me, allocator, |_| entry.sequence.load(SeqCst) > 0);
    }
    if table.words().by_yield.load(SeqCst) == 1 {
        // SAFETY: a system call without arguments.
        unsafe { libc::sched_yield() };
        let is_over = entry.pid.load(SeqCst) != me || pidfd::has_ended(allocator);
        return if is_over { Err(AbortError::Over) } else { Ok(()) };
    }
    let message = Message { pid: me, sequence: entry.sequence.load(SeqCst) };
    let asked = entry.asked.fetch_add(1, SeqCst).wrapping_add(1);
    while table.send(message).is_err() {
        // The pipe is full of what others wrote: the allocator is late.
        if entry.pid.load(SeqCst) != me || pidfd::has_ended(allocator) {
            return Err(AbortError::Over);
        }
        let fd = table.sender.as_raw_fd();
        let mut full = libc::pollfd { fd, events: libc::POLLOUT, revents: 0 };
        // SAFETY: one descriptor.
        unsafe { libc::poll(&mut full, 1, (LOOK / 1_000_000) as c_int) };
    }
    entry.wait(me, allocator, |answered| answered.wrapping_sub(asked) as i32 >= 0)
}

fn map(memory: BorrowedFd<'_>) -> io::Result<NonNull<Words>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let (size, fd) = (size_of::<Words>(), memory.as_raw_fd());
    // SAFETY: a new mapping, which overlaps nothing.
    let at = unsafe { libc::mmap(ptr::null_mut(), size, access, libc::MAP_SHARED, fd, 0) };
    match at {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        at => NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory.into()),
    }
}

fn checked(result: c_int) -> io::Result<c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
