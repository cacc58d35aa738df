//! A mutex between processes, with priority inheritance, that the death of its owner releases.
//!
//! Its word is a futex that inherits priority. From before it is locked until after it is unlocked,
//! the kernel finds it by the robust list of the thread: if the thread ends meanwhile, the next
//! owner gets the mutex with a mark of that.
//!
//! Who holds it for this process is written in private memory (`Ownership`); the word alone
//! decides between processes. Where another process has written into the word, both may not fit:
//! such a call fails with [`SharedLockError::Damaged`], and what is private stays consistent.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};

use punctual_diagnostic::Diagnostic;
use punctual_sys::pi_futex::{self, OWNER, OWNER_DIED};
use punctual_sys::robust_list::Links;

use super::page::LockPage;
use super::thread::CallingThread;
use super::{remove, LockKind, SharedLockError};
use crate::name::Name;
use crate::namespace::{Lifetime, Namespace};

/// Attempts, where the kernel has the caller try again. It does not do so for a word that no other
/// process writes to.
const ATTEMPTS: u32 = 100;

/// A mutex between processes, found by its name (docs/locks.md).
///
/// While a thread waits for it, the kernel has the thread that holds it execute at the waiting
/// one's level, through any number of mutexes. Where a service schedules both, the waiting one's
/// budget pays for that. Any thread can use it, a task or not. It protects no data of its own: what
/// the programs share is theirs.
///
/// When a thread that holds it ends, or its process is killed, the next one gets it as
/// [`LockOutcome::LockedAfterDeath`], and so do all that follow, until one that holds it calls
/// [`SharedMutexGuard::make_consistent`].
///
/// ```no_run
/// use punctual_ipc::{Lifetime, LockOutcome, Namespace, SharedMutex};
///
/// # fn repair() {}
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let namespace = Namespace::of_user()?;
/// let bus = SharedMutex::create(&namespace, &"bus".parse()?, Lifetime::Used)?;
/// let guard = match bus.lock()? {
///     LockOutcome::Locked(guard) => guard,
///     LockOutcome::LockedAfterDeath(guard) => {
///         repair();
///         guard.make_consistent();
///         guard
///     }
/// };
/// drop(guard);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SharedMutex {
    page: LockPage,
}

/// What a call that locks a [`SharedMutex`] returns.
#[derive(Debug)]
#[must_use = "the mutex is unlocked when this is dropped"]
pub enum LockOutcome<'a> {
    /// It is locked.
    Locked(SharedMutexGuard<'a>),
    /// It is locked, and what it protects may be inconsistent: a thread ended while it held it.
    LockedAfterDeath(SharedMutexGuard<'a>),
}

impl<'a> LockOutcome<'a> {
    /// The guard in both cases.
    pub fn into_guard(self) -> SharedMutexGuard<'a> {
        match self {
            Self::Locked(guard) | Self::LockedAfterDeath(guard) => guard,
        }
    }
}

/// A [`SharedMutex`] that this thread holds until this is dropped. If it is leaked, the mutex is
/// unlocked when the thread ends, and is inconsistent.
#[derive(Debug)]
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct SharedMutexGuard<'a> {
    mutex: &'a SharedMutex,
    _of_this_thread: PhantomData<*const ()>,
}

impl SharedMutex {
    /// Makes a mutex of this name, that no thread holds.
    ///
    /// # Errors
    /// The name is taken (EEXIST); no room in memory (ENOSPC); another C library than glibc
    /// (ENOTSUP).
    pub fn create(
        namespace: &Namespace,
        name: &Name,
        lifetime: Lifetime,
    ) -> Result<Self, Diagnostic> {
        let page = LockPage::create(namespace, name, LockKind::Mutex, lifetime, 0, |_| ())?;
        Ok(Self { page })
    }

    /// Opens the mutex of this name.
    ///
    /// # Errors
    /// There is none (ENOENT); the name is that of a lock of another kind (EINVAL); it is of
    /// another version of Punctual, or damaged (EBADMSG).
    pub fn open(namespace: &Namespace, name: &Name) -> Result<Self, Diagnostic> {
        Ok(Self { page: LockPage::open(namespace, name, Some(LockKind::Mutex))? })
    }

    /// Removes the name. Programs that have the mutex open keep it.
    ///
    /// # Errors
    /// There is none (ENOENT); it is a lock of another kind (EINVAL).
    pub fn remove(namespace: &Namespace, name: &Name) -> Result<(), Diagnostic> {
        remove(namespace, name, LockKind::Mutex)
    }

