//! Programs that share mutexes, as roles of this test binary (`adversarial`). Each ends by itself.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use punctual_ipc::{Lifetime, LockOutcome, Name, Namespace, SharedMutex, SharedSemaphore};

use crate::adversarial::{read, LIFE};
use crate::profile_roles::{execute, sleep_until};

const US: u64 = 1_000;
pub const MUTEXES: usize = 5;

/// No mutex.
pub const NONE: u64 = 0;
/// Those of the C library, in the file; for the kernel host's tests.
#[allow(dead_code)]
pub const OF_LIBRARY: u64 = 1;
/// Punctual's, by name.
pub const NAMED: u64 = 2;
/// Punctual's binary semaphore, which lends nothing.
pub const SEMAPHORE: u64 = 3;

/// What the programs share. All zero is a value of it.
#[repr(C)]
pub struct Shared {
    mutexes: [libc::pthread_mutex_t; MUTEXES],
    /// What programs wait for: 0 before their first round, and before they execute with the last
    /// mutex; of a chain, at most its number before a program locks.
    pub gate: AtomicU64,
    /// How often a program has come to it.
    pub arrived: AtomicU64,
    /// The first round of all programs, CLOCK_MONOTONIC ns.
    pub begin: AtomicU64,
    /// By program: rounds, and those that ended after their deadline.
    pub rounds: [AtomicU64; 3],
    pub misses: [AtomicU64; 3],
    /// The longest round but the first four, which may fall into the start of the programs, ns.
    pub longest: [AtomicU64; 3],
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

    fn mutex(&self, n: usize) -> *mut libc::pthread_mutex_t {
        (&raw const self.mutexes[n]).cast_mut()
    }

    /// Makes it in a new file: mutexes of glibc between processes, robust, with or without priority
    /// inheritance; and as many of Punctual, and a semaphore, beside it.
    pub fn create(path: &Path, inherits: bool) -> &'static Shared {
        let file = File::create_new(path).expect("a new file");
        file.set_len(size_of::<Shared>() as u64).expect("room");
        drop(file);
        let path = path.to_str().expect("plain");
        let shared = Shared::open(path);
        let protocol = if inherits { libc::PTHREAD_PRIO_INHERIT } else { libc::PTHREAD_PRIO_NONE };
        // SAFETY: attributes of our own; no program uses the mutexes yet.
        unsafe {
            let mut attr = std::mem::zeroed();
            libc::pthread_mutexattr_init(&raw mut attr);
            libc::pthread_mutexattr_setpshared(&raw mut attr, libc::PTHREAD_PROCESS_SHARED);
            libc::pthread_mutexattr_setprotocol(&raw mut attr, protocol);
            libc::pthread_mutexattr_setrobust(&raw mut attr, libc::PTHREAD_MUTEX_ROBUST);
            for n in 0..MUTEXES {
                assert_eq!(libc::pthread_mutex_init(shared.mutex(n), &raw const attr), 0);
            }
        }
        let namespace = namespace(path);
        for n in 0..MUTEXES as u32 {
            SharedMutex::create(&namespace, &Name::from(n), Lifetime::Persistent).expect("room");
        }
        let semaphore =
            SharedSemaphore::create(&namespace, &semaphore_name(), 1, 1, Lifetime::Persistent);
        semaphore.expect("room");
        shared
    }

    /// Waits until the gate is at most this; for a minute at most.
    fn wait_for_gate(&self, most: u64) {
        self.arrived.fetch_add(1, SeqCst);
        let end = read(libc::CLOCK_MONOTONIC) + LIFE.as_nanos() as u64;
        while self.gate.load(SeqCst) > most && read(libc::CLOCK_MONOTONIC) < end {
            sleep_until(read(libc::CLOCK_MONOTONIC) + 1_000 * US);
        }
    }

    /// Rounds of a program, and misses.
    pub fn figures(&self, program: u32) -> (u64, u64) {
        let program = program as usize;
        (self.rounds[program].load(SeqCst), self.misses[program].load(SeqCst))
    }
}

/// Where the named locks are that belong to a file.
fn namespace(path: &str) -> Namespace {
    Namespace::at(format!("{path}.objects").as_ref()).expect("it can be made")
}

fn semaphore_name() -> Name {
    "s".parse().expect("a name")
}

