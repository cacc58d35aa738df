//! Programs that share mutexes in a file, as roles of this test binary (`adversarial`). Each ends
//! by itself.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::adversarial::read;
use crate::profile_roles::{execute, sleep_until};

const US: u64 = 1_000;
pub const MUTEXES: usize = 5;

/// What the programs share. All zero is a value of it.
#[repr(C)]
pub struct Shared {
    mutexes: [libc::pthread_mutex_t; MUTEXES],
    /// The first round of all programs, CLOCK_MONOTONIC ns.
    begin: AtomicU64,
    /// By program: rounds, and those that ended after their deadline.
    pub rounds: [AtomicU64; 3],
    pub misses: [AtomicU64; 3],
    /// Mutexes that a program got after their holder had died.
    pub inherited: AtomicU64,
}

impl Shared {
    pub fn open(path: &str) -> &'static Shared {
        let file = File::options().read(true).write(true).open(path).expect("the test made it");
        // SAFETY: a file of at least this size, mapped as long as the program lives.
        unsafe {
            let (both, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
            let size = size_of::<Shared>();
            let at = libc::mmap(std::ptr::null_mut(), size, both, shared, file.as_raw_fd(), 0);
            assert_ne!(at, libc::MAP_FAILED);
            &*at.cast()
        }
    }

    pub fn mutex(&self, n: usize) -> *mut libc::pthread_mutex_t {
        (&raw const self.mutexes[n]).cast_mut()
    }

    fn lock(&self, n: usize) {
        // SAFETY: a mutex that was initialized.
        unsafe {
            match libc::pthread_mutex_lock(self.mutex(n)) {
                0 => {}
                libc::EOWNERDEAD => {
                    self.inherited.fetch_add(1, SeqCst);
                    libc::pthread_mutex_consistent(self.mutex(n));
                }
                _ => std::process::exit(97),
            }
        }
    }

    fn unlock(&self, n: usize) {
        // SAFETY: this thread has locked it.
        unsafe { libc::pthread_mutex_unlock(self.mutex(n)) };
    }
}

/// Program `number` of a file, of a user of its own: in each `period` from `offset` on it executes
/// for a time, with the first mutex if it is one that `locks`, and is to be done by a deadline; us.
pub fn round(path: &str, [number, locks, offset, period, time, deadline]: [u64; 6]) {
    let shared = Shared::open(path);
    // SAFETY: a system call without memory.
    unsafe { libc::setuid(1_000 + number as u32) };
    let now = read(libc::CLOCK_MONOTONIC);
    let begin = match shared.begin.compare_exchange(0, now, SeqCst, SeqCst) {
        Ok(_) => now,
        Err(begin) => begin,
    };
    for n in 1.. {
        let release = begin + (offset + n * period) * US;
        sleep_until(release);
        if locks != 0 {
            shared.lock(0);
        }
        execute(time * US);
        if locks != 0 {
            shared.unlock(0);
        }
        let late = read(libc::CLOCK_MONOTONIC) > release + deadline * US;
        shared.rounds[number as usize].fetch_add(1, SeqCst);
        shared.misses[number as usize].fetch_add(late.into(), SeqCst);
    }
}

/// Locks a mutex, if it is none but the last, then the next one; executes for a time, us, and
/// unlocks them.
pub fn chain(path: &str, n: usize, time: u64) {
    let shared = Shared::open(path);
    shared.lock(n);
    if n + 1 < MUTEXES {
        shared.lock(n + 1);
    }
    execute(time * US);
    if n + 1 < MUTEXES {
        shared.unlock(n + 1);
    }
    shared.unlock(n);
}

/// Locks the first mutex, executes for a time with it, us, and kills itself.
pub fn die_with_lock(path: &str, time: u64) {
    Shared::open(path).lock(0);
    execute(time * US);
    // SAFETY: a system call without memory.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}