    /// Locks it, and waits for its holder. Real-time safe, but for the first call of a thread,
    /// which allocates.
    ///
    /// # Errors
    /// [`SharedLockError::Deadlock`], [`SharedLockError::TooMany`], [`SharedLockError::Damaged`].
    pub fn lock(&self) -> Result<LockOutcome<'_>, SharedLockError> {
        self.lock_until(u64::MAX)
    }

    /// The same, waiting until `until` at most (CLOCK_MONOTONIC ns; `u64::MAX` for ever). One that
    /// no thread holds is locked whatever the time is.
    ///
    /// # Errors
    /// [`SharedLockError::TimedOut`], and those of [`lock`](Self::lock).
    pub fn lock_until(&self, until: u64) -> Result<LockOutcome<'_>, SharedLockError> {
        Ok(self.outcome(self.acquire(until)?))
    }

    /// Locks it, if no thread holds it. Real-time safe, as [`lock`](Self::lock).
    ///
    /// # Errors
    /// [`SharedLockError::Busy`], and those of [`lock`](Self::lock).
    pub fn try_lock(&self) -> Result<LockOutcome<'_>, SharedLockError> {
        Ok(self.outcome(self.try_acquire()?))
    }

    fn outcome(&self, consistent: bool) -> LockOutcome<'_> {
        let guard = SharedMutexGuard { mutex: self, _of_this_thread: PhantomData };
        if consistent {
            LockOutcome::Locked(guard)
        } else {
            LockOutcome::LockedAfterDeath(guard)
        }
    }

    /// [`lock_until`](Self::lock_until) without a guard; false: after the death of a holder. For
    /// interfaces of other languages.
    ///
    /// # Errors
    /// As of [`lock_until`](Self::lock_until).
    #[inline]
    pub fn acquire(&self, until: u64) -> Result<bool, SharedLockError> {
        self.acquire_by(|thread, word| {
            let _waits = self.page.waiters().enter(thread.tid);
            lock_word(word, until)
        })
    }

    /// [`try_lock`](Self::try_lock) without a guard.
    ///
    /// # Errors
    /// As of [`try_lock`](Self::try_lock).
    #[inline]
    pub fn try_acquire(&self) -> Result<bool, SharedLockError> {
        if CallingThread::current().is_ok_and(|thread| self.page.ownership().is_of(thread)) {
            return Err(SharedLockError::Busy);
        }
        self.acquire_by(|_, word| try_lock_word(word))
    }

    #[inline]
    fn acquire_by(
        &self,
        contended: impl FnOnce(CallingThread, &AtomicU32) -> Result<(), SharedLockError>,
    ) -> Result<bool, SharedLockError> {
        let thread = CallingThread::current()?;
        thread.check_count()?;
        let (word, ownership) = (self.page.word(), self.page.ownership());
        if ownership.is_of(thread) {
            return Err(SharedLockError::Deadlock);
        }
        let links = self.page.links(thread.robust);
        thread.robust.begin(links);
        let locked = word
            .compare_exchange(0, thread.tid, Ordering::Acquire, Ordering::Relaxed)
            .map(drop)
            .or_else(|_| contended(thread, word));
        let taken = locked.and_then(|()| match ownership.take(thread) {
            true => {
                // SAFETY: this thread has taken them, and their memory stays while it has.
                unsafe { thread.robust.add(links) };
                thread.push(ownership);
                Ok(())
            }
            false => {
                // Another thread of this process holds it, whatever was written into the word.
                let _ = unlock_word(thread, word);
                Err(SharedLockError::Damaged)
            }
        });
        thread.robust.end();
        taken.map(|()| self.is_consistent_now(word))
    }

    /// After locking: keeps what the kernel says of the last owner.
    #[inline]
    fn is_consistent_now(&self, word: &AtomicU32) -> bool {
        let inconsistent = &self.page.state().inconsistent;
        if word.load(Ordering::Relaxed) & OWNER_DIED != 0 {
            // In this order: if this thread is killed in between, the kernel sets the mark again.
            inconsistent.store(1, Ordering::Relaxed);
            word.fetch_and(!OWNER_DIED, Ordering::Release);
        }
        inconsistent.load(Ordering::Relaxed) == 0
    }

    /// Unlocks what [`acquire`](Self::acquire) locked. Real-time safe.
    ///
    /// # Errors
    /// [`SharedLockError::NotHeld`] by this thread; [`SharedLockError::Damaged`]: another process
    /// wrote into the memory, so that it may be locked still, for ever.
    #[inline]
    pub fn release(&self) -> Result<(), SharedLockError> {
        let thread = CallingThread::current().map_err(|_| SharedLockError::NotHeld)?;
        let ownership = self.page.ownership();
        if !ownership.is_of(thread) {
            return Err(SharedLockError::NotHeld);
        }
        thread.pop(ownership);
        unlock(thread, self.page.links(thread.robust), self.page.word(), || ownership.give())
    }

    /// Whether the calling thread holds it. Real-time safe.
    #[must_use]
    pub fn is_held(&self) -> bool {
        CallingThread::current().is_ok_and(|thread| self.page.ownership().is_of(thread))
    }

    /// Whether a thread of this process holds it, so that it is not to be closed.
    #[must_use]
    pub fn is_held_by_process(&self) -> bool {
        self.page.ownership().is_held()
    }

    /// What it protects is consistent again. Real-time safe.
    ///
    /// # Errors
    /// [`SharedLockError::NotHeld`] by this thread; [`SharedLockError::Consistent`] already.
    pub fn set_consistent(&self) -> Result<(), SharedLockError> {
        if !self.is_held() {
            return Err(SharedLockError::NotHeld);
        }
        match self.page.state().inconsistent.swap(0, Ordering::Relaxed) {
            0 => Err(SharedLockError::Consistent),
            _ => Ok(()),
        }
    }
}