/// The mutexes of a file, of the kind that a program uses; opened before it changes its user.
pub enum Mutexes {
    None,
    OfLibrary(&'static Shared),
    Named(&'static Shared, Vec<SharedMutex>),
    Semaphore(SharedSemaphore),
}

impl Mutexes {
    pub fn open(path: &str, kind: u64) -> Mutexes {
        let open = |n| SharedMutex::open(&namespace(path), &Name::from(n)).expect("it was made");
        match kind {
            NONE => Mutexes::None,
            NAMED => Mutexes::Named(Shared::open(path), (0..MUTEXES as u32).map(open).collect()),
            SEMAPHORE => {
                let semaphore = SharedSemaphore::open(&namespace(path), &semaphore_name());
                Mutexes::Semaphore(semaphore.expect("it was made"))
            }
            _ => Mutexes::OfLibrary(Shared::open(path)),
        }
    }

    pub fn lock(&self, n: usize) {
        match self {
            Mutexes::None => {}
            Mutexes::Named(shared, mutexes) => match mutexes[n].lock().expect("no deadlock") {
                LockOutcome::Locked(guard) => std::mem::forget(guard),
                LockOutcome::LockedAfterDeath(guard) => {
                    shared.inherited.fetch_add(1, SeqCst);
                    guard.make_consistent();
                    std::mem::forget(guard);
                }
            },
            Mutexes::Semaphore(semaphore) => semaphore.acquire().expect("it is whole"),
            // SAFETY: a mutex that was initialized.
            Mutexes::OfLibrary(shared) => unsafe {
                match libc::pthread_mutex_lock(shared.mutex(n)) {
                    0 => {}
                    libc::EOWNERDEAD => {
                        shared.inherited.fetch_add(1, SeqCst);
                        libc::pthread_mutex_consistent(shared.mutex(n));
                    }
                    _ => std::process::exit(97),
                }
            },
        }
    }

    pub fn unlock(&self, n: usize) {
        match self {
            Mutexes::None => {}
            Mutexes::Named(_, mutexes) => mutexes[n].release().expect("this thread holds it"),
            Mutexes::Semaphore(semaphore) => semaphore.release().expect("it has its unit"),
            // SAFETY: this thread has locked it.
            Mutexes::OfLibrary(shared) => unsafe {
                libc::pthread_mutex_unlock(shared.mutex(n));
            },
        }
    }
}

/// Program `number` of a file, of a user of its own: in each `period` from `offset` on it executes
/// for a time, with the first mutex of its kind, and is to be done by a deadline; us.
pub fn round(path: &str, [number, kind, offset, period, time, deadline]: [u64; 6]) {
    let (shared, mutexes) = (Shared::open(path), Mutexes::open(path, kind));
    // SAFETY: a system call without memory.
    unsafe { libc::setuid(1_000 + number as u32) };
    shared.wait_for_gate(0);
    let now = read(libc::CLOCK_MONOTONIC);
    let begin = match shared.begin.compare_exchange(0, now, SeqCst, SeqCst) {
        Ok(_) => now,
        Err(begin) => begin,
    };
    for n in 1.. {
        let release = begin + (offset + n * period) * US;
        sleep_until(release);
        mutexes.lock(0);
        execute(time * US);
        mutexes.unlock(0);
        let took = read(libc::CLOCK_MONOTONIC) - release;
        let late = took > deadline * US;
        shared.rounds[number as usize].fetch_add(1, SeqCst);
        shared.misses[number as usize].fetch_add(late.into(), SeqCst);
        if n > 4 {
            shared.longest[number as usize].fetch_max(took, SeqCst);
        }
    }
}

/// Locks a mutex, if it is none but the last, then the next one; executes for a time, us, and
/// unlocks them.
pub fn chain(path: &str, n: usize, time: u64, kind: u64) {
    let (shared, mutexes) = (Shared::open(path), Mutexes::open(path, kind));
    shared.wait_for_gate(n as u64);
    mutexes.lock(n);
    if n + 1 < MUTEXES {
        mutexes.lock(n + 1);
    }
    shared.wait_for_gate(0);
    execute(time * US);
    if n + 1 < MUTEXES {
        mutexes.unlock(n + 1);
    }
    mutexes.unlock(n);
}

/// Locks the first mutex, executes for a time with it, us, and kills itself.
pub fn die_with_lock(path: &str, time: u64, kind: u64) {
    let mutexes = Mutexes::open(path, kind);
    mutexes.lock(0);
    Shared::open(path).wait_for_gate(0);
    execute(time * US);
    // SAFETY: a system call without memory.
    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
}
