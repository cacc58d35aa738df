//! The signals that end a program.

use std::mem::MaybeUninit;
use std::ptr;
use std::thread;

const ENDS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Those signals, blocked in the calling thread and in all that it makes.
pub struct EndSignals(libc::sigset_t);

impl EndSignals {
    pub fn block() -> EndSignals {
        let mut set = MaybeUninit::uninit();
        // SAFETY: the set is initialized first; the signals are signals.
        unsafe {
            libc::sigemptyset(set.as_mut_ptr());
            let mut set = set.assume_init();
            for signal in ENDS {
                libc::sigaddset(&mut set, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut());
            EndSignals(set)
        }
    }

    /// Calls `first` at the first of them, in a thread of its own; ends the process at the second.
    pub fn watch(self, first: impl FnOnce() + Send + 'static) {
        let watch = move || {
            self.wait();
            first();
            let signal = self.wait();
            // SAFETY: ends the process, whatever its threads do.
            unsafe { libc::_exit(128 + signal) };
        };
        // Without the thread, SIGKILL ends the process.
        if let Err(error) = thread::Builder::new().name("rtlinux-signals".into()).spawn(watch) {
            eprintln!("rtlinux-run: signals are not handled: {error}");
        }
    }

    fn wait(&self) -> i32 {
        let mut signal = 0;
        // SAFETY: a set of blocked signals; writes one int.
        while unsafe { libc::sigwait(&self.0, &mut signal) } != 0 {}
        signal
    }
}
