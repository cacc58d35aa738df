//! A mutex of POSIX threads.

use std::cell::UnsafeCell;
use std::io;
use std::mem::MaybeUninit;

/// It stays where it was made: it is never moved once it was locked.
pub struct PthreadMutex(Box<UnsafeCell<libc::pthread_mutex_t>>);

// SAFETY: a mutex is for all threads of the process.
unsafe impl Send for PthreadMutex {}
// SAFETY: as above.
unsafe impl Sync for PthreadMutex {}

impl PthreadMutex {
    /// With PTHREAD_PRIO_NONE or PTHREAD_PRIO_INHERIT.
    pub fn new(protocol: libc::c_int) -> io::Result<PthreadMutex> {
        let mutex = PthreadMutex(Box::new(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)));
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the attributes are initialised before they are used; the mutex is not in use.
        let result = unsafe {
            libc::pthread_mutexattr_init(attributes.as_mut_ptr());
            libc::pthread_mutexattr_setprotocol(attributes.as_mut_ptr(), protocol);
            libc::pthread_mutex_init(mutex.0.get(), attributes.as_ptr())
        };
        match result {
            0 => Ok(mutex),
            e => Err(io::Error::from_raw_os_error(e)),
        }
    }

    #[inline]
    pub fn lock(&self) {
        // SAFETY: initialised. It cannot fail: no thread locks it twice.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    /// The calling thread has locked it.
    #[inline]
    pub fn unlock(&self) {
        // SAFETY: as above.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}
