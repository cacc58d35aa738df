//! A mutex in shared memory that the death of its owner releases, with priority inheritance.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// POSIX's, of this C library: processes that share it have the same.
#[repr(C)]
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

    /// Locks it, and waits for its owner. What it protects is consistent at any instant, so that
    /// the death of an owner needs no repair.
    ///
    /// # Errors
    /// EDEADLK: this thread has it; EINVAL and others: the memory is damaged.
    pub fn lock(&self) -> io::Result<Locked> {
        let mutex = self.0.get();
        // SAFETY: initialized by `init`; damaged memory is an error value or, at worst, a wait.
        let owner_died = match unsafe { libc::pthread_mutex_lock(mutex) } {
            libc::EOWNERDEAD => {
                // SAFETY: this thread has locked it.
                check(unsafe { libc::pthread_mutex_consistent(mutex) })?;
                true
            }
            result => {
                check(result)?;
                false
            }
        };
        Ok(Locked { mutex, owner_died })
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
