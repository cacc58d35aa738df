//! A mutex in shared memory that the death of its owner releases, with priority inheritance.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// POSIX's, of this C library: processes that share it have the same. It lies in shared memory, and
/// begins as zeros.
#[repr(C)]
#[derive(Debug)]
pub struct RobustMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: it is made for that.
unsafe impl Sync for RobustMutex {}

/// A [`RobustMutex`] that is locked until this is dropped.
#[derive(Debug)]
pub struct Locked {
    mutex: *const libc::pthread_mutex_t,
    /// The last owner died while it had it.
    pub owner_died: bool,
}

impl RobustMutex {
    /// Makes one in memory that no other thread or process uses yet.
    ///
    /// # Errors
    /// ENOTSUP: the kernel has no priority inheritance for futexes.
    pub fn init(&self) -> io::Result<()> {
        let mut attr = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let attr = attr.as_mut_ptr();
        // SAFETY: the attributes are initialized before they are used and destroyed once; the
        // memory of the mutex is in use nowhere else.
        unsafe {
            check(libc::pthread_mutexattr_init(attr))?;
            let done =
                check(libc::pthread_mutexattr_setpshared(attr, libc::PTHREAD_PROCESS_SHARED))
                    .and_then(|()| {
                        check(libc::pthread_mutexattr_setrobust(attr, libc::PTHREAD_MUTEX_ROBUST))
                    })
                    .and_then(|()| {
                        check(libc::pthread_mutexattr_setprotocol(attr, libc::PTHREAD_PRIO_INHERIT))
                    })
                    .and_then(|()| check(libc::pthread_mutex_init(self.0.get(), attr)));
            libc::pthread_mutexattr_destroy(attr);
            done
        }
    }

    /// Locks it, and waits for its owner, which executes at the priority of this thread meanwhile.
    ///
    /// The death of an owner unlocks it, and is reported by [`Locked::owner_died`]: repair what it
    /// protects then, or keep that consistent at any instant.
    ///
    /// # Errors
    /// EDEADLK: this thread has it; EINVAL and others: the memory is damaged.
    pub fn lock(&self) -> io::Result<Locked> {
        let mutex = self.0.get();
        // SAFETY: initialized by `init`; damaged memory is an error value or, at worst, a wait.
        let owner_died = self.is_inherited(unsafe { libc::pthread_mutex_lock(mutex) })?;
        Ok(Locked { mutex, owner_died })
    }

    /// Locks it, unless a thread that lives has it: `None`.
    ///
    /// # Errors
    /// As of [`lock`](Self::lock).
    pub fn try_lock(&self) -> io::Result<Option<Locked>> {
        let mutex = self.0.get();
        // SAFETY: as in `lock`.
        match unsafe { libc::pthread_mutex_trylock(mutex) } {
            libc::EBUSY => Ok(None),
            result => Ok(Some(Locked { mutex, owner_died: self.is_inherited(result)? })),
        }
    }

    /// What locking it returned: whether its owner had died.
    fn is_inherited(&self, result: libc::c_int) -> io::Result<bool> {
        if result == libc::EOWNERDEAD {
            // SAFETY: this thread has locked it.
            check(unsafe { libc::pthread_mutex_consistent(self.0.get()) })?;
            return Ok(true);
        }
        check(result).map(|()| false)
    }
}

impl RobustMutex {
    /// Unlocks what the calling thread has locked and [kept](Locked::keep); whether it had.
    pub fn unlock_kept(&self) -> bool {
        // SAFETY: initialized by `init`; a robust mutex refuses threads that do not have it.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) == 0 }
    }
}

impl Locked {
    /// Leaves it locked until [`RobustMutex::unlock_kept`], or the end of the calling thread.
    pub fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: this thread has locked it; its memory outlives the lock (see `lock`'s callers).
        unsafe { libc::pthread_mutex_unlock(self.mutex.cast_mut()) };
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    match result {
        0 => Ok(()),
        errno => Err(io::Error::from_raw_os_error(errno)),
    }
}
