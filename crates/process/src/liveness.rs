//! Reports the death of this process to a forked one, which sleeps without a timeout.
//!
//! ```text
//!   owner: "punctual-alive", SCHED_RR 99, holds a robust lock in shared memory, sleeps
//!   guardian: sleeps in the lock's futex
//!     SIGKILL, exit, exec ──> the kernel ends the thread, marks the lock, wakes the guardian
//! ```
//!
//! A pidfd reports the death of the last thread, which may never get the CPU below a runaway. This
//! thread gets it above every task, on any CPU. It executes nothing until its end, and neither does
//! the guardian: the supervision takes no time from the tasks.
//!
//! The thread is not at SCHED_FIFO 99: in its exit it may retry inside the kernel (`demote`), and
//! after its time slice the guardian, at the same priority, gets the CPU and demotes it.

use crate::guardian::SignalMask;
use punctual_sys::sched;
use rustix::mm::{mmap_anonymous, munmap, MapFlags, ProtFlags};
use std::convert::Infallible;
use std::io;
use std::mem::MaybeUninit;
use std::sync::mpsc::{self, SyncSender};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// How long the thread may take to start.
const PATIENCE: Duration = Duration::from_secs(5);

/// The thread of the owner. Dropping it wakes the guardian as the owner's death does.
#[derive(Debug)]
pub(crate) struct Liveness {
    lock: Arc<SharedLock>,
    /// Taken at the end, which the thread waits for.
    running: Option<(SyncSender<Infallible>, JoinHandle<()>)>,
}

impl Liveness {
    /// Starts the thread, which holds the lock then. `every`: the CPUs that it may use.
    ///
    /// # Errors
    /// No thread or memory, or the thread does not get the CPU.
    pub fn start(every: Vec<u64>) -> io::Result<Self> {
        let lock = Arc::new(SharedLock::new()?);
        let (sender, end) = mpsc::sync_channel(0);
        let (ready, is_ready) = mpsc::sync_channel(1);
        let held = lock.clone();
        let alive = move || {
            held.lock();
            // Without the right to this, tasks have no real-time priority either.
            let _ = sched::set_round_robin(0, 99);
            let _ = sched::set_affinity(0, &every);
            let _ = ready.send(());
            // Nothing is ever sent: this is the end of the sender.
            let _: Result<Infallible, _> = end.recv();
        };
        // Inherited by the thread: no handler of the program runs there.
        let mask = SignalMask::block_all();
        let thread = std::thread::Builder::new()
            .name("punctual-alive".into())
            .stack_size(64 << 10)
            .spawn(alive)?;
        drop(mask);
        is_ready.recv_timeout(PATIENCE).map_err(|_| io::ErrorKind::TimedOut)?;
        Ok(Self { lock, running: Some((sender, thread)) })
    }

    /// In a forked process: sleeps until the thread has ended. Without a timeout.
    pub fn await_end(&self) {
        self.lock.lock();
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

/// A robust mutex in memory that forked processes share. Never unlocked: only the death of its
/// holder passes it on.
#[derive(Debug)]
struct SharedLock(*mut libc::pthread_mutex_t);

// SAFETY: a mutex is for all threads, and the memory is unmapped by the last user.
unsafe impl Send for SharedLock {}
// SAFETY: as above.
unsafe impl Sync for SharedLock {}

impl SharedLock {
    const SIZE: usize = size_of::<libc::pthread_mutex_t>();

    fn new() -> io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, which overlaps nothing.
        let memory =
            unsafe { mmap_anonymous(std::ptr::null_mut(), Self::SIZE, access, MapFlags::SHARED)? };
        let lock = Self(memory.cast());
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised first and live here; the memory is ours, large
        // enough, and aligned to a page. These calls fail on wrong arguments only.
        unsafe {
            libc::pthread_mutexattr_init(attributes.as_mut_ptr());
            let attributes = attributes.assume_init_mut();
            libc::pthread_mutexattr_setpshared(attributes, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setrobust(attributes, libc::PTHREAD_MUTEX_ROBUST);
            match libc::pthread_mutex_init(lock.0, attributes) {
                0 => Ok(lock),
                error => Err(io::Error::from_raw_os_error(error)),
            }
        }
    }

    /// Takes the lock, from a dead holder too. Any error ends the wait as well.
    fn lock(&self) {
        // SAFETY: initialised, and mapped while `self` lives.
        unsafe { libc::pthread_mutex_lock(self.0) };
    }
}

impl Drop for SharedLock {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`; the last user is gone.
        let _ = unsafe { munmap(self.0.cast(), Self::SIZE) };
    }
}