impl SharedMutexGuard<'_> {
    /// The mutex.
    pub fn mutex(&self) -> &SharedMutex {
        self.mutex
    }

    /// What the mutex protects is consistent again: [`LockOutcome::Locked`] from here on.
    pub fn make_consistent(&self) {
        let _ = self.mutex.set_consistent();
    }
}

impl<'a> SharedMutexGuard<'a> {
    /// The mutex, which stays locked.
    pub(super) fn into_mutex(self) -> &'a SharedMutex {
        let mutex = self.mutex;
        std::mem::forget(self);
        mutex
    }

    /// The guard of a mutex that this thread holds.
    pub(super) fn of(mutex: &'a SharedMutex) -> Self {
        Self { mutex, _of_this_thread: PhantomData }
    }
}

impl Drop for SharedMutexGuard<'_> {
    fn drop(&mut self) {
        // Where its memory is damaged, others get that error.
        let _ = self.mutex.release();
    }
}

/// Unlocks what a thread holds, which is no more on its list of held ones; `give` has it own it no
/// more.
#[inline]
pub fn unlock(
    thread: CallingThread,
    links: *mut Links,
    word: &AtomicU32,
    give: impl FnOnce(),
) -> Result<(), SharedLockError> {
    thread.robust.begin(links);
    // SAFETY: added when this thread locked it, by which they are its own.
    unsafe { thread.robust.remove(links) };
    give();
    let unlocked = unlock_word(thread, word);
    thread.robust.end();
    unlocked
}

#[inline]
fn unlock_word(thread: CallingThread, word: &AtomicU32) -> Result<(), SharedLockError> {
    match word.compare_exchange(thread.tid, 0, Ordering::Release, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(_) => pi_futex::unlock(word).map_err(|_| SharedLockError::Damaged),
    }
}

#[cold]
fn lock_word(word: &AtomicU32, until: u64) -> Result<(), SharedLockError> {
    for _ in 0..ATTEMPTS {
        let Err(error) = pi_futex::lock(word, until) else { return Ok(()) };
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR) => {}
            Some(libc::ETIMEDOUT) => return Err(SharedLockError::TimedOut),
            Some(libc::EDEADLK) => return Err(SharedLockError::Deadlock),
            _ => break,
        }
    }
    Err(SharedLockError::Damaged)
}

#[cold]
fn try_lock_word(word: &AtomicU32) -> Result<(), SharedLockError> {
    // A holder that died has left its mark, and not its number.
    if word.load(Ordering::Relaxed) & OWNER != 0 {
        return Err(SharedLockError::Busy);
    }
    let Err(error) = pi_futex::try_lock(word) else { return Ok(()) };
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EDEADLK) => Err(SharedLockError::Busy),
        _ => Err(SharedLockError::Damaged),
    }
}
