//! What releases a task: the C library's own calls where the kind names one, so that what is
//! measured is what programs use. Real-time safe once made.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering::*};

use punctual_sys::{futex, sched};

/// The signal of timers; blocked in all threads that measure.
fn timer_signal() -> i32 {
    libc::SIGRTMIN()
}

/// The signal of the executive to its tasks; blocked, too.
fn release_signal() -> i32 {
    libc::SIGRTMIN() + 1
}

fn succeeded(errno: i32) -> io::Result<()> {
    match errno {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}

/// A condition variable with its mutex, which inherits priorities: the executive locks it with the
/// lowest one. Pinned by its `Box`.
pub struct Condition(Box<(UnsafeCell<libc::pthread_mutex_t>, UnsafeCell<libc::pthread_cond_t>)>);

// SAFETY: both are made to be shared by threads.
unsafe impl Sync for Condition {}
// SAFETY: they lie on the heap and do not move; no thread owns them.
unsafe impl Send for Condition {}

impl Condition {
    pub fn new() -> io::Result<Condition> {
        let cond = UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER);
        let new = Condition(Box::new((UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER), cond)));
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised by the first call, the mutex is at its final place
        // and in no use.
        unsafe {
            succeeded(libc::pthread_mutexattr_init(attributes.as_mut_ptr()))?;
            succeeded(libc::pthread_mutexattr_setprotocol(
                attributes.as_mut_ptr(),
                libc::PTHREAD_PRIO_INHERIT,
            ))?;
            succeeded(libc::pthread_mutex_init(new.0 .0.get(), attributes.as_ptr()))?;
        }
        Ok(new)
    }

    /// Changes what is waited for.
    pub fn change(&self, change: impl FnOnce()) {
        // SAFETY: the mutex is initialised, and not locked by this thread.
        unsafe { libc::pthread_mutex_lock(self.0 .0.get()) };
        change();
        // SAFETY: this thread has locked it.
        unsafe { libc::pthread_mutex_unlock(self.0 .0.get()) };
    }

    pub fn signal(&self) {
        // SAFETY: the condition variable is initialised.
        unsafe { libc::pthread_cond_signal(self.0 .1.get()) };
    }

    pub fn broadcast(&self) {
        // SAFETY: as in `signal`.
        unsafe { libc::pthread_cond_broadcast(self.0 .1.get()) };
    }

    fn wait_while(&self, mut waits: impl FnMut() -> bool) {
        self.change(|| {
            while waits() {
                // SAFETY: both are initialised, and `change` has locked the mutex.
                unsafe { libc::pthread_cond_wait(self.0 .1.get(), self.0 .0.get()) };
            }
        });
    }
}

/// A POSIX semaphore, as processes share it: rt-exec's tasks share memory ("DataPool:SHM").
pub struct PosixSemaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: it is made to be shared by threads.
unsafe impl Sync for PosixSemaphore {}
// SAFETY: it lies on the heap and does not move.
unsafe impl Send for PosixSemaphore {}

impl PosixSemaphore {
    const SHARED: i32 = 1;

