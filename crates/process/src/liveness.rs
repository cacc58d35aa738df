//! Reports the death of this process to a forked one, which sleeps without a timeout.
//!
//! ```text
//!   owner: "punctual-alive", SCHED_RR 99, holds a robust futex in shared memory, sleeps
//!   guardian: sleeps in that futex
//!     SIGKILL, exit, exec ──> the kernel ends the thread, marks the futex, wakes the guardian
//! ```
//!
//! A pidfd reports the death of the last thread, which may never get the CPU below a runaway. This
//! thread gets it above every task, on any CPU. It executes nothing until its end, and neither does
//! the guardian: the supervision takes no time from the tasks.
//!
//! The thread is not at SCHED_FIFO 99: in its exit it may retry inside the kernel (`demote`), and
//! after its time slice the guardian, at the same priority, gets the CPU and demotes it.

use crate::guardian::SignalMask;
use punctual_sys::{futex, sched, thread_name};
use rustix::mm::{mmap_anonymous, munmap, MapFlags, ProtFlags};
use std::convert::Infallible;
use std::io;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, SyncSender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread may take to start.
const PATIENCE: Duration = Duration::from_secs(5);

/// The thread of the owner. Dropping it wakes the guardian as the owner's death does.
#[derive(Debug)]
pub(crate) struct Liveness {
    shared: Arc<Mapped>,
    /// Taken at the end, which the thread waits for.
    running: Option<(SyncSender<Infallible>, JoinHandle<()>)>,
}

impl Liveness {
    /// Starts the thread. `every`: the CPUs that it may use.
    ///
    /// # Errors
    /// No thread or memory, or the thread does not get the CPU.
    pub fn start(every: Vec<u64>) -> io::Result<Self> {
        let shared = Arc::new(Mapped::new()?);
        let (sender, end) = mpsc::sync_channel(0);
        let (ready, is_ready) = mpsc::sync_channel(1);
        let held = shared.clone();
        let alive = move || {
            let holds = held.hold();
            // Without the right to this, tasks have no real-time priority either.
            let _ = sched::set_round_robin(0, 99);
            let _ = sched::set_affinity(0, &every);
            let _ = ready.send(holds);
            // Nothing is ever sent: this is the end of the sender.
            let _: Result<Infallible, _> = end.recv();
        };
        // Inherited by the thread: no handler of the program runs there.
        let mask = SignalMask::block_all();
        let thread = std::thread::Builder::new()
            .name(thread_name::ALIVE.into())
            .stack_size(64 << 10)
            .spawn(alive)?;
        drop(mask);
        is_ready.recv_timeout(PATIENCE).map_err(|_| io::ErrorKind::TimedOut)??;
        Ok(Self { shared, running: Some((sender, thread)) })
    }

    /// In a forked process: sleeps until the thread has ended, or [`report`](Self::report) was
    /// called. Without a timeout.
    pub fn await_end(&self) {
        let word = &self.shared.get().word;
        loop {
            let value = word.load(Ordering::Acquire);
            if value & libc::FUTEX_OWNER_DIED != 0 {
                return;
            }
            futex::wait_shared(word, value, u64::MAX);
        }
    }

    /// In a forked process: wakes the one that waits, although the thread has not ended.
    pub fn report(&self) {
        let word = &self.shared.get().word;
        word.fetch_or(libc::FUTEX_OWNER_DIED, Ordering::Release);
        futex::wake_shared(word);
    }
}

impl Drop for Liveness {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.running.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

/// A robust futex and its list of one, as set_robust_list(2) has them.
#[repr(C)]
struct Shared {
    /// The holder's thread id; the kernel marks it at the holder's death.
    word: AtomicU32,
    /// `struct robust_list`: the next entry.
    entry: *const libc::c_void,
    /// `struct robust_list_head`.
    head: Head,
}

#[repr(C)]
struct Head {
    first: *const libc::c_void,
    /// From an entry to its word.
    offset: libc::c_long,
    pending: *const libc::c_void,
}

/// In memory that forked processes share. It outlives the holder, whose list the kernel reads last.
#[derive(Debug)]
struct Mapped(*mut Shared);

// SAFETY: the memory belongs to no thread and is unmapped by the last user; what is written after
// `hold` is atomic.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    fn new() -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let (any, size) = (std::ptr::null_mut(), size_of::<Shared>());
        // SAFETY: a new mapping, which overlaps nothing. All zero is a value of `Shared`.
        let memory = unsafe { mmap_anonymous(any, size, access, MapFlags::SHARED)? };
        Ok(Self(memory.cast()))
    }

    fn get(&self) -> &Shared {
        // SAFETY: valid while `self` lives; all but the word is written by `hold` only.
        unsafe { &*self.0 }
    }

    /// Makes the calling thread the holder until it ends. It uses no other robust futex, since its
    /// list in the C library is replaced.
    fn hold(&self) -> io::Result<()> {
        let at = self.0;
        // SAFETY: no other thread uses these fields, and the memory outlives the thread.
        let refused = unsafe {
            let (entry, head) = (&raw mut (*at).entry, &raw mut (*at).head);
            entry.write(head.cast());
            let offset = offset_of!(Shared, word) as libc::c_long
                - offset_of!(Shared, entry) as libc::c_long;
            head.write(Head { first: entry.cast(), offset, pending: std::ptr::null() });
            libc::syscall(libc::SYS_set_robust_list, head, size_of::<Head>()) != 0
        };
        if refused {
            return Err(io::Error::last_os_error());
        }
        let holder = sched::thread_id() as u32 | libc::FUTEX_WAITERS;
        self.get().word.store(holder, Ordering::Release);
        Ok(())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the last user is gone.
        let _ = unsafe { munmap(self.0.cast(), size_of::<Shared>()) };
    }
}
