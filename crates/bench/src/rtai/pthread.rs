//! The same over POSIX threads: semaphores, and what a mutex and a condition variable make.

use std::cell::UnsafeCell;

/// A value with a mutex and a condition variable. It stays where it was made.
pub struct Monitor<T>(Box<Inner<T>>);

struct Inner<T> {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    changed: UnsafeCell<libc::pthread_cond_t>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is accessed by the owner of the mutex alone.
unsafe impl<T: Send> Sync for Monitor<T> {}

impl<T> Monitor<T> {
    pub fn new(value: T) -> Monitor<T> {
        Monitor(Box::new(Inner {
            mutex: UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER),
            changed: UnsafeCell::new(libc::PTHREAD_COND_INITIALIZER),
            value: UnsafeCell::new(value),
        }))
    }

    /// Waits until `change` has changed the value, and wakes the one that waits for that.
    pub fn change<R>(&self, mut change: impl FnMut(&mut T) -> Option<R>) -> R {
        let Inner { mutex, changed, value } = &*self.0;
        // SAFETY: initialised, and not moved; the value is the mutex's.
        unsafe {
            libc::pthread_mutex_lock(mutex.get());
            let result = loop {
                match change(&mut *value.get()) {
                    Some(result) => break result,
                    None => libc::pthread_cond_wait(changed.get(), mutex.get()),
                };
            };
            libc::pthread_cond_signal(changed.get());
            libc::pthread_mutex_unlock(mutex.get());
            result
        }
    }
}

/// Room for one message.
pub type Channel<const N: usize> = Monitor<Option<[u8; N]>>;

impl<const N: usize> Channel<N> {
    pub fn empty() -> Channel<N> {
        Monitor::new(None)
    }

    pub fn send(&self, message: [u8; N]) {
        self.change(|slot| match slot {
            Some(_) => None,
            None => {
                *slot = Some(message);
                Some(())
            }
        });
    }

    pub fn receive(&self) -> [u8; N] {
        self.change(Option::take)
    }
}

/// Suspension that is counted.
pub type Gate = Monitor<u32>;

impl Gate {
    pub fn closed() -> Gate {
        Monitor::new(0)
    }

    pub fn resume(&self) {
        self.change(|count| {
            *count += 1;
            Some(())
        });
    }

    pub fn suspend(&self) {
        self.change(|count| {
            *count = count.checked_sub(1)?;
            Some(())
        });
    }
}

/// A semaphore of POSIX.
pub struct Semaphore(Box<UnsafeCell<libc::sem_t>>);

// SAFETY: it is for all threads of the process.
unsafe impl Sync for Semaphore {}

impl Semaphore {
    /// Without units.
    pub fn new() -> Semaphore {
        // SAFETY: sem_init fills it.
        let semaphore = Semaphore(Box::new(UnsafeCell::new(unsafe { std::mem::zeroed() })));
        // SAFETY: it has its place.
        unsafe { libc::sem_init(semaphore.0.get(), 0, 0) };
        semaphore
    }

    pub fn signal(&self) {
        // SAFETY: initialised.
        unsafe { libc::sem_post(self.0.get()) };
    }

    pub fn wait(&self) {
        // SAFETY: initialised. A handler of a signal may have ended the wait.
        while unsafe { libc::sem_wait(self.0.get()) } != 0 {}
    }
}