    pub fn new() -> io::Result<PosixSemaphore> {
        // SAFETY: all zeros are a valid sem_t, which sem_init makes a semaphore at its final place.
        let new = PosixSemaphore(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: as above.
        match unsafe { libc::sem_init(new.0.get(), Self::SHARED, 0) } {
            0 => Ok(new),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn post(&self) {
        // SAFETY: it is initialised.
        unsafe { libc::sem_post(self.0.get()) };
    }

    fn wait(&self) {
        // SAFETY: it is initialised. An interrupted wait is as good as one for an earlier release.
        unsafe { libc::sem_wait(self.0.get()) };
    }
}

/// How the executive releases a task. The number of releases so far is what is waited for, so that
/// a wake-up without one is harmless.
pub enum Primitive {
    /// FUTEX_WAKE on a word that has the number of releases.
    Futex(AtomicU32),
    /// pthread_cond_signal.
    Condition(Condition),
    /// sem_post.
    Semaphore(PosixSemaphore),
    /// tgkill, to the thread of this number.
    Signal(AtomicI32),
}

impl Primitive {
    /// Makes `released` one of `count`, and wakes the task.
    pub fn release(&self, released: &AtomicU64, count: u64) {
        let store = || released.store(count, Release);
        match self {
            Primitive::Futex(word) => {
                store();
                word.store(count as u32, Release);
                futex::wake(word);
            }
            Primitive::Condition(condition) => {
                condition.change(store);
                condition.signal();
            }
            Primitive::Semaphore(semaphore) => {
                store();
                semaphore.post();
            }
            Primitive::Signal(tid) => {
                store();
                // SAFETY: system calls without memory; the thread is one of this process.
                unsafe {
                    libc::syscall(
                        libc::SYS_tgkill,
                        libc::getpid(),
                        tid.load(Relaxed),
                        release_signal(),
                    )
                };
            }
        }
    }

    /// Waits until there are other than `seen` releases.
    pub fn wait(&self, released: &AtomicU64, seen: u64) {
        let waits = || released.load(Acquire) == seen;
        match self {
            Primitive::Condition(condition) => condition.wait_while(waits),
            _ => {
                while waits() {
                    match self {
                        Primitive::Futex(word) => futex::wait(word, seen as u32, u64::MAX),
                        Primitive::Semaphore(semaphore) => semaphore.wait(),
                        Primitive::Signal(_) => wait_for_signal(release_signal()),
                        Primitive::Condition(_) => {}
                    }
                }
            }
        }
    }

    /// Waits on a condition variable that several tasks share.
    pub fn wait_for_broadcast(condition: &Condition, released: &AtomicU64, seen: u64) {
        condition.wait_while(|| released.load(Acquire) == seen);
    }
}

/// Blocks all signals in this thread: those of the kinds are taken by waiting, all others go to the
/// threads that do not measure.
pub fn block_signals() {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), ptr::null_mut());
    }
}

fn wait_for_signal(signal: i32) {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the first call initialises the set; what else the signal says is not asked for.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        libc::sigaddset(set.as_mut_ptr(), signal);
        libc::sigwaitinfo(set.as_ptr(), ptr::null_mut());
    }
}

/// A POSIX timer of CLOCK_MONOTONIC that signals the thread that made it.
pub struct Timer(libc::timer_t);

impl Timer {
    pub fn new() -> io::Result<Timer> {
        // SAFETY: all zeros are a valid sigevent.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = timer_signal();
        event.sigev_notify_thread_id = sched::thread_id();
        let mut timer = MaybeUninit::uninit();
        // SAFETY: the event is valid, and the timer is written where the call succeeds.
        match unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, timer.as_mut_ptr()) } {
            // SAFETY: as above.
            0 => Ok(Timer(unsafe { timer.assume_init() })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Expires each `period` ns, for the first time at `first`, CLOCK_MONOTONIC ns.
    pub fn start_periodic(&self, first: u64, period: u64) {
        self.set(libc::TIMER_ABSTIME, first, period);
    }

    /// Expires once, `after` ns from now.
    pub fn start_once(&self, after: u64) {
        self.set(0, after, 0);
    }

    fn set(&self, flags: i32, value: u64, interval: u64) {
        let times = libc::itimerspec { it_value: timespec(value), it_interval: timespec(interval) };
        // SAFETY: the timer exists, the times are valid, the old ones are not asked for.
        unsafe { libc::timer_settime(self.0, flags, &times, ptr::null_mut()) };
    }

    /// Waits until it expires; the number of expiries beyond that one.
    pub fn wait(&self) -> u64 {
        wait_for_signal(timer_signal());
        // SAFETY: the timer exists.
        u64::try_from(unsafe { libc::timer_getoverrun(self.0) }).unwrap_or(0)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the timer exists, and nothing uses it after this.
        unsafe { libc::timer_delete(self.0) };
    }
}

/// Sleeps for so many ns by clock_nanosleep.
pub fn nanosleep(ns: u64) {
    // SAFETY: the time is valid; no remaining time is requested.
    unsafe { libc::clock_nanosleep(libc::CLOCK_MONOTONIC, 0, &timespec(ns), ptr::null_mut()) };
}

/// Sleeps for so many ns, of which usleep takes whole microseconds.
pub fn usleep(ns: u64) {
    // SAFETY: a call without memory. Longer than its type holds is an hour and more.
    unsafe { libc::usleep(libc::c_uint::try_from(ns / 1_000).unwrap_or(libc::c_uint::MAX)) };
}

const fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}
